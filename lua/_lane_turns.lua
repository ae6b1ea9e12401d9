-- Whose turn it is in the rings of a queue's lanes, by start-time fair queueing. Virtual time is a ring's own: `floor` is the start
-- tag served last; a claim serves the lowest tag, and moves it on by 1000 / weight.

-- Of the lanes in `book` (see _lanes.lua): answers a function that says whose turns the next n jobs are.
local function lane_turns(book)
  local GROUP_WINDOW = 16 -- lanes of a group that are looked at together
  local at, ring_of, turn, place = book.at, book.ring_of, book.turn, book.place
  local touch, change, touched, now = book.touch, book.change, book.touched, book.now

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
  return function(n)
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
end
