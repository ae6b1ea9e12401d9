-- list: one page of a set, in its order, with the rows.
-- KEYS set base
-- ARGV offset, limit, max_bytes (a page ends early rather than carry more payload; it holds at least one job)
-- Answers the size of the set, then per job: id, score, and the flat fields and values of its row.
local set, base = KEYS[1], KEYS[2]
local offset, limit, left = int(ARGV[1] or '', 0, MAX_INT), int(ARGV[2] or '', 1, 1000), int(ARGV[3] or '', 1, MAX_INT)
if not (offset and limit and left) then return refuse('EMQARG', 'list: offset, limit or max_bytes is malformed') end
local bad = mistyped('zset', set)
if bad then return bad end
local answer = { call('ZCARD', set) }
local members = call('ZRANGE', set, offset, offset + limit - 1, 'WITHSCORES')
for i = 1, #members, 2 do
  local row = redis.pcall('HGETALL', base .. 'job:' .. members[i])
  if row.err then row = {} end
  for f = 2, #row, 2 do left = left - #row[f] end
  if left < 0 and i > 1 then break end
  answer[#answer + 1] = { members[i], members[i + 1], row }
end
return answer
