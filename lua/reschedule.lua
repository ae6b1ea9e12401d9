-- reschedule x n: a job that waits for its time gets another time.
-- KEYS schedule pending base
-- ARGV per job: id, delay ('' or a time that has passed = now)
-- Answers a code per job: 1 changed, 0 gone, -2 not waiting for a time (it has been promoted, or runs).
local schedule, base = KEYS[1], KEYS[3]
if #ARGV < 2 or #ARGV % 2 ~= 0 then return refuse('EMQARG', 'reschedule: arguments do not add up') end
local now = server_ms()
local runs = {}
for i = 1, #ARGV, 2 do
  runs[i] = run_at(ARGV[i + 1], now)
  if not runs[i] then return refuse('EMQARG', 'reschedule: delay is not canonical milliseconds') end
end
local bad = mistyped('zset', schedule) or line_refusal(base)
if bad then return bad end

local line, earliest = the_line(base), first_score(schedule)
local codes, parked = {}, 0
for i = 1, #ARGV, 2 do
  local id, row = ARGV[i], base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'state', 'priority', 'lane')
  local code = 0
  if not r.err and r[1] then
    code = -2
    if r[1] == 'scheduled' and call('ZREM', schedule, id) == 1 then
      if runs[i] > 0 then
        call('ZADD', schedule, runs[i], id)
        parked = parked + 1
      else
        call('HSET', row, 'state', 'pending')
        line.put(id, r[3], r[2])
      end
      code = 1
    end
  end
  codes[#codes + 1] = code
end
line.finish()
if parked > 0 then announce_if_earlier(base, earliest, schedule, now) end
return codes
