-- obliterate: one bounded step of removing a queue, its repeating schedules, lanes and limits with it. It pauses the queue first,
-- so that nothing is claimed in between, and leaves it paused: its caller sweeps the kept rows, then resumes.
-- KEYS pending base
-- ARGV force (1: running jobs too), limit
-- Answers how many jobs were removed; 0 when nothing is left, then the metrics, the record and the leader are gone too; -1 when
-- no job is left, but more lanes or repeating schedules than one step takes.
local pending, base = KEYS[1], KEYS[2]
local force, limit = ARGV[1], int(ARGV[2] or '', 1, 1000)
if (force ~= '0' and force ~= '1') or not limit then return refuse('EMQARG', 'obliterate: force or limit is malformed') end
local sets = { pending, base .. 'schedule', base .. 'dead', base .. 'waiting', base .. 'active' }
for _, key in ipairs(sets) do
  local bad = mistyped('zset', key)
  if bad then return bad end
end
local index = base .. 'lanes:waiting'
local bad = mistyped('hash', base .. 'metrics:removed') or mistyped('zset', base .. 'schedules') or mistyped('zset', index)
  or flow_refusal(base)
if bad then return bad end
if force == '0' and call('ZCARD', base .. 'active') > 0 then
  return refuse('EMQSTATE', 'obliterate: jobs are running; force it, or wait for them')
end

call('DEL', base .. 'paused')
call('SET', base .. 'paused', 1)
-- Repeating schedules first: they would go on landing jobs.
local keys, rules = call('ZRANGE', base .. 'schedules', 0, limit - 1), {}
for i, key in ipairs(keys) do rules[i] = base .. 'schedule:' .. key end
zrem(base .. 'schedules', keys)
chunked('DEL', nil, rules)

local left = limit
local queue_line = call('ZCARD', index) > 0 and begin_lanes(base) or the_line(base)
if queue_line.forgive then queue_line.forgive() end
local family -- parents in other queues hear of it; those in this one go as well
local function drop_jobs(key, leave)
  local ids, rows = call('ZRANGE', key, 0, left - 1), {}
  for i, id in ipairs(ids) do
    local row = base .. 'job:' .. id
    rows[i] = row
    local r = redis.pcall('HMGET', row, 'parent_queue', 'flow', 'awaited', 'dedup')
    free_key(base, id, r[4])
    if r[1] or r[2] or r[3] then
      family = family or flows(base)
      local ties = family.ties(row)
      if r[2] then family.forget(row) end
      if not r[1] then ties.parent = nil end
      family.tell(id, ties, 'gone', 'removed')
    end
  end
  leave(ids)
  chunked('DEL', nil, rows)
  left = left - #ids
end

local function drop_waiting(key, lane)
  if left == 0 or mistyped('zset', key) then return end
  drop_jobs(key, function(ids)
    for _, id in ipairs(ids) do queue_line.drop(id, lane) end
  end)
end

drop_waiting(pending)
for i = 2, #sets do
  if left > 0 then
    drop_jobs(sets[i], function(ids)
      zrem(sets[i], ids)
      if sets[i] == base .. 'active' then queue_line.left(ids) end
    end)
  end
end
for _, name in ipairs(call('ZREVRANGEBYSCORE', index, '+inf', 1, 'LIMIT', 0, limit)) do
  drop_waiting(base .. 'lane:' .. name, name)
end
if family then family.finish() end
queue_line.finish(true)
publish_news(base)
count(base, 'removed', limit - left) -- so that a queue half removed still adds up
if left < limit then return limit - left end

local names = call('ZRANGE', index, 0, limit - 1)
for _, name in ipairs(names) do
  local group = string.match(name, '^(.+)' .. SEP .. '$')
  if group then
    call('DEL', base .. 'lanegroupstate:' .. group, base .. 'lanegroup:' .. group, base .. 'laneidle:' .. group)
  else
    call('DEL', base .. 'lanestate:' .. name, base .. 'lane:' .. name)
  end
end
zrem(index, names)
if #names == limit or call('ZCARD', base .. 'schedules') > 0 then return -1 end

call('DEL', base .. 'leader', base .. 'stream:completions', base .. 'limits', base .. 'dedups', base .. 'lanes',
  base .. 'lanes:parked', base .. 'lanes:floor', base .. 'lanes:active', base .. 'lanes:total', base .. 'lanes:defaults',
  base .. 'lanestate:', base .. 'laneidle:')
while call('ZCARD', base .. 'hungry') > 0 do wake(base) end -- the living register again; the dead are gone
for _, metric in ipairs({ 'enqueued', 'completed', 'removed', 'failed', 'retried', 'stalled' }) do
  call('DEL', base .. 'metrics:' .. metric)
end
return 0
