-- brand: the version fence. Stamps the brand where there is none.
-- KEYS version nodes (in a cluster also: the queue's version and pending)
-- ARGV brand
-- Answers the brand that stands there.
local bad = mistyped('string', KEYS[1])
if bad then return bad end
if (ARGV[1] or '') == '' then return refuse('EMQARG', 'brand: there is none') end
local found = call('GET', KEYS[1])
if found then return found end
call('DEL', KEYS[1]) -- a first write that full memory lets through
call('SET', KEYS[1], ARGV[1])
return ARGV[1]
