-- A queue's lanes as a step finds and leaves them, and the line they make: jobs join a lane, leave it, or are taken.
--
-- A lane is in exactly one place: its ring (it can give a job now), `lanes:parked` (its rate, or a hold, says when), or nowhere
-- (empty, paused, at its cap). So a claim never looks at a lane that is blocked. Every step that touches a lane ends with `place`,
-- which says where it belongs; whose turn it is in a ring says _lane_turns.lua.
--
-- A lane's name is that of its row's field `lane`; '' is the lane of the jobs without one, which stand in `pending`. A lane of a
-- group is called group SEP lane, and the group, which stands for its lanes in the outer ring, group SEP.

-- Can a lane have this name, or these two: its group and its own?
local function lane_named(name)
  if #name > 401 then return end
  local group, lane = string.match(name, '^([^\31]*)\31([^\31]*)$')
  if group then return #group > 0 and #group <= 200 and #lane > 0 and #lane <= 200 end
  return #name > 0 and #name <= 200 and not string.find(name, '\31', 1, true)
end

-- The line of a queue that has lanes.
local function laned_line(base)
  -- A lane that owes nothing enters a tenth of a turn behind the floor, if others wait. At the floor itself lanes that are new at
  -- every claim would stop virtual time, and who has had a turn would wait behind them for ever.
  local ENTRY = 100
  local MOST_BROUGHT_BACK = 16

  local parked = base .. 'lanes:parked'
  local t = call('TIME')
  local now = t[1] * 1000 + t[2] / 1000
  local rings, known, touched, defaults, parked_before = {}, {}, {}, nil, nil
  local was_empty, freed = call('ZCARD', base .. 'lanes') == 0, false

  -- A number of which no digit is lost.
  local function exact(n)
    return string.format('%.17g', n)
  end

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
    local of_all
    if name == '' or lane.is_group then
      of_all = {}
    else
      if not defaults then
        defaults = redis.pcall('HMGET', base .. 'lanes:defaults', 'weight', 'cap', 'interval', 'burst', 'max_waiting')
        if defaults.err then defaults = {} end
      end
      of_all = defaults
    end
    -- '-' is none, whatever the default says
    lane.weight, lane.cap = number_of(s[1] or of_all[1], 0.1) or 1, number_of(s[2] or of_all[2], 1)
    lane.interval, lane.burst = number_of(s[3] or of_all[3], 0), number_of(s[4] or of_all[4], 1) or 1
    lane.max_waiting = number_of(s[5] or of_all[5], 1)
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

  -- It is looked at again then.
  local function park(name, when)
    parked_before = parked_before or { first_score(parked) }
    call('ZADD', parked, spell(when), name)
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
        park(lane.name, math.ceil(when))
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

  -- What whoever deals with the lanes of this step knows and does.
  local book = {
    base = base, now = now, rings = rings, touched = touched, exact = exact, ring_of = ring_of, card = card, at = at,
    turn = turn, touch = touch, place = place, park = park, change = change, forgiving = false, sweeping = false,
  }

  -- Jobs (flat, a score and an id) join their lane.
  local function add(name, scored)
    if #scored == 0 then return end
    local lane = of_row(name)
    lane.n = lane.n + zadd(lane.key, scored)
    touch(lane)
  end

  local function put(id, name, priority)
    add(name, { priority_of(priority), id })
  end

  -- A job that waits leaves its lane.
  local function drop(id, name)
    local lane = of_row(name)
    local gone = call('ZREM', lane.key, id)
    lane.n = lane.n - gone
    touch(lane)
    return gone
  end

  -- These jobs are no longer active: that gives their lanes' caps back. Found by their ids: a row may have been deleted by hand.
  local function left(ids)
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
  local function is_full(name)
    local lane = of_row(name)
    return lane.max_waiting and lane.n >= lane.max_waiting
  end

  -- Nothing of the lane is claimed for so long.
  local function hold(name, ms)
    local lane = of_row(name)
    change(lane, 'until', math.min(math.max(lane.hold, now + ms), MAX_INT))
  end

  -- Its settings have changed.
  local function judge(name)
    touch(at(name))
  end

  -- Parked lanes whose time has come. Answers how many there were.
  local function bring_back()
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
  local function forgive()
    book.forgiving = true
  end

  -- This step has time to forget idle lanes.
  local function sweep()
    book.sweeping = true
  end

  local turns

  -- Takes up to n jobs out of the lanes whose turn it is. Answers their ids and their lanes.
  local function take(n)
    turns = turns or lane_turns(book)
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
  local function ghost(lane)
    if lane.name ~= '' then change(lane, 'active', lane.active - 1) end
  end

  local function claimable()
    return call('ZCARD', base .. 'lanes')
  end

  -- `quiet`: nobody need be woken.
  local function finish(quiet)
    settle_lanes(book)
    if parked_before then announce_if_earlier(base, parked_before[1], parked, math.floor(now), 'park:') end
    if quiet or not (was_empty or (freed and in_use(base).limits)) then return end
    if claimable() > 0 and call('EXISTS', base .. 'paused') == 0 then wake(base) end
  end

  return {
    add = add, put = put, drop = drop, left = left, is_full = is_full, hold = hold, judge = judge, bring_back = bring_back,
    forgive = forgive, sweep = sweep, take = take, ghost = ghost, claimable = claimable, finish = finish,
  }
end
