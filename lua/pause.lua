-- pause: from this step on nothing of the queue is claimed. Its processes are told to give back what has not started.
-- KEYS paused base
-- Answers 1 changed, 0 already paused.
local paused, base = KEYS[1], KEYS[2]
if call('EXISTS', paused) == 1 then return 0 end
call('SET', paused, 1)
redis.pcall(PUBLISH, base .. 'beat', 'pause')
return 1
