-- What a step leaves behind of the lanes that it has touched: how each stands is written down, and idle lanes are forgotten
-- (docs/adr/0008-idle-lanes-owe-nothing.md).

local SWEEPING = SEP .. SEP -- begins the member of `lanes:parked` that stands for a ring with more idle lanes than one step forgets

-- The lanes first, since a group stands by what stands in its ring. `book`: see _lanes.lua.
local function settle_lanes(book)
  local MOST_TIDIED, MOST_SWEPT = 16, 300 -- of a ring's idle lanes, beyond twice those touched; the other in a step that has time
  local base, now, index, rings, touched = book.base, book.now, book.base .. 'lanes:waiting', book.rings, book.touched
  local at, ring_of, card, exact = book.at, book.ring_of, book.card, book.exact
  local place, touch, park = book.place, book.touch, book.park

  -- Keeps nothing of a lane that is idle and has no settings: it owes nothing to the others once the floor has reached its tag.
  -- What it owes to its own rate ends with the row.
  local function forget(lane)
    local owed = math.max(lane.hold, lane.tat) - now
    if owed > 0 and not lane.is_group and not book.forgiving then
      redis.pcall('HDEL', lane.state, 'tag', 'active')
      call('PEXPIRE', lane.state, spell(math.ceil(owed)))
    else
      call('DEL', lane.state)
    end
    if call('ZREM', index, lane.name) == 1 and lane.group then
      local group = at(lane.group)
      redis.pcall('HINCRBY', group.state, 'lanes', -1)
      touch(group)
    end
  end

  local function is_idle(lane)
    if lane.n > 0 or lane.configured or lane.name == '' then return false end
    if lane.is_group then
      local lanes_of_it = redis.pcall('HGET', lane.state, 'lanes')
      return not (type(lanes_of_it) == 'string' and number_of(lanes_of_it, 1))
    end
    return lane.active <= 0
  end

  -- What is written down of a lane: where it stands, how many wait there, and what it will be judged by.
  local function save(lane)
    place(lane)
    if lane.changes then
      local fields = {}
      for field, value in pairs(lane.changes) do
        fields[#fields + 1], fields[#fields + 2] = field, exact(value)
      end
      redis.pcall('HSET', lane.state, unpack(fields))
      lane.changes = nil
    end
    if lane.fading then
      call('PERSIST', lane.state)
      lane.fading = nil
    end
    if lane.name == '' then return end
    local counted, n = call('ZSCORE', index, lane.name), lane.is_group and 0 or lane.n
    if not counted or tonumber(counted) ~= n then
      call('ZADD', index, n, lane.name)
      local more = n - (tonumber(counted or 0) or 0)
      if more ~= 0 then redis.pcall('INCRBY', base .. 'lanes:total', more) end
      if not counted and lane.group then
        redis.pcall('HINCRBY', at(lane.group).state, 'lanes', 1)
      end
    end
    if is_idle(lane) then
      if lane.tag <= lane.ring.floor then forget(lane) else redis.pcall('ZADD', lane.ring.idle, exact(lane.tag), lane.name) end
      lane.ring.moved = true
    end
  end

  local function keep_floor(ring)
    if ring.group then
      local state = at(ring.group).state
      if call('EXISTS', state) == 1 then redis.pcall('HSET', state, 'floor', exact(ring.floor)) end
    else
      call('SET', base .. 'lanes:floor', exact(ring.floor))
    end
  end

  -- Nobody waits in a ring that is empty: what its idle lanes owe is owed to nobody, and virtual time may go on to its end. As
  -- many lanes are forgotten as were touched, and some more, so that they do not heap up; the leader comes for what is left.
  local function tidy(ring)
    if card(ring.key) == 0 then
      local last = redis.pcall('ZREVRANGE', ring.idle, 0, 0, 'WITHSCORES')
      ring.floor = math.max(ring.floor, number_of(last[2], 0) or 0)
    end
    local most = (book.sweeping and MOST_SWEPT or MOST_TIDIED) + 2 * #touched
    local past = redis.pcall('ZRANGEBYSCORE', ring.idle, '-inf', exact(ring.floor), 'LIMIT', 0, most)
    for _, name in ipairs(past) do
      call('ZREM', ring.idle, name)
      local lane = at(name)
      if is_idle(lane) then forget(lane) end
    end
    if #past == most then
      park(SWEEPING .. ring.name, math.floor(now))
    end
    keep_floor(ring)
    ring.moved = false
  end

  local groups, inner = {}, {}
  for _, lane in ipairs(touched) do
    if not lane.is_group then
      save(lane)
      if lane.group then touch(at(lane.group)) end
    end
  end
  for _, ring in pairs(rings) do
    if ring.moved and ring.group then inner[#inner + 1] = ring end
  end
  for _, ring in ipairs(inner) do tidy(ring) end
  for _, lane in ipairs(touched) do
    if lane.is_group then groups[#groups + 1] = lane end
  end
  for _, group in ipairs(groups) do
    group.n = card(group.inner.key) or 0
    save(group)
  end
  local outer = ring_of('')
  if outer.moved then tidy(outer) end
  for i, lane in ipairs(touched) do lane.touched, touched[i] = nil, nil end
end
