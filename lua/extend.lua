-- extend x n: the holder renews its leases; the new deadline counts from the server's now.
-- KEYS active base
-- ARGV lease_ms, then per job: id, token
-- Answers a code per job: 1 extended, 2 extended but asked to stop, 0 gone, -1 stale, -2 no longer in active.
local active, base = KEYS[1], KEYS[2]
local lease = int(ARGV[1] or '', 1, MAX_INT)
if not lease or #ARGV < 3 or #ARGV % 2 == 0 then return refuse('EMQARG', 'extend: arguments do not add up') end
local bad = mistyped('zset', active)
if bad then return bad end

local deadline = spell(math.min(server_ms() + lease, MAX_INT))
local codes, held, leases = {}, {}, {}
for i = 2, #ARGV, 2 do
  local id = ARGV[i]
  local row = base .. 'job:' .. id
  local r = redis.pcall('HMGET', row, 'attempts', 'lease_epoch', 'state', 'cancel')
  local code = r.err and 0 or holder(ARGV[i + 1], row, r)
  if code > 0 then
    if call('ZSCORE', active, id) then
      held[#held + 1] = id
      leases[#leases + 1] = deadline
      leases[#leases + 1] = id
      code = r[4] and 2 or 1
    else
      code = -2
    end
  end
  codes[#codes + 1] = code
end
-- Taken out and put in again: a ZADD alone is refused when memory is full, and renewing must never be.
zrem(active, held)
zadd(active, leases)
return codes
