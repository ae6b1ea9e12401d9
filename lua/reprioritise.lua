-- reprioritise x n: another priority, kept only if it is not 0. A job that is pending takes its new place in the same step; any
-- other will when it goes back to pending.
-- KEYS pending base
-- ARGV per job: id, priority
-- Answers a code per job: 1 changed, 0 gone, -2 done.
local pending, base = KEYS[1], KEYS[2]
if #ARGV < 2 or #ARGV % 2 ~= 0 then return refuse('EMQARG', 'reprioritise: arguments do not add up') end
for i = 2, #ARGV, 2 do
  if not int(ARGV[i], -MAX_INT, MAX_INT) then return refuse('EMQARG', 'reprioritise: priority is not an integer') end
end
local bad = mistyped('zset', pending)
if bad then return bad end

local codes = {}
for i = 1, #ARGV, 2 do
  local id, priority, row = ARGV[i], ARGV[i + 1], base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'state', 'lane')
  local code = 0
  if not r.err and r[1] then
    code = -2
    if r[1] ~= 'done' then
      call('HDEL', row, 'priority') -- a first write that full memory lets through
      if priority ~= '0' then call('HSET', row, 'priority', priority) end
      if r[1] == 'pending' then
        redis.pcall('ZADD', r[2] and base .. 'lane:' .. r[2] or pending, 'XX', priority, id) -- a lane's key may be anything
      end
      code = 1
    end
  end
  codes[#codes + 1] = code
end
return codes
