-- schedule_pause: from now on no slot of a repeating schedule fires.
-- KEYS schedules base
-- ARGV key
-- Answers 1 paused, 0 gone, -2 it was.
local schedules, key = KEYS[1], ARGV[1] or ''
local row = KEYS[2] .. 'schedule:' .. key
local bad = mistyped('zset', schedules) or mistyped('hash', row)
if bad then return bad end
local h = call('HMGET', row, 'rev', 'paused')
if not h[1] then return 0 end
if h[2] then return -2 end
call('ZREM', schedules, key)
call('ZADD', schedules, spell(MAX_INT), key)
call('HSET', row, 'paused', 1)
return 1
