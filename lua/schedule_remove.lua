-- schedule_remove x n: removes repeating schedules. Jobs that they have landed stay.
-- KEYS schedules base
-- ARGV keys
-- Answers per schedule 1 removed, 0 gone.
local schedules, base = KEYS[1], KEYS[2]
if #ARGV == 0 then return refuse('EMQARG', 'schedule_remove: no schedule') end
local bad = mistyped('zset', schedules)
if bad then return bad end
local answers = {}
for i, key in ipairs(ARGV) do
  answers[i] = call('ZREM', schedules, key) + call('DEL', base .. 'schedule:' .. key) > 0 and 1 or 0
end
return answers
