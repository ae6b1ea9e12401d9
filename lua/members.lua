-- members: a part of the members of one of a queue's sets, in no order. Who asks on until the cursor is 0 again has met each one
-- that stood there all the while, some perhaps twice, however many came and went; a set that grows does not keep it from ending.
-- KEYS pending base
-- ARGV set (`pending`, `schedule`, `dead`, `lane:<lane>`, or `lanes:waiting`, whose members are lanes), cursor (0 to begin),
-- count (about so many)
-- Answers the next cursor, 0 at the end, then the members.
local base = KEYS[2]
local set, cursor, limit = ARGV[1] or '', ARGV[2] or '', int(ARGV[3] or '', 1, 1000)
local SETS = { pending = true, schedule = true, dead = true, ['lanes:waiting'] = true }
if not SETS[set] and not string.find(set, '^lane:.') then return refuse('EMQARG', 'members: no such set') end
if #cursor > 20 or not string.find(cursor, '^%d+$') or not limit then
  return refuse('EMQARG', 'members: cursor or count is malformed')
end
local bad = mistyped('zset', base .. set)
if bad then return bad end
local part = redis.pcall('ZSCAN', base .. set, cursor, 'COUNT', limit)
if part.err then return refuse('EMQARG', 'members: cursor is malformed') end
local answer = { part[1] }
for i = 1, #part[2], 2 do answer[#answer + 1] = part[2][i] end
return answer
