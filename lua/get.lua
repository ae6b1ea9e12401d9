-- get x n: rows as they are.
-- KEYS pending base
-- ARGV ids
-- Answers per job the flat fields and values of its row; empty when there is none.
local base = KEYS[2]
local answer = {}
for i, id in ipairs(ARGV) do
  local row = redis.pcall('HGETALL', base .. 'job:' .. id)
  answer[i] = row.err and {} or row
end
return answer
