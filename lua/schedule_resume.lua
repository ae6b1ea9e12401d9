-- schedule_resume: a paused repeating schedule goes on with a slot its caller has counted from its spec.
-- KEYS schedules base
-- ARGV key, rev (which the caller has seen), next slot
-- Answers 1 resumed, 0 gone, -1 changed meanwhile, -2 not paused.
local schedules, base, key = KEYS[1], KEYS[2], ARGV[1] or ''
local row, next_slot = base .. 'schedule:' .. key, int(ARGV[3] or '', 1, MAX_INT)
if not next_slot then return refuse('EMQARG', 'schedule_resume: next slot is malformed') end
local bad = mistyped('zset', schedules) or mistyped('hash', row)
if bad then return bad end
local h = call('HMGET', row, 'rev', 'paused')
if not h[1] then return 0 end
if h[1] ~= ARGV[2] then return -1 end
if not h[2] then return -2 end
local before = first_score(schedules)
call('ZREM', schedules, key)
call('ZADD', schedules, ARGV[3], key)
call('HDEL', row, 'paused')
announce_if_earlier(base, before, schedules, server_ms(), 'slot:')
return 1
