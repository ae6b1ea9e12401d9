-- schedule_fire x n: the job of a slot lands in pending, and its schedule moves to the next slot, in one step. A slot fires once,
-- whoever fires it and however often. A schedule that was changed, paused or removed meanwhile fires nothing.
-- KEYS pending schedules base
-- ARGV per item: key, rev, slot, next slot, alone(0/1: not while the last job has not ended), id, payload. Without an id the slot
-- passes without a job. Without a slot a job lands now, and no slot moves.
-- Answers per item: 1 done, 2 the last job has not ended: the slot passes without a job, 0 fired already, -1 changed, paused or
-- gone, -2 not due. Behind them the milliseconds until the next slot, -1 when there is none.
-- Cost: per job two HSETs and two ZADDs.
local schedules, base = KEYS[2], KEYS[3]
if #ARGV == 0 or #ARGV % 7 ~= 0 then return refuse('EMQARG', 'schedule_fire: arguments do not add up') end
for i = 1, #ARGV, 7 do
  local slot, id = ARGV[i + 2], ARGV[i + 5]
  if slot ~= '' then
    slot = int(slot, 0, MAX_INT)
    if not slot or not int(ARGV[i + 3], slot + 1, MAX_INT) then
      return refuse('EMQARG', 'schedule_fire: slot or next slot is malformed')
    end
  elseif id == '' then
    return refuse('EMQARG', 'schedule_fire: neither slot nor id')
  end
  if ARGV[i + 4] ~= '0' and ARGV[i + 4] ~= '1' then return refuse('EMQARG', 'schedule_fire: alone is not 0 or 1') end
  if id ~= '' and (#id ~= MINTED_BYTES or not string.find(id, MINTED)) then
    return refuse('EMQARG', 'schedule_fire: not a minted id')
  end
end
local bad = mistyped('zset', schedules) or line_refusal(base, true)
  or mistyped('hash', base .. 'metrics:enqueued')
if bad then return bad end

local function has_ended(id)
  local state = redis.pcall('HGET', base .. 'job:' .. id, 'state')
  return type(state) ~= 'string' or state == 'done' or state == 'dead'
end

local line = the_line(base)

local function land(id, payload, priority, max_stalls, lane)
  local row = base .. 'job:' .. id
  if call('EXISTS', row) == 1 then return 0 end
  call('HSET', row, 'state', 'pending', 'attempts', '0', 'payload', payload)
  priority = priority_of(priority)
  if priority ~= '0' then call('HSET', row, 'priority', priority) end
  if int(max_stalls or '', 0, MAX_INT) then call('HSET', row, 'max_stalls', max_stalls) end
  lane = lane and lane_named(lane) and lane
  if lane then
    call('HSET', row, 'lane', lane)
    line = begin_lanes(base)
  end
  line.put(id, lane, priority)
  report(base, 'landed', id, '0', 'pending')
  return 1
end

local now, landed, answers = server_ms(), 0, {}
for i = 1, #ARGV, 7 do
  local key, slot, next_slot, id = ARGV[i], ARGV[i + 2], ARGV[i + 3], ARGV[i + 5]
  local at, row = tonumber(slot), base .. 'schedule:' .. key
  local h = redis.pcall('HMGET', row, 'rev', 'paused', 'last_slot', 'last_job', 'priority', 'max_stalls', 'skipped', 'lane')
  local score = tonumber(call('ZSCORE', schedules, key))
  local code
  if h.err or not h[1] then
    call('ZREM', schedules, key) -- of a row that somebody has deleted
    code = -1
  elseif not score or h[1] ~= ARGV[i + 1] or (at and h[2]) then
    code = -1
  elseif at and at > now then
    code = -2
  elseif at and (at < score or at <= (tonumber(h[3]) or -1)) then
    if at == score then call('ZADD', schedules, next_slot, key) end -- set back by hand
    code = 0
  else
    code = 1
    if id ~= '' then
      if ARGV[i + 4] == '1' and h[4] and not has_ended(h[4]) then
        code = 2
        if at then call('HSET', row, 'skipped', one_more(h[7])) end
      else
        landed = landed + land(id, ARGV[i + 6], h[5], h[6], h[8])
        call('HSET', row, 'last_job', id)
      end
    end
    if at then
      call('HSET', row, 'last_slot', slot)
      call('ZADD', schedules, next_slot, key)
    end
  end
  answers[#answers + 1] = code
end
count(base, 'enqueued', landed)
line.finish()
publish_news(base)
local first = first_score(schedules)
answers[#answers + 1] = first and first < MAX_INT and math.max(0, first - now) or -1
return answers
