-- release x n: the holder gives a job back unfinished; the attempt is not charged.
-- KEYS active pending schedule base
-- ARGV per job: id, token, delay ('' = now)
-- Answers a code per job: 1 given back (or buried, when it was asked to stop), 0 gone, -1 stale.
local active, pending, schedule, base = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if #ARGV < 3 or #ARGV % 3 ~= 0 then return refuse('EMQARG', 'release: arguments do not add up') end
local now = server_ms()
local runs = {}
for i = 1, #ARGV, 3 do
  runs[i] = run_at(ARGV[i + 2], now)
  if not runs[i] then return refuse('EMQARG', 'release: delay is not canonical milliseconds') end
end
local bad = mistyped('zset', active) or mistyped('zset', pending) or mistyped('zset', schedule) or flow_refusal(base)
  or mistyped('hash', base .. 'metrics:failed')
if bad then return bad end

local before, earliest = call('ZCARD', pending), first_score(schedule)
local codes, buried, put_back, parked = {}, 0, 0, 0
local family
for i = 1, #ARGV, 3 do
  local id, row = ARGV[i], base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'attempts', 'lease_epoch', 'state', 'priority', 'cancel', 'uncharged', 'parent',
    'flow', 'awaited')
  local code = r.err and 0 or holder(ARGV[i + 1], row, r)
  if code > 0 then
    call('ZREM', code == 1 and active or pending, id)
    if r[5] then
      bury(base, id, row, r[1], 'cancelled', 0, now)
      buried = buried + 1
      if r[7] or r[8] or r[9] then
        family = family or flows(base, 0, now)
        family.buried(id, row, 'cancelled')
      end
    else
      call('HDEL', row, 'lapsed')
      call('HSET', row, 'uncharged', one_more(r[6]))
      if runs[i] > 0 then
        call('HSET', row, 'state', 'scheduled')
        call('ZADD', schedule, runs[i], id)
        parked = parked + 1
      else
        call('HSET', row, 'state', 'pending')
        call('ZADD', pending, priority_of(r[4]), id)
        put_back = put_back + 1
      end
    end
    code = 1
  end
  codes[#codes + 1] = code
end
count(base, 'failed', buried)
if family then family.finish() end
if put_back > 0 then wake_if_new(base, before) end
if parked > 0 then announce_if_earlier(base, earliest, schedule, now) end
return codes
