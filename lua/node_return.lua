-- node_return: a process that stops gives its node number back; the next owner mints above its last id.
-- KEYS nodes nodes:owner
-- ARGV process, number, first free millisecond
-- Answers 1 given back, 0 it was not its own any more.
local nodes, owners = KEYS[1], KEYS[2]
if not int(ARGV[3] or '', 0, MAX_INT) then return refuse('EMQARG', 'node_return: millisecond is not an integer from 0') end
local bad = mistyped('zset', nodes) or mistyped('hash', owners)
if bad then return bad end
if call('HGET', owners, ARGV[2]) ~= ARGV[1] then return 0 end
call('ZADD', nodes, ARGV[3], ARGV[2])
return 1
