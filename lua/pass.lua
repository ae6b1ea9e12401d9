-- pass: a process that was woken and has no free slot hands the wake-up on.
-- KEYS pending base
-- ARGV process
-- Answers 1 when another process was woken.
local base = KEYS[2]
if not ARGV[1] then return refuse('EMQARG', 'pass: process is missing') end
local bad = line_refusal(base)
if bad then return bad end
call('ZREM', base .. 'hungry', ARGV[1])
if the_line(base).claimable() > 0 and call('EXISTS', base .. 'paused') == 0 then return wake(base) end
return 0
