-- promote: jobs whose time has come go to pending or to their lane, at their own priority.
-- KEYS schedule pending base
-- ARGV limit
-- Answers moved, next run-at or -1, microseconds until then or -1.
-- Cost: per job one HMGET, one HSET; per call one ZREM, one ZADD.
local schedule, pending, base = KEYS[1], KEYS[2], KEYS[3]
local limit = int(ARGV[1] or '', 1, 1000)
if not limit then return refuse('EMQARG', 'promote: limit is not an integer from 1 to 1000') end
if not WHOLE and in_use(base, base .. 'heard') then return beyond() end
local bad = mistyped('zset', schedule)
if WHOLE then
  bad = bad or line_refusal(base)
else
  bad = bad or mistyped('zset', pending) or mistyped('zset', base .. 'hungry')
end
if bad then return bad end

local now_us = server_us()
local now = math.floor(now_us / 1000)
local due = call('ZRANGEBYSCORE', schedule, '-inf', now, 'LIMIT', 0, limit)
local moved, plain = 0, {} -- flat, priorities and ids of a queue of plain jobs
if #due > 0 then
  local line = WHOLE and the_line(base)
  zrem(schedule, due)
  for _, id in ipairs(due) do
    local row = base .. 'job:' .. id
    local r = redis.pcall('HMGET', row, 'state', 'priority', 'lane')
    if not r.err and r[1] then
      call('HSET', row, 'state', 'pending')
      moved = moved + 1
      if line then
        line.put(id, r[3], r[2])
      else
        plain[2 * moved - 1], plain[2 * moved] = priority_of(r[2]), id
      end
    end
  end
  if line then
    line.finish()
  elseif moved > 0 then
    local was_empty = call('ZCARD', pending) == 0
    zadd(pending, plain)
    if was_empty and call('EXISTS', base .. 'paused') == 0 then wake(base) end
  end
end
local next_at = first_score(schedule)
if not next_at then return { moved, -1, -1 } end
return { moved, next_at, math.max(0, next_at * 1000 - now_us) }
