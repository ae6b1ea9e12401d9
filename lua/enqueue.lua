-- enqueue x n: lands jobs in pending, or in schedule for a later time.
-- KEYS pending schedule base
-- ARGV per job: id, payload, delay, nfields, field, value ...
-- Answers per job: 1 landed, 0 the id exists. All or nothing on a refusal.
-- Cost: per job one HSET; per call one EXISTS, one ZADD a set, one HINCRBY.
local pending, schedule, base = KEYS[1], KEYS[2], KEYS[3]
local now, earliest -- looked at only when a job has a delay

-- Shape: every job is looked at before the first is written. A plain job (now, no fields) takes the short way.
local rows, starts, runs, priorities = {}, {}, {}, {}
local n, total, i = 0, #ARGV, 1
while i <= total do
  local id, delay, fields = ARGV[i], ARGV[i + 2], ARGV[i + 3]
  if #id ~= 14 or not string.find(id, '^JOB%w+$') then return refuse('EMQARG', 'enqueue: not a minted id') end
  n = n + 1
  rows[n], starts[n] = base .. 'job:' .. id, i
  if fields == '0' then
    i = i + 4
  else
    fields = int(fields or '', 0, 8)
    if not fields or i + 3 + 2 * fields > total then return refuse('EMQARG', 'enqueue: fields do not add up') end
    for f = i + 4, i + 3 + 2 * fields, 2 do
      local name, value = ARGV[f], ARGV[f + 1]
      if name == 'priority' then
        if not int(value, -MAX_INT, MAX_INT) then return refuse('EMQARG', 'enqueue: priority is not an integer') end
        priorities[n] = value
      elseif name == 'max_stalls' then
        if not int(value, 0, MAX_INT) then return refuse('EMQARG', 'enqueue: max_stalls is not an integer') end
      elseif name ~= 'awaited' then
        return refuse('EMQARG', 'enqueue: a client may not set field ' .. string.sub(name, 1, 40))
      end
    end
    i = i + 4 + 2 * fields
  end
  if delay ~= '' then
    now = now or server_ms()
    local run = run_at(delay, now)
    if not run then return refuse('EMQARG', 'enqueue: delay is not canonical milliseconds') end
    if run > 0 then runs[n] = run end
  end
end
if n == 0 then return refuse('EMQARG', 'enqueue: no job') end

-- Only what will be touched is looked at: a single job in an empty queue must be cheap.
local bad = mistyped('zset', pending) or mistyped('hash', base .. 'metrics:enqueued')
local before = not bad and call('ZCARD', pending)
if before == 0 then bad = mistyped('zset', base .. 'hungry') end
if not bad and now then
  bad = mistyped('zset', schedule)
  earliest = not bad and first_score(schedule)
end
if bad then return bad end

local some_exist = chunked(rows, function(...) return call('EXISTS', ...) end) > 0

local answers, seen, landed, now_list, later_list = {}, {}, 0, {}, {}
for k = 1, n do
  local row, at = rows[k], starts[k]
  if seen[row] or (some_exist and call('EXISTS', row) == 1) then
    answers[k] = 0
  else
    seen[row] = true
    local run, fields = runs[k], ARGV[at + 3]
    local state = run and 'scheduled' or 'pending'
    if fields == '0' then
      call('HSET', row, 'state', state, 'attempts', '0', 'payload', ARGV[at + 1])
    else
      call('HSET', row, 'state', state, 'attempts', '0', 'payload', ARGV[at + 1],
        unpack(ARGV, at + 4, at + 3 + 2 * tonumber(fields)))
      if priorities[k] == '0' then call('HDEL', row, 'priority') end -- a row says its priority only if it is not 0
    end
    if run then
      later_list[#later_list + 1] = spell(run)
      later_list[#later_list + 1] = ARGV[at]
    else
      now_list[#now_list + 1] = priorities[k] or '0'
      now_list[#now_list + 1] = ARGV[at]
    end
    landed = landed + 1
    answers[k] = 1
  end
end

zadd(pending, now_list)
zadd(schedule, later_list)
count(base, 'enqueued', landed)
if #now_list > 0 then wake_if_new(base, before) end
if #later_list > 0 then announce_if_earlier(base, earliest, schedule, now) end
return answers
