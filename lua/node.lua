-- node: leases a node number for minting ids, or renews the one this process holds.
-- KEYS nodes nodes:owner
-- ARGV process, ttl_ms, start (0 to 4095, at random), held number or ''
-- Answers number, floor, expiry, now: milliseconds since 1970, as strings. A renewal answers floor 0.
local nodes, owners = KEYS[1], KEYS[2]
local process, ttl, start = ARGV[1], int(ARGV[2] or '', 1, MAX_INT), int(ARGV[3] or '', 0, 4095)
if not (process and ttl and start) then return refuse('EMQARG', 'node: arguments do not add up') end
local bad = mistyped('zset', nodes) or mistyped('hash', owners)
if bad then return bad end

local now = server_ms()
local held = ARGV[4]
if held and held ~= '' and call('HGET', owners, held) == process and call('ZSCORE', nodes, held) then
  call('ZREM', nodes, held) -- a first write that full memory lets through: who would drain it must be able to start
  call('ZADD', nodes, spell(now + ttl), held)
  return { held, '0', spell(now + ttl), spell(now) }
end
for step = 0, 4095 do
  local number = spell((start + step) % 4096)
  local expiry = tonumber(call('ZSCORE', nodes, number) or 0)
  if expiry < now then
    call('ZREM', nodes, number)
    call('ZADD', nodes, spell(now + ttl), number)
    call('HSET', owners, number, process)
    return { number, spell(math.max(expiry, now)), spell(now + ttl), spell(now) }
  end
end
return refuse('EMQSTATE', 'node: all 4096 node numbers are leased')
