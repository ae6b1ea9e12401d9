-- enqueue x n: lands jobs in pending or in their lane, or in schedule for a later time.
-- KEYS pending schedule base
-- ARGV per job: id, payload, delay, nfields, field, value ...
-- The field `dedup` is a mode, a time in milliseconds or nothing, a colon and the key. Modes: u, until its owner has settled, and at
-- most so long; t, for so long, whatever becomes of it; d, the job waits for so long, and as long as it waits a later one takes its
-- place and begins the wait anew; l, a later one takes its place as long as it waits to run, also for its next attempt: the attempts
-- before it then count no more, as with d.
-- Answers per job: 1 landed; of a duplicate the id of the job that is there and its state, `id state`, and behind them `replaced`
-- where that one has been given the payload; -3 the lane is full. All or nothing on a refusal.
-- Cost: per job one HSET; per call one EXISTS, one ZADD a set, one HINCRBY.
local pending, schedule, base, argv, find = KEYS[1], KEYS[2], KEYS[3], ARGV, string.find
local now, earliest -- looked at only when a job has a delay

-- Shape: every job is looked at before the first is written. Mostly all are plain (now, no fields): they take a short way.
local n, total, jobs, plain = 0, #argv, base .. 'job:', true
local rows, plain_list = {}, {}
for at = 1, total, 4 do
  local id = argv[at]
  plain = argv[at + 3] == '0' and argv[at + 2] == '' and #id == MINTED_BYTES and find(id, MINTED)
  if not plain then break end
  n = n + 1
  rows[n], plain_list[2 * n - 1], plain_list[2 * n] = jobs .. id, '0', id
end

local starts, runs, priorities, lanes_of, dedups = {}, {}, {}, {}, {}
local any_lane, any_dedup, i = false, false, 1
if plain then i = total + 1 else n = 0 end
while i <= total do
  local id, delay, fields = argv[i], argv[i + 2], argv[i + 3]
  if #id ~= MINTED_BYTES or not find(id, MINTED) then return refuse('EMQARG', 'enqueue: not a minted id') end
  n = n + 1
  rows[n], starts[n] = jobs .. id, i
  if fields == '0' and delay == '' then
    i = i + 4
  else
    fields = int(fields or '', 0, 8)
    if not fields or i + 3 + 2 * fields > total then return refuse('EMQARG', 'enqueue: fields do not add up') end
    for f = i + 4, i + 3 + 2 * fields, 2 do
      local name, value = argv[f], argv[f + 1]
      if name == 'lane' or name == 'dedup' then
        if not WHOLE then return beyond() end
        if name == 'lane' then
          if not lane_named(value) then return refuse('EMQARG', 'enqueue: lane is not one or two names of 1 to 200 bytes') end
          lanes_of[n], any_lane = value, true
        else
          dedups[n], any_dedup = dedup_of(value), true
          if not dedups[n] then return refuse('EMQARG', 'enqueue: dedup is malformed') end
          dedups[n].field = f
        end
      else
        local bad = bad_field(name, value)
        if bad then return refuse('EMQARG', 'enqueue: ' .. bad) end
        if name == 'priority' then priorities[n] = value end
      end
    end
    i = i + 4 + 2 * fields
    local dedup = dedups[n]
    if delay ~= '' or (dedup and dedup.mode == 'd') then
      now = now or server_ms()
      local run = run_at(delay, now)
      if not run then return refuse('EMQARG', 'enqueue: delay is not canonical milliseconds') end
      if dedup and dedup.mode == 'd' then run = math.min(now + dedup.ttl, MAX_INT) end
      if run > 0 then runs[n] = run end
    end
  end
end
if n == 0 then return refuse('EMQARG', 'enqueue: no job') end

-- Only what will be touched is looked at: a single job in an empty queue must be cheap. And mostly one look says that there is no
-- such job yet, nothing beyond plain jobs, and no pause.
local paused, used = nil, WHOLE and in_use(base)
if not WHOLE then
  for k, key in ipairs({ 'paused', 'lanes:floor', 'limits', 'dedups', 'heard' }) do rows[n + k] = base .. key end
end
local some_exist = chunked('EXISTS', nil, rows) > 0
if not WHOLE then
  if not some_exist then paused = 0 end
  if some_exist and in_use(base, base .. 'heard') then return beyond() end
end

local laned, heard = any_lane or (used and used.lanes), used and used.heard
local before = not laned and redis.pcall('ZCARD', pending) -- tried: that tells the type too
local hungry = before == 0 and redis.pcall('ZCARD', base .. 'hungry')
local short = plain and not some_exist and not laned and not heard
local enqueued = base .. 'metrics:enqueued'
local bad = (before and type(before) ~= 'number' and mistyped('zset', pending)) or (not short and mistyped('hash', enqueued))
  or (hungry and type(hungry) ~= 'number' and mistyped('zset', base .. 'hungry')) or (laned and line_refusal(base, true))
if not bad and now then
  bad = mistyped('zset', schedule)
  earliest = not bad and first_score(schedule)
end
if bad then return bad end

local timed = false -- a time has been written
if any_dedup then call('SET', base .. 'dedups', 1) end
if any_lane then begin_lanes(base) end
local line = laned and the_line(base)
local answers, seen, landed, now_list, listed, later_list = {}, {}, 0, {}, 0, {}
if short then
  -- Counted first: that tells the type of the key too.
  bad = type(redis.pcall('HINCRBY', enqueued, 'count', n)) ~= 'number' and mistyped('hash', enqueued)
  if bad then return bad end
  for k = 1, n do
    answers[k] = 1
    if call('HSET', rows[k], 'state', 'pending', 'attempts', '0', 'payload', argv[4 * k - 2]) == 0 then -- an earlier one has this id
      local first = 1
      while rows[first] ~= rows[k] do first = first + 1 end
      call('HSET', rows[k], 'payload', argv[4 * first - 2])
      redis.pcall('HINCRBY', enqueued, 'count', -1)
      answers[k] = plain_list[2 * k] .. ' pending'
    end
  end
  now_list, listed, n = plain_list, 2 * n, 0
end
for k = 1, n do
  local row, at = rows[k], starts[k] or 4 * k - 3
  local dedup, lane = dedups[k], lanes_of[k]
  local id, state, run = argv[at], nil, runs[k]
  local refused
  if seen[row] or (some_exist and call('EXISTS', row) == 1) then
    refused = id .. ' ' .. state_of(row)
  else
    local moved
    if dedup then refused, moved = duplicate_of(base, dedup, argv[at + 1], run) end
    timed = timed or moved
    if not refused and not run and line and line.is_full(lane or '') then refused = -3 end
  end
  if refused then
    answers[k] = refused
  else
    seen[row] = true
    local fields = argv[at + 3]
    state = run and 'scheduled' or 'pending'
    if fields == '0' then
      call('HSET', row, 'state', state, 'attempts', '0', 'payload', argv[at + 1])
    else
      if dedup then
        argv[dedup.field + 1] = dedup.key
        own_key(base, id, dedup)
      end
      call('HSET', row, 'state', state, 'attempts', '0', 'payload', argv[at + 1],
        unpack(argv, at + 4, at + 3 + 2 * tonumber(fields)))
      if priorities[k] == '0' then call('HDEL', row, 'priority') end -- a row says its priority only if it is not 0
      if dedup and dedup.mode == 't' then call('HDEL', row, 'dedup') end -- nobody's end frees that key
    end
    if run and dedup then -- at once: a later one of this call may move it
      call('ZADD', schedule, spell(run), id)
      timed = true
    elseif run then
      later_list[#later_list + 1] = spell(run)
      later_list[#later_list + 1] = id
    elseif lane then
      line.put(id, lane, priorities[k])
    else
      now_list[listed + 1], now_list[listed + 2] = priorities[k] or '0', id
      listed = listed + 2
    end
    landed = landed + 1
    answers[k] = 1
    if heard then report(base, 'landed', id, '0', state) end
  end
end

zadd(schedule, later_list)
count(base, 'enqueued', landed)
if line then
  line.add('', now_list)
  line.finish()
else
  zadd(pending, now_list)
  if listed > 0 and before == 0 and hungry > 0 and (paused or call('EXISTS', base .. 'paused')) == 0 then wake(base) end
end
if timed or #later_list > 0 then announce_if_earlier(base, earliest, schedule, now) end
if used then publish_news(base) end
return answers
