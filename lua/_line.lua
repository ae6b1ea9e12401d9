-- Stands between the prelude and every script that calls the_line(). Where claimable jobs stand: in `pending`, and once a queue
-- has used a lane, in its lanes, which are served by start-time fair queueing.
--
-- A lane is in exactly one place: its ring (it can give a job now), `lanes:parked` (its rate, or a hold, says when), or nowhere
-- (empty, paused, at its cap). So a claim never looks at a lane that is blocked. Every step that touches a lane ends with `place`,
-- which says where it belongs. Virtual time is a ring's own: `floor` is the start tag served last; a claim serves the lowest tag,
-- and moves it on by 1000 / weight.
--
-- A lane's name is that of its row's field `lane`; '' is the lane of the jobs without one, which stand in `pending`. A lane of a
-- group is called group SEP lane, and the group, which stands for its lanes in the outer ring, group SEP.
local SWEEPING = SEP .. SEP -- begins the member of `lanes:parked` that stands for a ring with more idle lanes than one step forgets
-- A lane that owes nothing enters a tenth of a turn behind the floor, if others wait. At the floor itself lanes that are new at every
-- claim would stop virtual time, and who has had a turn would wait behind them for ever.
local ENTRY = 100
local MOST_BROUGHT_BACK = 16
local MOST_SWEPT = 300
local GROUP_WINDOW = 16 -- lanes of a group that are looked at together

-- Can a lane have this name, or these two: its group and its own?
local function lane_named(name)
  if #name > 401 then return end
  local group, lane = string.match(name, '^([^\31]*)\31([^\31]*)$')
  if group then return #group > 0 and #group <= 200 and #lane > 0 and #lane <= 200 end
  return #name > 0 and #name <= 200 and not string.find(name, '\31', 1, true)
end

-- A number of which no digit is lost.
local function exact(n)
  return string.format('%.17g', n)
end

local function lanes(base)
  local this, parked, index = {}, base .. 'lanes:parked', base .. 'lanes:waiting'
  local t = call('TIME')
  local now = t[1] * 1000 + t[2] / 1000
  local rings, known, touched, defaults, parked_before = {}, {}, {}, nil, nil
  local most_swept = MOST_BROUGHT_BACK -- beyond those that are as many as were touched
  local was_empty = call('ZCARD', base .. 'lanes') == 0
  local freed, forgiving = false, false

  local function ring_of(group)
    local ring = rings[group]
    if not ring then
      local name = string.sub(group, 1, -2) -- without its SEP
      ring = { name = group, idle = base .. 'laneidle:' .. name, group = group ~= '' and group or nil }
      if group == '' then
        ring.key, ring.floor = base .. 'lanes', redis.pcall('GET', base .. 'lanes:floor')
      else
        ring.key, ring.floor = base .. 'lanegroup:' .. name, redis.pcall('HGET', base .. 'lanegroupstate:' .. name, 'floor')
        ring.broken = type(redis.pcall('ZCARD', ring.key)) ~= 'number'
      end
      ring.floor = type(ring.floor) == 'string' and number_of(ring.floor, 0) or 0
      rings[group] = ring
    end
    return ring
  end

  local SETTINGS = { 'weight', 'cap', 'interval', 'burst', 'max_waiting' }

  -- How many stand there; nil when it is no set, because somebody has written to it.
  local function card(key)
    local n = redis.pcall('ZCARD', key)
    return type(n) == 'number' and n or nil
  end

  -- A lane or a group, as it stands; looked up once a run.
  local function at(name)
    local lane = known[name]
    if lane then return lane end
    local sep = string.find(name, SEP, 1, true)
    lane = { name = name, group = sep and sep < #name and string.sub(name, 1, sep) or nil, is_group = sep == #name }
    lane.ring = ring_of(lane.group or '')
    if lane.ring.broken then lane.group, lane.ring = nil, ring_of('') end
    if lane.is_group then
      lane.inner, lane.state = ring_of(name), base .. 'lanegroupstate:' .. string.sub(name, 1, -2)
      lane.n = card(lane.inner.key) or 0
    else
      lane.key, lane.state = name == '' and base .. 'pending' or base .. 'lane:' .. name, base .. 'lanestate:' .. name
      lane.n = card(lane.key)
      lane.broken, lane.n = not lane.n, lane.n or 0
    end
    local s = redis.pcall('HMGET', lane.state, 'weight', 'cap', 'interval', 'burst', 'max_waiting', 'active', 'tat', 'tag',
      'until', 'paused')
    if s.err then s = {} end
    lane.configured = s[1] or s[2] or s[3] or s[4] or s[5] or s[10]
    local of_all = {}
    if name ~= '' and not lane.is_group then
      if not defaults then
        defaults = redis.pcall('HMGET', base .. 'lanes:defaults', unpack(SETTINGS))
        if defaults.err then defaults = {} end
      end
      of_all = defaults
    end
    local function setting(i, low)
      return number_of(s[i] or of_all[i], low) -- '-' is none, whatever the default says
    end
    lane.weight, lane.cap, lane.interval = setting(1, 0.1) or 1, setting(2, 1), setting(3, 0)
    lane.burst, lane.max_waiting = setting(4, 1) or 1, setting(5, 1)
    lane.active, lane.tat, lane.tag = number_of(s[6], 0) or 0, number_of(s[7], 0) or 0, number_of(s[8], 0) or 0
    lane.hold, lane.paused = number_of(s[9], 0) or 0, s[10]
    lane.fading = (s[7] or s[9]) and not s[8] -- about to be forgotten: its row has an expiry
    known[name] = lane
    return lane
  end

  -- The lane that a row names; the jobs of one that is none, because somebody has written to it, stand in `pending`.
  local function of_row(name)
    local lane = name and name ~= '' and (known[name] or (lane_named(name) and at(name)))
    if not lane or lane.is_group or lane.broken then return at('') end
    return lane
  end

  local function touch(lane)
    if not lane.touched then
      lane.touched = true
      touched[#touched + 1] = lane
    end
  end

  -- When the lane can give a job: 0 now, a time, or nil: not before something happens to it.
  local function turn(lane)
    if lane.n <= 0 or lane.paused or (lane.cap and lane.active >= lane.cap) then return end
    local free_at = lane.hold
    if lane.interval then free_at = math.max(free_at, lane.tat - (lane.burst - 1) * lane.interval) end
    return free_at > now and free_at or 0
  end

  local function place(lane)
    local when = turn(lane)
    if when == 0 then
      call('ZREM', parked, lane.name)
      local ring = lane.ring
      if lane.tag > ring.floor or (lane.changes and lane.changes.tag) then
        call('ZADD', ring.key, exact(math.max(lane.tag, ring.floor)), lane.name)
      else -- keeps its place if it has one
        local behind = call('ZCARD', ring.key) > 0 and ENTRY / lane.weight or 0
        call('ZADD', ring.key, 'NX', exact(ring.floor + behind), lane.name)
      end
    else
      call('ZREM', lane.ring.key, lane.name)
      if when then
        parked_before = parked_before or { first_score(parked) }
        call('ZADD', parked, spell(math.ceil(when)), lane.name)
      else
        call('ZREM', parked, lane.name)
      end
    end
  end

  local function change(lane, field, value)
    lane[field == 'until' and 'hold' or field] = value
    lane.changes = lane.changes or {}
    lane.changes[field] = value
    touch(lane)
  end

  -- Jobs (flat, a score and an id) join their lane.
  function this.add(name, scored)
    if #scored == 0 then return end
    local lane = of_row(name)
    lane.n = lane.n + zadd(lane.key, scored)
    touch(lane)
  end

  function this.put(id, name, priority)
    this.add(name, { priority_of(priority), id })
  end

  -- A job that waits leaves its lane.
  function this.drop(id, name)
    local lane = of_row(name)
    local gone = call('ZREM', lane.key, id)
    lane.n = lane.n - gone
    touch(lane)
    return gone
  end

  -- These jobs are no longer active: that gives their lanes' caps back. Found by their ids: a row may have been deleted by hand.
  function this.left(ids)
    freed = freed or #ids > 0
    for from = 1, #ids, CHUNK do
      local to = math.min(from + CHUNK - 1, #ids)
      local names = call('HMGET', base .. 'lanes:active', unpack(ids, from, to))
      for i, name in ipairs(names) do
        if name and call('HDEL', base .. 'lanes:active', ids[from + i - 1]) == 1 then
          local lane = lane_named(name) and at(name)
          if lane then change(lane, 'active', math.max(0, lane.active - 1)) end
        end
      end
    end
  end

  -- No more than `max_waiting` jobs may wait in a lane: is it full?
  function this.is_full(name)
    local lane = of_row(name)
    return lane.max_waiting and lane.n >= lane.max_waiting
  end

  -- Nothing of the lane is claimed for so long.
  function this.hold(name, ms)
    local lane = of_row(name)
    change(lane, 'until', math.min(math.max(lane.hold, now + ms), MAX_INT))
  end

  -- Its settings have changed.
  function this.judge(name)
    touch(at(name))
  end

  -- Parked lanes whose time has come. Answers how many there were.
  function this.bring_back()
    local due = call('ZRANGEBYSCORE', parked, '-inf', exact(now), 'LIMIT', 0, MOST_BROUGHT_BACK)
    for _, name in ipairs(due) do
      if name == QUEUE_HELD then
        call('ZREM', parked, name)
      elseif string.sub(name, 1, 2) == SWEEPING then
        call('ZREM', parked, name)
        ring_of(string.sub(name, 3)).moved = true
      else
        local lane = at(name)
        place(lane)
        if lane.group then
          lane = at(lane.group)
          lane.n = card(lane.inner.key) or 0
          place(lane)
        end
      end
    end
    return #due
  end

  -- What a lane owes to its rate is not kept: the queue goes.
  function this.forgive()
    forgiving = true
  end

  -- This step has time to forget idle lanes.
  function this.sweep()
    most_swept = MOST_SWEPT
  end

  -- A ring's first entries, as a heap: its head is the next to be served.
  local function load(ring, window)
    local found = ring.broken and {} or call('ZRANGE', ring.key, 0, window - 1, 'WITHSCORES')
    ring.heap, ring.window, ring.serial = {}, window, #found
    for i = 1, #found, 2 do
      ring.heap[(i + 1) / 2] = { score = tonumber(found[i + 1]), order = i, name = found[i] }
    end
    ring.more = #found == 2 * window
    ring.horizon = ring.more and tonumber(found[#found]) or nil
  end

  local function before(a, b)
    return a.score < b.score or (a.score == b.score and a.order < b.order)
  end

  -- The head has another score; nil takes it out.
  local function reorder(ring, score)
    local heap = ring.heap
    if score then
      ring.serial = ring.serial + 1
      heap[1].score, heap[1].order = score, ring.serial -- behind its equals
    else
      heap[1] = heap[#heap]
      heap[#heap] = nil
    end
    local i, n = 1, #heap
    while 2 * i <= n do
      local child = 2 * i
      if child < n and before(heap[child + 1], heap[child]) then child = child + 1 end
      if not before(heap[child], heap[i]) then return end
      heap[i], heap[child] = heap[child], heap[i]
      i = child
    end
  end

  -- The lane or group that a ring serves next, or nil. What stands in the ring and cannot give a job, because its settings have
  -- changed since, is placed anew.
  local function head(ring)
    while true do
      local first = ring.heap[1]
      if ring.more and (not first or first.score > ring.horizon) then
        for _, lane in ipairs(touched) do
          if lane.ring == ring then place(lane) end
        end
        load(ring, ring.window)
        first = ring.heap[1]
      end
      if not first then return end
      local lane = at(first.name)
      if lane.ring ~= ring then
        call('ZREM', ring.key, first.name) -- put there by hand
      elseif lane.is_group then
        if not lane.inner.heap then load(lane.inner, GROUP_WINDOW) end
        lane.next = head(lane.inner)
        if lane.next then return lane end
        lane.n = 0
      elseif turn(lane) == 0 then
        return lane
      end
      touch(lane)
      place(lane)
      reorder(ring)
    end
  end

  -- The head has been served: its turn comes again by its weight.
  local function served(lane)
    local ring = lane.ring
    local score = ring.heap[1].score
    if score > ring.floor then ring.floor, ring.moved = score, true end
    change(lane, 'tag', score + 1000 / lane.weight)
    local again
    if lane.is_group then
      again = #lane.inner.heap > 0 or lane.inner.more
      lane.n = again and 1 or 0
    else
      again = turn(lane) == 0
    end
    reorder(ring, again and lane.tag or nil)
  end

  -- Whose turns the next n jobs are, in order.
  local function turns(n)
    local outer, order = ring_of(''), {}
    if not outer.heap then load(outer, n + 1) end
    while #order < n do
      local first = head(outer)
      if not first then break end
      local lane = first.is_group and first.next or first
      lane.n, lane.taken = lane.n - 1, (lane.taken or 0) + 1
      if lane.name ~= '' then change(lane, 'active', lane.active + 1) end
      if lane.interval then change(lane, 'tat', math.min(math.max(lane.tat, now) + lane.interval, MAX_INT)) end
      served(lane)
      if first.is_group then served(first) end
      order[#order + 1] = lane
    end
    return order
  end

  -- Takes up to n jobs out of the lanes whose turn it is. Answers their ids and their lanes.
  function this.take(n)
    local order, ids, popped = turns(n), {}, {}
    for i, lane in ipairs(order) do
      local mine = popped[lane]
      if not mine then
        mine = call('ZPOPMIN', lane.key, lane.taken)
        lane.taken = nil
        popped[lane], mine.next = mine, 1
      end
      ids[i] = mine[mine.next]
      mine.next = mine.next + 2
    end
    return ids, order
  end

  -- What was taken had no row.
  function this.ghost(lane)
    if lane.name ~= '' then change(lane, 'active', lane.active - 1) end
  end

  -- Keeps nothing of a lane that is idle and has no settings: it owes nothing to the others once the floor has reached its tag.
  -- What it owes to its own rate ends with the row.
  local function forget(lane)
    local owed = math.max(lane.hold, lane.tat) - now
    if owed > 0 and not lane.is_group and not forgiving then
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
    local most = most_swept + 2 * #touched
    local past = redis.pcall('ZRANGEBYSCORE', ring.idle, '-inf', exact(ring.floor), 'LIMIT', 0, most)
    for _, name in ipairs(past) do
      call('ZREM', ring.idle, name)
      local lane = at(name)
      if is_idle(lane) then forget(lane) end
    end
    if #past == most then
      parked_before = parked_before or { first_score(parked) }
      call('ZADD', parked, spell(math.floor(now)), SWEEPING .. ring.name)
    end
    keep_floor(ring)
    ring.moved = false
  end

  -- Writes down what has become of the lanes that were touched: the lanes first, since a group stands by what stands in its ring.
  function this.settle()
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
    for _, lane in ipairs(touched) do lane.touched = nil end
    touched = {}
    if parked_before then announce_if_earlier(base, parked_before[1], parked, math.floor(now), 'park:') end
  end

  function this.claimable()
    return call('ZCARD', base .. 'lanes')
  end

  -- `quiet`: nobody need be woken.
  function this.finish(quiet)
    this.settle()
    if quiet or not (was_empty or (freed and in_use(base).limits)) then return end
    if this.claimable() > 0 and call('EXISTS', base .. 'paused') == 0 then wake(base) end
  end

  return this
end

-- The same without lanes.
local function no_lanes(base, limited)
  local this, pending = {}, base .. 'pending'
  local was_empty, freed = nil, false

  function this.add(_, scored)
    if #scored == 0 then return end
    if was_empty == nil then was_empty = call('ZCARD', pending) == 0 end
    zadd(pending, scored)
  end

  function this.put(id, _, priority)
    this.add('', { priority_of(priority), id })
  end

  function this.drop(id)
    return call('ZREM', pending, id)
  end

  function this.left(ids)
    freed = freed or #ids > 0
  end

  function this.claimable()
    return call('ZCARD', pending)
  end

  function this.finish()
    if not (was_empty or (freed and limited)) then return end
    if (was_empty or this.claimable() > 0) and call('EXISTS', base .. 'paused') == 0 then wake(base) end
  end

  return this
end

local line_here -- of this run

-- Where the claimable jobs of the queue stand; one a run.
local function the_line(base)
  if not line_here then
    local used = in_use(base)
    line_here = used and used.lanes and lanes(base) or no_lanes(base, used and used.limits)
  end
  return line_here
end

-- The queue has lanes from now on: its jobs without one become one of them.
local function begin_lanes(base)
  local used = in_use(base)
  if not (used and used.lanes) then
    call('SET', base .. 'lanes:floor', 0)
    use(base, 'lanes')
    line_here = lanes(base)
    line_here.judge('')
  end
  return the_line(base)
end

-- A refusal when a key where claimable jobs stand holds another type, or nil. Looked at before the first write; `begins`: of a
-- queue, too, that has no lanes yet.
local function line_refusal(base, begins)
  local bad = mistyped('zset', base .. 'pending') or mistyped('zset', base .. 'hungry')
  local used = in_use(base)
  if bad or not (begins or (used and used.lanes)) then return bad end
  return mistyped('zset', base .. 'lanes') or mistyped('zset', base .. 'lanes:parked')
    or mistyped('zset', base .. 'lanes:waiting') or mistyped('hash', base .. 'lanes:active')
end
