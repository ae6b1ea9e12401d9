-- reprocess x n: out of the morgue and back to pending. The token goes on counting.
-- KEYS dead pending base
-- ARGV fresh (1: the attempts so far no longer count against the cap), then ids
-- Answers a code per job: 1, 0 gone, -2 not dead.
local dead, pending, base = KEYS[1], KEYS[2], KEYS[3]
local fresh = ARGV[1]
if (fresh ~= '0' and fresh ~= '1') or #ARGV < 2 then return refuse('EMQARG', 'reprocess: arguments do not add up') end
local bad = mistyped('zset', dead) or mistyped('zset', pending) or mistyped('zset', base .. 'hungry')
if bad then return bad end

local before = call('ZCARD', pending)
local codes, moved = {}, 0
for i = 2, #ARGV do
  local id, row = ARGV[i], base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'state', 'attempts', 'priority')
  local code = 0
  if not r.err and r[1] then
    code = -2
    if r[1] == 'dead' and call('ZREM', dead, id) == 1 then
      call('HDEL', row, 'last_error', 'cancel', 'stalls', 'lapsed')
      call('HSET', row, 'state', 'pending')
      if fresh == '1' then call('HSET', row, 'uncharged', r[2]) end
      call('ZADD', pending, priority_of(r[3]), id)
      moved, code = moved + 1, 1
    end
  end
  codes[#codes + 1] = code
end
if moved > 0 then wake_if_new(base, before) end
return codes
