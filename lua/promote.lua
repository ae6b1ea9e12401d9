-- promote: jobs whose time has come go to pending, at their own priority.
-- KEYS schedule pending base
-- ARGV limit
-- Answers moved, next run-at or -1, milliseconds until then or -1.
local schedule, pending, base = KEYS[1], KEYS[2], KEYS[3]
local limit = int(ARGV[1] or '', 1, 1000)
if not limit then return refuse('EMQARG', 'promote: limit is not an integer from 1 to 1000') end
local bad = mistyped('zset', schedule) or mistyped('zset', pending) or mistyped('zset', base .. 'hungry')
if bad then return bad end

local now = server_ms()
local due = call('ZRANGEBYSCORE', schedule, '-inf', now, 'LIMIT', 0, limit)
local moved = {}
if #due > 0 then
  local before = call('ZCARD', pending)
  zrem(schedule, due)
  for _, id in ipairs(due) do
    local row = base .. 'job:' .. id
    local r = redis.pcall('HMGET', row, 'state', 'priority')
    if not r.err and r[1] then
      call('HSET', row, 'state', 'pending')
      moved[#moved + 1] = priority_of(r[2])
      moved[#moved + 1] = id
    end
  end
  zadd(pending, moved)
  if #moved > 0 then wake_if_new(base, before) end
end
local next_at = first_score(schedule)
if not next_at then return { #moved / 2, -1, -1 } end
return { #moved / 2, next_at, math.max(0, next_at - now) }
