-- promote: jobs whose time has come go to pending or to their lane, at their own priority.
-- KEYS schedule pending base
-- ARGV limit
-- Answers moved, next run-at or -1, milliseconds until then or -1.
local schedule, base = KEYS[1], KEYS[3]
local limit = int(ARGV[1] or '', 1, 1000)
if not limit then return refuse('EMQARG', 'promote: limit is not an integer from 1 to 1000') end
local bad = mistyped('zset', schedule) or line_refusal(base)
if bad then return bad end

local now = server_ms()
local due = call('ZRANGEBYSCORE', schedule, '-inf', now, 'LIMIT', 0, limit)
local moved = 0
if #due > 0 then
  local line = the_line(base)
  zrem(schedule, due)
  for _, id in ipairs(due) do
    local row = base .. 'job:' .. id
    local r = redis.pcall('HMGET', row, 'state', 'priority', 'lane')
    if not r.err and r[1] then
      call('HSET', row, 'state', 'pending')
      line.put(id, r[3], r[2])
      moved = moved + 1
    end
  end
  line.finish()
end
local next_at = first_score(schedule)
if not next_at then return { moved, -1, -1 } end
return { moved, next_at, math.max(0, next_at - now) }
