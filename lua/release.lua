-- release x n: the holder gives a job back unfinished; the attempt is not charged.
-- KEYS active pending schedule base
-- ARGV per job: id, token, delay ('' = now; `lane:250` = now, and for so many milliseconds nothing of its lane is claimed,
-- of the queue if it has none; `queue:250` = likewise, of the queue)
-- Answers a code per job: 1 given back (or buried, when it was asked to stop), 0 gone, -1 stale.
local active, schedule, base = KEYS[1], KEYS[3], KEYS[4]
if #ARGV < 3 or #ARGV % 3 ~= 0 then return refuse('EMQARG', 'release: arguments do not add up') end
local now = server_ms()
local runs, holds = {}, false
for i = 1, #ARGV, 3 do
  local whose, ms = string.match(ARGV[i + 2], '^(%a+):(%d+)$')
  if whose then
    runs[i] = (whose == 'lane' or whose == 'queue') and int(ms, 0, MAX_INT) and { whose = whose, ms = tonumber(ms) }
    holds = true
  else
    runs[i] = run_at(ARGV[i + 2], now)
  end
  if not runs[i] then return refuse('EMQARG', 'release: delay is not canonical milliseconds') end
end
local bad = mistyped('zset', active) or mistyped('zset', schedule) or flow_refusal(base)
  or mistyped('hash', base .. 'metrics:failed')
  or holds and (mistyped('hash', base .. 'limits') or mistyped('zset', base .. 'lanes:parked'))
if bad then return bad end

local line, earliest = the_line(base), first_score(schedule)
local codes, buried, parked, held = {}, 0, 0, {}
local family
for i = 1, #ARGV, 3 do
  local id, row = ARGV[i], base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'attempts', 'lease_epoch', 'state', 'priority', 'cancel', 'uncharged', 'parent',
    'flow', 'awaited', 'lane')
  local code = r.err and 0 or holder(ARGV[i + 1], row, r)
  if code > 0 then
    if code == 1 then
      call('ZREM', active, id)
      held[#held + 1] = id
    else
      line.drop(id, r[10])
    end
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
      local hold = type(runs[i]) == 'table' and runs[i]
      if not hold and runs[i] > 0 then
        call('HSET', row, 'state', 'scheduled')
        call('ZADD', schedule, runs[i], id)
        parked = parked + 1
      else
        call('HSET', row, 'state', 'pending')
        line.put(id, r[10], r[4])
        if hold and r[10] and hold.whose == 'lane' and line.hold then
          line.hold(r[10], hold.ms)
        elseif hold then
          local limit = limits(base, now)
          limit.hold(hold.ms)
          limit.park()
        end
      end
    end
    code = 1
  end
  codes[#codes + 1] = code
end
count(base, 'failed', buried)
if family then family.finish() end
line.left(held)
line.finish()
if parked > 0 then announce_if_earlier(base, earliest, schedule, now) end
publish_news(base)
return codes
