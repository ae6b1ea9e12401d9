-- counts: one consistent look at the sizes of a queue.
-- KEYS pending base
-- Answers pending, active, scheduled, dead, awaiting_children, paused 0/1, then the metrics enqueued, completed, removed,
-- failed, retried, stalled.
local pending, base = KEYS[1], KEYS[2]
local answer = {
  call('ZCARD', pending), call('ZCARD', base .. 'active'), call('ZCARD', base .. 'schedule'),
  call('ZCARD', base .. 'dead'), call('ZCARD', base .. 'waiting'), call('EXISTS', base .. 'paused'),
}
for _, metric in ipairs({ 'enqueued', 'completed', 'removed', 'failed', 'retried', 'stalled' }) do
  answer[#answer + 1] = tonumber(call('HGET', base .. 'metrics:' .. metric, 'count')) or 0
end
return answer
