-- enqueue x n: lands jobs in pending, or in schedule for a later time.
-- KEYS pending schedule base
-- ARGV per job: id, payload, delay, nfields, field, value ...
-- Answers per job: 1 landed, 0 the id exists. All or nothing on a refusal.
-- Cost: per job one HSET; per call one EXISTS, one ZADD a set, one HINCRBY.
local pending, schedule, base = KEYS[1], KEYS[2], KEYS[3]
local now = server_ms()

local bad = mistyped('zset', pending) or mistyped('zset', schedule) or mistyped('zset', base .. 'hungry')
  or mistyped('hash', base .. 'metrics:enqueued')
if bad then return bad end

-- Shape: every job is looked at before the first is written.
local ids, rows, at, runs, priorities = {}, {}, {}, {}, {}
local total, i = #ARGV, 1
while i <= total do
  local id, fields = ARGV[i], int(ARGV[i + 3] or '', 0, 8)
  if not string.find(id, '^JOB%w%w%w%w%w%w%w%w%w%w%w$') then return refuse('EMQARG', 'enqueue: not a minted id') end
  if not fields or i + 3 + 2 * fields > total then return refuse('EMQARG', 'enqueue: fields do not add up') end
  local run = run_at(ARGV[i + 2], now)
  if not run then return refuse('EMQARG', 'enqueue: delay is not canonical milliseconds') end
  local n = #ids + 1
  ids[n], rows[n], at[n], runs[n], priorities[n] = id, base .. 'job:' .. id, i, run, '0'
  for f = i + 4, i + 3 + 2 * fields, 2 do
    local name, value = ARGV[f], ARGV[f + 1]
    if name == 'priority' then
      if not int(value, -MAX_INT, MAX_INT) then return refuse('EMQARG', 'enqueue: priority is not an integer') end
      priorities[n] = value
    elseif name == 'max_stalls' then
      if not int(value, 0, MAX_INT) then return refuse('EMQARG', 'enqueue: max_stalls is not an integer') end
    else
      return refuse('EMQARG', 'enqueue: a client may not set field ' .. string.sub(name, 1, 40))
    end
  end
  i = i + 4 + 2 * fields
end
if #ids == 0 then return refuse('EMQARG', 'enqueue: no job') end

local before = call('ZCARD', pending)
local earliest = first_score(schedule)
local some_exist = chunked(rows, function(...) return call('EXISTS', ...) end) > 0

local answers, seen, landed, now_list, later_list = {}, {}, 0, {}, {}
for n = 1, #ids do
  local id, row = ids[n], rows[n]
  if seen[id] or (some_exist and call('EXISTS', row) == 1) then
    answers[n] = 0
  else
    seen[id] = true
    local a, run, priority = at[n], runs[n], priorities[n]
    local state = run > 0 and 'scheduled' or 'pending'
    if ARGV[a + 3] == '0' then
      call('HSET', row, 'state', state, 'attempts', '0', 'payload', ARGV[a + 1])
    else
      local extra = {}
      if priority ~= '0' then extra = { 'priority', priority } end
      for f = a + 4, a + 3 + 2 * tonumber(ARGV[a + 3]), 2 do
        if ARGV[f] == 'max_stalls' then extra[#extra + 1] = 'max_stalls'; extra[#extra + 1] = ARGV[f + 1] end
      end
      call('HSET', row, 'state', state, 'attempts', '0', 'payload', ARGV[a + 1], unpack(extra))
    end
    local list = run > 0 and later_list or now_list
    list[#list + 1] = run > 0 and spell(run) or priority
    list[#list + 1] = id
    landed = landed + 1
    answers[n] = 1
  end
end

zadd(pending, now_list)
zadd(schedule, later_list)
count(base, 'enqueued', landed)
if #now_list > 0 then wake_if_new(base, before) end
if #later_list > 0 then announce_if_earlier(base, earliest, schedule, now) end
return answers
