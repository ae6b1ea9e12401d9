-- A tree that is to land, as a list of tokens, and the look at it before anything is written: is it well-formed, which of its ids
-- have to be free, and are they? lib/wire/tree-tokens.ts writes these lists.
--
-- A tree is a flat list of tokens:
--   node     id, payload, delay, nfields, field, value ..., children
--   alike    a, and if that is not 0: nfields, field, value ..., a times id, payload: nodes for now, without children, which
--            share these fields
--   children m, and if that is not 0: alike; n; g; m - a times `queue|id`; n nodes of this queue; o, o times the queue and the
--            packed nodes it is owed. Named first are the n nodes, in their order; then g that a user may have given an id;
--            the rest were minted for this call, so that their ids can be neither taken nor double, and are not looked at
--   packed   a list of tokens: alike; n, n nodes

-- Of a tree that is to land in `queue`.
local function tree_inspector(base, queue)
  local this = {}

  local CLIENT_FIELDS = {
    priority = true, max_stalls = true, lane = true, parent = true, parent_queue = true, parent_policy = true,
  }
  -- Of those that are not looked at so many are after all, the last: where the landing of a tree is sent again whose root has
  -- run already, it is they that may still be there.
  local LAST_LOOK = 50

  local DIGITS = { ['0'] = 0, ['1'] = 1, ['2'] = 2, ['3'] = 3, ['4'] = 4 } -- nearly all of them, at no cost

  local function number(tokens, i, most)
    local text = tokens[i] or ''
    local digit = DIGITS[text]
    if digit and digit <= (most or digit) then return digit end
    return int(text, 0, most or MAX_INT)
  end

  local function minted(id)
    return id and #id == MINTED_BYTES and string.find(id, MINTED)
  end

  -- What is found of a tree: `inline`, how many nodes are written at once; `rows` of this queue that are looked at, also of nodes
  -- that are owed; `seen`, ids that are looked at; `twice`, one that stands twice. `members`, a list, takes the outermost children
  -- that are looked at.
  function this.nothing_found(members)
    return { inline = 0, rows = {}, seen = {}, members = members }
  end

  local function look(found, id, here)
    local seen, rows = found.seen, found.rows
    if seen[id] then found.twice = id end
    seen[id] = true
    if here then rows[#rows + 1] = base .. 'job:' .. id end
  end

  -- Each looks at a part and answers where the next token is, or nil and what is wrong.
  local inspect_children

  local function inspect_fields(tokens, i, found)
    local fields = number(tokens, i, 8)
    if not fields then return nil, 'fields do not add up' end
    for f = i + 1, i + 2 * fields, 2 do
      local name, value = tokens[f], tokens[f + 1]
      if not CLIENT_FIELDS[name or ''] or not value then return nil, 'a client may not set this field' end
      if name == 'priority' and not int(value, -MAX_INT, MAX_INT) then return nil, 'priority is not an integer' end
      if name == 'max_stalls' and not int(value, 0, MAX_INT) then return nil, 'max_stalls is not an integer' end
      if name == 'lane' then
        if not lane_named(value) then return nil, 'lane is not one or two names of 1 to 200 bytes' end
        found.laned = true
      end
    end
    return i + 1 + 2 * fields
  end

  local function inspect_node(tokens, i, found)
    if not minted(tokens[i]) then return nil, 'not a minted id' end
    if not tokens[i + 1] or not run_at(tokens[i + 2] or '?', 0) then return nil, 'a delay is not canonical milliseconds' end
    local after, fault = inspect_fields(tokens, i + 3, found)
    if not after then return nil, fault end
    found.inline = found.inline + 1
    return inspect_children(tokens, after, found)
  end

  -- Answers also how many there are.
  local function inspect_alike(tokens, i, found)
    local alike = number(tokens, i, 1000)
    if not alike then return nil, 'nodes that are alike do not add up' end
    if alike == 0 then return i + 1, 0 end
    local at, fault = inspect_fields(tokens, i + 1, found)
    if not at then return nil, fault end
    local after = at + 2 * alike
    if after > #tokens + 1 then return nil, 'nodes that are alike do not add up' end
    for k = at, after - 2, 2 do
      if not minted(tokens[k]) then return nil, 'not a minted id' end
      look(found, tokens[k], true)
    end
    found.inline = found.inline + alike
    return after, alike
  end

  function inspect_children(tokens, i, found)
    local all = number(tokens, i, #tokens - i)
    if not all then return nil, 'children do not add up' end
    if all == 0 then return i + 1 end
    local ours, members = queue .. '|', found.members
    found.members = nil
    local at, alike = inspect_alike(tokens, i + 1, found)
    if not at then return nil, alike end
    if members then
      for k = at - 2 * alike, at - 2, 2 do members[#members + 1] = ours .. tokens[k] end
    end
    local first, last = at + 2, at + 1 + all - alike
    local inline = number(tokens, at, all - alike)
    local given = inline and number(tokens, at + 1, all - alike - inline)
    if not given or last > #tokens then return nil, 'children do not add up' end
    local looked, again = first + inline + given, last - LAST_LOOK
    local byte, sub = string.byte, string.sub
    for m = first, last do -- there may be tens of thousands
      local member = tokens[m]
      local bar, letter = byte(member, -15, -14)
      if bar ~= 124 or letter ~= 74 then return nil, 'a child is not named queue|id' end
      if m < looked or m > again then
        look(found, sub(member, -14), sub(member, 1, -15) == ours)
        if members then members[#members + 1] = member end
      end
    end
    i = last + 1
    for m = first, first + inline - 1 do
      if tokens[m] ~= ours .. (tokens[i] or '') then return nil, 'a node is no child of its parent' end
      local after, fault = inspect_node(tokens, i, found)
      if not after then return nil, fault end
      i = after
    end
    local owed = number(tokens, i)
    if not owed or i + 2 * owed > #tokens then return nil, 'what is owed does not add up' end
    for o = i + 1, i + 2 * owed, 2 do
      if not names_queue(tokens[o]) then return nil, 'something is owed to what is no queue' end
    end
    return i + 1 + 2 * owed
  end

  this.node, this.children = inspect_node, inspect_children

  function this.packed(tokens, found)
    local i, fault = inspect_alike(tokens, 1, found)
    if not i then return nil, fault end
    local nodes = number(tokens, i, 1000)
    if not nodes then return nil, 'a landing is no list of nodes' end
    i = i + 1
    for _ = 1, nodes do
      look(found, tokens[i] or '', true)
      i, fault = inspect_node(tokens, i, found)
      if not i then return nil, fault end
    end
    if i ~= #tokens + 1 then return nil, 'a landing is more than its nodes' end
    return i
  end

  -- No id that was looked at is taken.
  function this.are_free(found)
    return not found.twice and chunked('EXISTS', nil, found.rows) == 0
  end

  return this
end
