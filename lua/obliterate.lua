-- obliterate: one bounded step of removing a queue, its repeating schedules with it. It pauses the queue first, so that nothing
-- is claimed in between, and leaves it paused: its caller sweeps the kept rows, then resumes.
-- KEYS pending base
-- ARGV force (1: running jobs too), limit
-- Answers how many jobs were removed; 0 when none are left, then the metrics, the record and the leader are gone too.
local pending, base = KEYS[1], KEYS[2]
local force, limit = ARGV[1], int(ARGV[2] or '', 1, 1000)
if (force ~= '0' and force ~= '1') or not limit then return refuse('EMQARG', 'obliterate: force or limit is malformed') end
local sets = { pending, base .. 'schedule', base .. 'dead', base .. 'waiting', base .. 'active' }
for _, key in ipairs(sets) do
  local bad = mistyped('zset', key)
  if bad then return bad end
end
local bad = mistyped('hash', base .. 'metrics:removed') or mistyped('zset', base .. 'schedules') or flow_refusal(base)
if bad then return bad end
if force == '0' and call('ZCARD', base .. 'active') > 0 then
  return refuse('EMQSTATE', 'obliterate: jobs are running; force it, or wait for them')
end

call('DEL', base .. 'paused')
call('SET', base .. 'paused', 1)
-- Repeating schedules first: they would go on landing jobs.
local function drop_schedules(most)
  local keys, rows = call('ZRANGE', base .. 'schedules', 0, most - 1), {}
  for i, key in ipairs(keys) do rows[i] = base .. 'schedule:' .. key end
  zrem(base .. 'schedules', keys)
  chunked(rows, function(...) return call('DEL', ...) end)
end
drop_schedules(limit)
local left = limit
local family -- parents in other queues hear of it; those in this one go as well
for _, key in ipairs(sets) do
  local ids, rows = call('ZRANGE', key, 0, left - 1), {}
  for i, id in ipairs(ids) do
    local row = base .. 'job:' .. id
    rows[i] = row
    local r = redis.pcall('HMGET', row, 'parent_queue', 'flow', 'awaited')
    if r[1] or r[2] or r[3] then
      family = family or flows(base)
      local ties = family.ties(row)
      if r[2] then family.forget(row) end
      if not r[1] then ties.parent = nil end
      family.tell(id, ties, 'gone', 'removed')
    end
  end
  zrem(key, ids)
  chunked(rows, function(...) return call('DEL', ...) end)
  left = left - #ids
  if left == 0 then break end
end
if family then family.finish() end
count(base, 'removed', limit - left) -- so that a queue half removed still adds up
if left == limit then
  drop_schedules(MAX_INT)
  call('DEL', base .. 'leader', base .. 'stream:completions')
  while call('ZCARD', base .. 'hungry') > 0 do wake(base) end -- the living register again; the dead are gone
  for _, metric in ipairs({ 'enqueued', 'completed', 'removed', 'failed', 'retried', 'stalled' }) do
    call('DEL', base .. 'metrics:' .. metric)
  end
end
return limit - left
