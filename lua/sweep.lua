-- sweep x n: kept results of an obliterated queue. They stand in no set, so their caller finds them by SCAN.
-- KEYS pending base
-- ARGV ids
-- Answers how many rows went; a row that is not `done` is left alone.
local base = KEYS[2]
local rows = {}
for _, id in ipairs(ARGV) do
  local row = base .. 'job:' .. id
  if redis.pcall('HGET', row, 'state') == 'done' then rows[#rows + 1] = row end
end
return chunked('DEL', nil, rows)
