-- schedule_list: one page of the repeating schedules, the next to run first, paused ones last; or those that are due.
-- KEYS schedules base
-- ARGV offset, limit, max_bytes (a page ends early rather than carry more; it holds at least one), due(0/1: only those)
-- Answers now, how many there are, milliseconds until the first that is not due or -1, then per schedule: key, next slot, and
-- the flat fields and values of its row.
local schedules, base = KEYS[1], KEYS[2]
local offset, limit, left = int(ARGV[1] or '', 0, MAX_INT), int(ARGV[2] or '', 1, 1000), int(ARGV[3] or '', 1, MAX_INT)
local due = ARGV[4]
if not (offset and limit and left) or (due ~= '0' and due ~= '1') then
  return refuse('EMQARG', 'schedule_list: offset, limit, max_bytes or due is malformed')
end
local bad = mistyped('zset', schedules)
if bad then return bad end

local now = server_ms()
local most = due == '1' and spell(now) or '+inf'
local members = call('ZRANGEBYSCORE', schedules, '-inf', most, 'WITHSCORES', 'LIMIT', offset, limit)
local later = call('ZRANGEBYSCORE', schedules, '(' .. spell(now), '(' .. spell(MAX_INT), 'WITHSCORES', 'LIMIT', 0, 1)[2]
local answer = { now, call('ZCARD', schedules), later and tonumber(later) - now or -1 }
for i = 1, #members, 2 do
  local row = redis.pcall('HGETALL', base .. 'schedule:' .. members[i])
  if row.err then row = {} end
  for f = 2, #row, 2 do left = left - #row[f] end
  if left < 0 and i > 1 then break end
  answer[#answer + 1] = { members[i], members[i + 1], row }
end
return answer
