-- morgue: a page of dead jobs behind an id, with their rows. They stand in mint order, so that who goes on behind the last id
-- meets each of them once, whatever leaves or enters the set meanwhile.
-- KEYS dead base
-- ARGV after ('' to begin), limit, max_bytes (a page ends early rather than carry more; it holds at least one job)
-- Answers the last id of the whole set ('' when it is empty), then per job: id, and the flat fields and values of its row.
local dead, base = KEYS[1], KEYS[2]
local after, limit, left = ARGV[1], int(ARGV[2] or '', 1, 1000), int(ARGV[3] or '', 1, MAX_INT)
if not (after and limit and left) then return refuse('EMQARG', 'morgue: limit or max_bytes is malformed') end
local bad = mistyped('zset', dead)
if bad then return bad end
local answer = { call('ZRANGE', dead, -1, -1)[1] or '' }
local ids = call('ZRANGE', dead, after == '' and '-' or '(' .. after, '+', 'BYLEX', 'LIMIT', 0, limit)
for i, id in ipairs(ids) do
  local row = redis.pcall('HGETALL', base .. 'job:' .. id)
  if row.err then row = {} end
  for f = 2, #row, 2 do left = left - #row[f] end
  if left < 0 and i > 1 then break end
  answer[#answer + 1] = { id, row }
end
return answer
