-- list: one page of a set, in its order, with the rows. Behind `pending` come the lanes, those with most jobs waiting first.
-- KEYS set base
-- ARGV offset, limit, max_bytes (a page ends early rather than carry more payload; it holds at least one job); of pending also a
-- lane: only its jobs, those without one for ''
-- Answers the size of the set, with the lanes' if it is pending, then per job: id, score, and the flat fields and values of its row.
local set, base = KEYS[1], KEYS[2]
local offset, limit, left = int(ARGV[1] or '', 0, MAX_INT), int(ARGV[2] or '', 1, 1000), int(ARGV[3] or '', 1, MAX_INT)
if not (offset and limit and left) then return refuse('EMQARG', 'list: offset, limit or max_bytes is malformed') end
local lane = set == base .. 'pending' and ARGV[4]
if lane and lane ~= '' then set = base .. 'lane:' .. lane end
local bad = mistyped('zset', set) or mistyped('zset', base .. 'lanes:waiting')
if bad then return bad end

local members = call('ZRANGE', set, offset, offset + limit - 1, 'WITHSCORES')
local size = call('ZCARD', set)
if set == base .. 'pending' and not lane and call('EXISTS', base .. 'lanes:floor') == 1 then
  local index, skip, from = base .. 'lanes:waiting', math.max(0, offset - size), 0
  local in_lanes = redis.pcall('GET', base .. 'lanes:total')
  size = size + (type(in_lanes) == 'string' and number_of(in_lanes, 0) or 0)
  local more = true
  while more and #members < 2 * limit do
    -- By rank: by score, what LIMIT skips is gone through, again for every hundred.
    local busiest = call('ZREVRANGE', index, from, from + 99, 'WITHSCORES')
    from, more = from + 100, #busiest == 200
    for i = 1, #busiest, 2 do
      local waiting = tonumber(busiest[i + 1])
      if waiting < 1 then -- the rest is empty
        more = false
        break
      end
      local room = limit - #members / 2
      if skip >= waiting then
        skip = skip - waiting
      elseif room > 0 then
        for _, member in ipairs(redis.pcall('ZRANGE', base .. 'lane:' .. busiest[i], skip, skip + room - 1, 'WITHSCORES')) do
          members[#members + 1] = member
        end
        skip = 0
      end
    end
  end
end

local answer = { size }
for i = 1, #members, 2 do
  local row = redis.pcall('HGETALL', base .. 'job:' .. members[i])
  if row.err then row = {} end
  for f = 2, #row, 2 do left = left - #row[f] end
  if left < 0 and i > 1 then break end
  answer[#answer + 1] = { members[i], members[i + 1], row }
end
return answer
