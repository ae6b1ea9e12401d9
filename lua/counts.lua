-- counts: one consistent look at the sizes of a queue.
-- KEYS pending base
-- Answers pending, active, scheduled, dead, awaiting_children, paused 0/1, then the metrics enqueued, completed, removed,
-- failed, retried, stalled.
local pending, base = KEYS[1], KEYS[2]
local METRICS = { 'enqueued', 'completed', 'removed', 'failed', 'retried', 'stalled' }
for _, set in ipairs({ 'pending', 'active', 'schedule', 'dead', 'waiting' }) do
  local bad = mistyped('zset', base .. set)
  if bad then return bad end
end
for _, metric in ipairs(METRICS) do
  local bad = mistyped('hash', base .. 'metrics:' .. metric)
  if bad then return bad end
end
local in_lanes = redis.pcall('GET', base .. 'lanes:total')
in_lanes = type(in_lanes) == 'string' and tonumber(in_lanes) or 0
local answer = {
  call('ZCARD', pending) + in_lanes, call('ZCARD', base .. 'active'), call('ZCARD', base .. 'schedule'),
  call('ZCARD', base .. 'dead'), call('ZCARD', base .. 'waiting'), call('EXISTS', base .. 'paused'),
}
for _, metric in ipairs(METRICS) do
  answer[#answer + 1] = tonumber(call('HGET', base .. 'metrics:' .. metric, 'count')) or 0
end
return answer
