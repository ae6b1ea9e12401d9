-- Writes a tree that has been looked at (see _tree_tokens.lua): its rows, who waits for whom, and what other queues are owed of it.

-- `family` is what flows() has made, `inspector` what has looked at the tree.
local function tree_landing(base, family, inspector)
  local this, queue, now = {}, family.queue, nil
  local earliest, landed = nil, 0
  local ready = {} -- flat, a priority and an id: what has landed and can be claimed; nothing else in a step asks for it
  local schedule = base .. 'schedule'

  local function fields_of(tokens, first, last)
    local fields = {}
    for f = first, last - 1, 2 do fields[tokens[f]] = tokens[f + 1] end
    return fields
  end

  -- A child whose id is taken is not landed: its parent is told that it is gone, which is a death that no reprocessing can undo,
  -- and so nothing to wait for under `hold`.
  local function not_landed(id, fields)
    family.tell(id, fields, 'gone', 'the id ' .. id .. ' is taken')
  end

  local land_children

  -- Each writes a part that was looked at, and answers where the next token is. `free`: it is known that no id is taken.
  local function land_node(tokens, i, free)
    local id, row = tokens[i], base .. 'job:' .. tokens[i]
    local at = i + 4 + 2 * tonumber(tokens[i + 3])
    if not free and call('EXISTS', row) == 1 then
      not_landed(id, fields_of(tokens, i + 4, at - 1))
      return (inspector.node(tokens, i, inspector.nothing_found()))
    end
    local is_parent, run = tokens[at] ~= '0', 0
    if not is_parent and tokens[i + 2] ~= '' then
      now = now or server_ms()
      run = run_at(tokens[i + 2], now)
    end
    local state = is_parent and 'awaiting_children' or run > 0 and 'scheduled' or 'pending'
    call('HSET', row, 'state', state, 'attempts', '0', 'payload', tokens[i + 1], unpack(tokens, i + 4, at - 1))
    local given = fields_of(tokens, i + 4, at - 1)
    local priority, lane = given.priority, given.lane
    if lane then begin_lanes(base) end
    report(base, 'landed', id, '0', state)
    if priority == '0' then call('HDEL', row, 'priority') end -- a row says its priority only if it is not 0
    landed = landed + 1
    if is_parent then
      call('HSET', row, 'flow', '1')
      family.forget(row) -- records that a row deleted by hand has left
      call('ZADD', base .. 'waiting', 0, id)
      return land_children(row, tokens, at, free)
    end
    if run > 0 then
      if not earliest then earliest = { first_score(schedule) } end
      call('ZADD', schedule, spell(run), id)
    elseif lane then
      the_line(base).put(id, lane, priority)
    else
      ready[#ready + 1], ready[#ready + 2] = priority_of(priority), id
    end
    return at + 1
  end

  local function land_alike(tokens, i, free)
    local alike = tonumber(tokens[i])
    if alike == 0 then return i + 1 end
    local first = i + 2
    local at = first + 2 * tonumber(tokens[i + 1])
    local fields, jobs = fields_of(tokens, first, at - 1), base .. 'job:'
    local priority, lane = priority_of(fields.priority), fields.lane
    if lane then begin_lanes(base) end
    local n = #ready
    for k = at, at + 2 * alike - 2, 2 do
      local id = tokens[k]
      local row = jobs .. id
      if not free and call('EXISTS', row) == 1 then
        not_landed(id, fields)
      else
        if at == first + 2 then
          call('HSET', row, 'state', 'pending', 'attempts', '0', 'payload', tokens[k + 1], tokens[first], tokens[first + 1])
        else
          call('HSET', row, 'state', 'pending', 'attempts', '0', 'payload', tokens[k + 1], unpack(tokens, first, at - 1))
        end
        report(base, 'landed', id, '0', 'pending')
        if fields.priority == '0' then call('HDEL', row, 'priority') end
        landed = landed + 1
        if lane then
          the_line(base).put(id, lane, fields.priority)
        else
          ready[n + 1], ready[n + 2] = priority, id
          n = n + 2
        end
      end
    end
    return at + 2 * alike
  end

  function land_children(row, tokens, i, free)
    local all, alike, at = tonumber(tokens[i]), tonumber(tokens[i + 1]), i + 2
    local children = row .. ':children'
    if alike > 0 then
      local ours, members = queue .. '|', {}
      at = i + 3 + 2 * tonumber(tokens[i + 2])
      for k = 1, alike do members[k] = ours .. tokens[at + 2 * k - 2] end
      chunked('SADD', children, members)
      at = at + 2 * alike
    end
    local inline, last = tonumber(tokens[at]), at + 1 + all - alike
    for m = at + 2, last, CHUNK do call('SADD', children, unpack(tokens, m, math.min(m + CHUNK - 1, last))) end
    call('SET', row .. ':dependencies', family.outstanding(row))
    land_alike(tokens, i + 1, free)
    i = last + 1
    for _ = 1, inline do i = land_node(tokens, i, free) end
    local owed = tonumber(tokens[i])
    for o = i + 1, i + 2 * owed, 2 do family.owed().owe(tokens[o], 'land', 'nodes', tokens[o + 1]) end
    return i + 1 + 2 * owed
  end
  this.node, this.children = land_node, land_children

  -- What another queue owes this one. What it has said of children before is recorded first.
  function this.packed(tokens, free)
    family.record()
    local i = land_alike(tokens, 1, free)
    local nodes = tonumber(tokens[i])
    i = i + 1
    for _ = 1, nodes do i = land_node(tokens, i, free) end
  end

  -- The last words: what can be claimed, counts, and an earlier run-at.
  function this.finish()
    if #ready > 0 then the_line(base).add('', ready) end
    count(base, 'enqueued', landed)
    if earliest then announce_if_earlier(base, earliest[1], schedule, now) end
  end

  return this
end
