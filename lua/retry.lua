-- retry x n: a failed attempt goes back to wait, at once (delay 0) or later; past its cap the job is buried.
-- KEYS active schedule dead base
-- ARGV record, then per job: id, token, delay_ms, max_attempts (0 buries), error
-- Answers per job: 'scheduled', 'pending', 'dead', or a code: 0 gone, -1 stale.
local active, schedule, dead, base = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local record = int(ARGV[1] or '', 0, MAX_INT)
if not record or #ARGV < 6 or (#ARGV - 1) % 5 ~= 0 then return refuse('EMQARG', 'retry: arguments do not add up') end
for i = 4, #ARGV, 5 do
  if not int(ARGV[i], 0, MAX_INT) then return refuse('EMQARG', 'retry: delay_ms is not an integer from 0') end
  if not int(ARGV[i + 1], 0, MAX_INT) then return refuse('EMQARG', 'retry: max_attempts is not an integer from 0') end
end
local bad = mistyped('zset', active) or mistyped('zset', schedule) or mistyped('zset', dead) or flow_refusal(base)
  or mistyped('hash', base .. 'metrics:failed') or mistyped('hash', base .. 'metrics:retried')
  or (record > 0 and mistyped('stream', base .. 'stream:completions'))
if bad then return bad end

local now, earliest = server_ms(), first_score(schedule)
local answers, buried, retried, parked, held = {}, 0, 0, 0, {}
local line = the_line(base)
local family
for i = 2, #ARGV, 5 do
  local id, row = ARGV[i], base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'attempts', 'lease_epoch', 'state', 'uncharged', 'priority', 'cancel', 'parent',
    'flow', 'awaited', 'lane')
  local answer = r.err and 0 or holder(ARGV[i + 1], row, r)
  if answer > 0 then
    if answer == 1 then
      call('ZREM', active, id)
      held[#held + 1] = id
    else
      line.drop(id, r[10])
    end
    local delay, cap = tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
    if r[6] or cap == 0 or (tonumber(r[1]) or 0) - (tonumber(r[4]) or 0) >= cap then
      local text = r[6] and 'cancelled' or ARGV[i + 4]
      bury(base, id, row, r[1], text, record, now)
      if r[7] or r[8] or r[9] then
        family = family or flows(base, record, now)
        family.buried(id, row, text)
      end
      buried, answer = buried + 1, 'dead'
    else
      call('HDEL', row, 'lapsed')
      note_error(row, r[1], ARGV[i + 4])
      retried = retried + 1
      if delay > 0 then
        call('HSET', row, 'state', 'scheduled')
        call('ZADD', schedule, math.min(now + delay, MAX_INT), id)
        parked, answer = parked + 1, 'scheduled'
      else
        call('HSET', row, 'state', 'pending')
        line.put(id, r[10], r[5])
        answer = 'pending'
      end
      report(base, 'retried', id, r[1], cut(ARGV[i + 4]))
    end
  end
  answers[#answers + 1] = answer
end
count(base, 'failed', buried)
count(base, 'retried', retried)
if family then family.finish() end
line.left(held)
line.finish()
if parked > 0 then announce_if_earlier(base, earliest, schedule, now) end
publish_news(base)
return answers
