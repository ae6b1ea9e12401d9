-- lane_list: one page of the lanes that are known, those with most jobs waiting first; groups among them, with none.
-- KEYS lanes base
-- ARGV offset, limit; or '', '' and the name of one; or these with '' and `all`: what holds for lanes without settings of their own
-- Answers how many are known, then per lane: name, jobs waiting, jobs active, milliseconds until it can give a job (0 now, -1 when
-- time does not say), and the flat fields and values of its state.
local lanes_key, base = KEYS[1], KEYS[2]
local index = base .. 'lanes:waiting'
local bad = mistyped('zset', lanes_key) or mistyped('zset', index) or mistyped('zset', base .. 'lanes:parked')
if bad then return bad end
local names
if ARGV[3] then
  names = { ARGV[3] }
else
  local offset, limit = int(ARGV[1] or '', 0, MAX_INT), int(ARGV[2] or '', 1, 1000)
  if not (offset and limit) then return refuse('EMQARG', 'lane_list: offset or limit is malformed') end
  names = call('ZREVRANGE', index, offset, offset + limit - 1)
end
local now = server_ms()
local answer = { call('ZCARD', index) }
for _, name in ipairs(names) do
  local group, lane = string.match(name, '^([^\31]*)\31(.*)$')
  local is_group = group and lane == ''
  local key = is_group and base .. 'lanegroupstate:' .. group or base .. 'lanestate:' .. name
  if ARGV[4] == 'all' then key = base .. 'lanes:defaults' end
  local ring = group and not is_group and base .. 'lanegroup:' .. group or lanes_key
  local waiting = not is_group and redis.pcall('ZCARD', name == '' and base .. 'pending' or base .. 'lane:' .. name) or 0
  local state = redis.pcall('HGETALL', key)
  if state.err then state = {} end
  local turn = -1
  local parked = call('ZSCORE', base .. 'lanes:parked', name)
  if parked then
    turn = math.max(0, math.ceil(tonumber(parked) - now))
  else
    local stands = redis.pcall('ZSCORE', ring, name)
    if type(stands) == 'string' then turn = 0 end
    -- a group that is paused stands in no ring
    if turn == 0 and ring ~= lanes_key and not call('ZSCORE', lanes_key, group .. '\31') then turn = -1 end
  end
  local active = is_group and '0' or redis.pcall('HGET', key, 'active')
  answer[#answer + 1] = {
    name, type(waiting) == 'number' and waiting or 0, type(active) == 'string' and active or '0', turn, state,
  }
end
return answer
