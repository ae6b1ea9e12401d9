-- resume: the queue is claimed again; a hungry process is woken if something is claimable.
-- KEYS paused base
-- Answers 1 changed, 0 not paused.
local paused, base = KEYS[1], KEYS[2]
local bad = line_refusal(base)
if bad then return bad end
if call('DEL', paused) == 0 then return 0 end
if the_line(base).claimable() > 0 then wake(base) end
return 1
