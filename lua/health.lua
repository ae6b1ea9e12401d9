-- health: what tells whether a queue is served: one consistent look, which writes nothing.
-- KEYS pending base
-- Answers the leading process or '', paused 0/1, how many are pending, the id whose turn is next or '', the earliest run-at in
-- `schedule` and lease deadline in `active`, each -1 when there is none, and the server's now; times in ms.
-- Cost: O(log n), however long the queue is.
local pending, base = KEYS[1], KEYS[2]
local bad = mistyped('zset', pending) or mistyped('zset', base .. 'schedule') or mistyped('zset', base .. 'active')
  or mistyped('string', base .. 'leader')
if bad then return bad end

local waiting, line = call('ZCARD', pending), pending
local function first_of(key)
  local first = redis.pcall('ZRANGE', key, 0, 0)
  return not first.err and first[1]
end
if call('EXISTS', base .. 'lanes:floor') == 1 then
  local in_lanes = redis.pcall('GET', base .. 'lanes:total')
  waiting = waiting + (type(in_lanes) == 'string' and tonumber(in_lanes) or 0)
  local lane = first_of(base .. 'lanes')
  local group = lane and string.match(lane, '^(.+)\31$')
  if group then lane = first_of(base .. 'lanegroup:' .. group) end
  line = lane and lane ~= '' and base .. 'lane:' .. lane or pending
end
return {
  call('GET', base .. 'leader') or '', call('EXISTS', base .. 'paused'), waiting, first_of(line) or '',
  first_score(base .. 'schedule') or -1, first_score(base .. 'active') or -1, server_ms(),
}
