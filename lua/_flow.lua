-- Stands between the prelude and every script that calls flows(). What the end of a job means for its parent and for those
-- who wait for it, and how trees land. One closure a run: the steps are made when a job with a parent, or with children, turns up.
--
-- A parent waits in `waiting` for `dependencies` children. Its row has `flow`; a child's row names its `parent`, the
-- `parent_queue` when that is another, and the `parent_policy`. An effect on another queue is owed: it goes to the outbox in
-- the step that causes it, and is applied by the other queue's `apply`.

-- A refusal when a key that the end of a job may reach holds another type. Looked at before the first write.
local function flow_refusal(base)
  return line_refusal(base) or mistyped('zset', base .. 'waiting') or mistyped('zset', base .. 'dead')
    or mistyped('stream', base .. 'outbox')
end

-- Can a queue have this name? One that cannot would stop the whole outbox.
local function names_queue(text)
  return #text > 0 and #text <= 200 and not string.find(text, '[{}%c]')
end

local MOST_HOPS = 500 -- from parent to parent, upwards, in one step; the rest is owed to the queue itself

-- One entry of an outbox carries results of up to so many children, twice counted, and of more than one only so many bytes.
local MOST_RESULTS, MOST_BYTES = 200, 100000
local LISTED = 32 -- of up to so many children the results take as little memory as they can

local function flows(base, record, now)
  local queue = string.match(base, '{(.*)}:$')
  local flow = { fallen = {} }
  local owes, hops = false, 0
  local unnamed = {} -- rows of dead parents that have lost a child they may have named
  local tell

  -- Results that parents elsewhere are owed, by parent: those of one parent go in one entry.
  local results_owed

  local function owe_results(r)
    owes = true
    if #r.list == 2 then
      call('XADD', base .. 'outbox', '*', 'to', r.target, 'kind', 'settle', 'parent', r.parent, 'child', r.list[1],
        'how', 'done', 'policy', r.policy, 'text', r.list[2])
    elseif #r.list > 2 then
      call('XADD', base .. 'outbox', '*', 'to', r.target, 'kind', 'results', 'parent', r.parent,
        'results', cmsgpack.pack(r.list))
    end
    r.list, r.bytes = {}, 0
  end

  -- Before anything else is owed: what became of one child stays in its order.
  local function owe_all_results()
    for _, r in ipairs(results_owed) do owe_results(r) end
    results_owed = nil
  end

  local function owe_result(target, parent, child, policy, text)
    results_owed = results_owed or {}
    local key = target .. '|' .. parent
    local r = results_owed[key]
    if not r then
      r = { target = target, parent = parent, policy = policy, bytes = 0, list = {} }
      results_owed[key], results_owed[#results_owed + 1] = r, r
    end
    if #r.list >= MOST_RESULTS or #r.list > 0 and r.bytes + #text > MOST_BYTES then owe_results(r) end
    local n = #r.list
    r.list[n + 1], r.list[n + 2], r.bytes = child, text, r.bytes + #text
    if n == 0 then r.policy = policy end
  end

  local function owe(target, kind, ...)
    if results_owed then owe_all_results() end
    call('XADD', base .. 'outbox', '*', 'to', target, 'kind', kind, ...)
    owes = true
  end

  -- The parent's turn has come.
  local function release(id, row, p)
    call('ZREM', base .. 'waiting', id)
    call('HSET', row, 'state', 'pending')
    the_line(base).put(id, p.lane, p.priority)
  end

  -- How many children are outstanding, from what is recorded of them; false when a record is none, because somebody has
  -- written to it by hand.
  local function unsettled(row)
    local all, processed = redis.pcall('SCARD', row .. ':children'), redis.pcall('HLEN', row .. ':processed')
    local unsuccessful = redis.pcall('HLEN', row .. ':unsuccessful')
    if type(all) ~= 'number' or type(processed) ~= 'number' or type(unsuccessful) ~= 'number' then return false end
    return math.max(all - processed - unsuccessful, 0)
  end

  -- The same as a number: what cannot be counted is not waited for.
  local function outstanding(row)
    return unsettled(row) or 0
  end

  -- Counts n children down that have just been recorded. Somebody may have written to the count by hand: then it is made
  -- anew from the records.
  local function count_down(row, n)
    local left = redis.pcall('DECRBY', row .. ':dependencies', n)
    if type(left) ~= 'number' or left < 0 then
      left = outstanding(row)
      call('SET', row .. ':dependencies', left)
    end
    return left
  end

  -- A dead parent names one of the children that hold it.
  local function name_failure(row)
    local r = call('HMGET', row, 'state', 'died_of', 'last_error')
    if r[1] ~= 'dead' or r[2] ~= 'children' then return end
    local named = string.match(r[3] or '', '^child .-|(JOB%w%w%w%w%w%w%w%w%w%w%w): ')
    if named and call('HEXISTS', row .. ':failed', named) == 1 then return end
    local failure = call('HRANDFIELD', row .. ':failed', 1, 'WITHVALUES')
    local id, text = failure[1], failure[2]
    if not id then return end
    local found = call('SISMEMBER', row .. ':children', queue .. '|' .. id) == 1 and queue .. '|' .. id
    local cursor, pages = '0', 0
    while not found and pages < 50 do
      local scanned = call('SSCAN', row .. ':children', cursor, 'MATCH', '*|' .. id, 'COUNT', 1000)
      cursor, found, pages = scanned[1], scanned[2][1], pages + 1
      if cursor == '0' then break end
    end
    call('HSET', row, 'last_error', cut('child ' .. (found or '|' .. id) .. ': ' .. text))
  end

  -- What became of a parent goes on upwards.
  local function upwards(id, p, how, text)
    hops = hops + 1
    tell(id, p, how, text)
  end

  -- A child no longer holds its dead parent, which is alive again once none does.
  local function let_go(id, row, p)
    if p.removing then return end
    if call('HLEN', row .. ':failed') > 0 then
      unnamed[row] = true
      return
    end
    call('ZREM', base .. 'dead', id)
    call('HDEL', row, 'died_of', 'last_error')
    if outstanding(row) == 0 then
      call('HSET', row, 'state', 'pending')
      the_line(base).put(id, p.lane, p.priority)
    else
      call('HSET', row, 'state', 'awaiting_children')
      call('ZADD', base .. 'waiting', 0, id)
    end
    upwards(id, p, 'back', '')
  end

  local function fall(id, row, p, from, child, text)
    call('ZREM', base .. 'waiting', id)
    call('HSET', row, 'died_of', 'children')
    bury(base, id, row, p.attempts or '0', 'child ' .. from .. '|' .. child .. ': ' .. text, record or 0, now or server_ms())
    flow.fallen[#flow.fallen + 1] = id
    upwards(id, p, 'dead', call('HGET', row, 'last_error'))
  end

  local FIELDS = {
    'state', 'attempts', 'priority', 'died_of', 'removing', 'parent', 'parent_queue', 'parent_policy', 'awaited',
    'lane',
  }

  -- A parent that children can still tell something, or nil.
  local function parent_at(row)
    local r = redis.pcall('HMGET', row, unpack(FIELDS))
    if r.err or not r[1] or r[1] == 'done' then return end
    local p = {}
    for i, field in ipairs(FIELDS) do p[field] = r[i] end
    p.waits = p.state == 'awaiting_children'
    p.of_children = p.state == 'dead' and p.died_of == 'children'
    return p
  end

  -- Children of one parent that are done one after the other are recorded together: seven commands for all of them instead of
  -- seven for each. `results` has their parent, their queue, and flat the ids and what they answered.
  local results

  -- Which of these children a record holds; false when somebody has written to it by hand. A record that is not there holds none.
  local function among(key, children)
    if call('EXISTS', key) == 0 then return {} end
    local found = redis.pcall('HMGET', key, unpack(children))
    return not found.err and found
  end

  -- A hash of up to 512 short fields is a list that is gone through for each of them. One field that is too long for that makes
  -- it a table, and it stays one.
  local function record_processed(row, fresh)
    local key = row .. ':processed'
    if call('EXISTS', key) == 1 or call('SCARD', row .. ':children') <= LISTED then
      call('HSET', key, unpack(fresh))
    else
      local long = string.rep('-', 65)
      call('HSET', key, long, '', unpack(fresh))
      call('HDEL', key, long)
    end
  end

  local function record_results()
    local parent, from, children, texts = results.parent, results.from, results.children, results.texts
    results = nil
    local row = base .. 'job:' .. parent
    local p = parent_at(row)
    if not p then return end
    local members = {}
    for i, child in ipairs(children) do members[i] = from .. '|' .. child end
    local known = redis.pcall('SMISMEMBER', row .. ':children', unpack(members))
    local processed = among(row .. ':processed', children)
    local counted, holds = among(row .. ':unsuccessful', children), among(row .. ':failed', children)
    if known.err or not (processed and counted and holds) then return end
    local fresh, done, freed = {}, 0, 0
    for i, child in ipairs(children) do
      if known[i] == 1 and not processed[i] then
        fresh[#fresh + 1], fresh[#fresh + 2] = child, texts[i]
        if counted[i] then
          call('HDEL', row .. ':unsuccessful', child) -- counted when it died
        else
          done = done + 1
          if holds[i] then freed = freed + call('HDEL', row .. ':failed', child) end
        end
      end
    end
    if #fresh > 0 then record_processed(row, fresh) end
    if done == 0 then return end
    local left = count_down(row, done)
    if p.of_children then
      if freed > 0 then let_go(parent, row, p) end
    elseif p.waits and not p.removing and left == 0 then
      release(parent, row, p)
    end
  end

  local function succeed(parent, from, child, text)
    local r = results
    if r and not (r.parent == parent and r.from == from and r.n < CHUNK) then
      record_results()
      r = nil
    end
    if not r then
      r = { parent = parent, from = from, children = {}, texts = {}, n = 0 }
      results = r
    end
    local n = r.n + 1
    r.children[n], r.texts[n], r.n = child, text, n
  end

  -- A child of this queue is done, and so is what its parent, in this queue too, is told. No child twice in one step.
  function flow.succeed(parent, child, text)
    succeed(parent, queue, child, text)
  end

  local told = {} -- children that another queue has said are done

  -- What has become of a child, at its parent in this queue. `from` is the child's queue; `how` is done, dead, gone
  -- (removed, trimmed or cancelled) or back (reprocessed).
  function flow.arrive(id, from, child, how, policy, text)
    if how == 'done' then
      if told[child] and results then record_results() end -- of two words the first counts
      told[child] = true
      return succeed(id, from, child, text)
    end
    if results then record_results() end
    local row = base .. 'job:' .. id
    local p = parent_at(row)
    if not p then return end
    local known = redis.pcall('SISMEMBER', row .. ':children', from .. '|' .. child)
    local processed = redis.pcall('HEXISTS', row .. ':processed', child)
    local counted = redis.pcall('HEXISTS', row .. ':unsuccessful', child)
    local holds = redis.pcall('HEXISTS', row .. ':failed', child)
    -- An answer that is no number: somebody has written to a record by hand, and nothing can be recorded.
    if known ~= 1 or processed ~= 0 or type(counted) ~= 'number' or type(holds) ~= 'number' then return end
    local waiting, of_children = p.waits, p.of_children

    -- Counted as settled.
    local function settle(at_once)
      if holds == 1 then call('HDEL', row .. ':failed', child) end
      call('HSET', row .. ':unsuccessful', child, text)
      local left = count_down(row, 1)
      if of_children then
        if holds == 1 then let_go(id, row, p) end
      elseif waiting and not p.removing and (left == 0 or at_once) then
        release(id, row, p)
      end
    end

    if how == 'back' then
      if holds == 1 then
        call('HDEL', row .. ':failed', child)
        if of_children then let_go(id, row, p) end
      end
    elseif counted == 0 then
      if how == 'gone' and (holds == 1 or policy == 'hold') then
        settle()
      elseif holds == 1 then
        return
      elseif p.removing or not (waiting or of_children) or policy == 'ignore' then
        settle()
      elseif policy == 'continue' then
        settle(true)
      elseif policy ~= 'hold' then
        call('HSET', row .. ':failed', child, cut(text))
        if waiting then fall(id, row, p, from, child, text) end
      end
    end
  end

  -- Tells whoever wants to know what became of a job of this queue: those who wait for it, and its parent. `c` has its fields
  -- awaited, parent, parent_queue and parent_policy.
  function tell(child, c, how, text)
    if c.awaited and how ~= 'back' then redis.pcall(PUBLISH, base .. 'settled', child) end
    if not c.parent then return end
    local policy, target = c.parent_policy or 'fail', c.parent_queue or queue
    if not names_queue(target) then return end
    if how == 'done' and target ~= queue then
      owe_result(target, c.parent, child, policy, text)
    elseif target ~= queue or hops > MOST_HOPS then
      owe(target, 'settle', 'parent', c.parent, 'child', child, 'how', how, 'policy', policy, 'text', text)
    else
      flow.arrive(c.parent, queue, child, how, policy, text)
    end
  end

  -- What of a row tells who wants to know of its end: read before the row goes.
  function flow.ties(row)
    local r = call('HMGET', row, 'parent', 'parent_queue', 'parent_policy', 'flow', 'awaited')
    return { parent = r[1], parent_queue = r[2], parent_policy = r[3], flow = r[4], awaited = r[5] }
  end

  flow.tell = function(...) return tell(...) end
  flow.outstanding = outstanding

  -- A job of this queue has been buried for a reason of its own.
  function flow.buried(id, row, text)
    local ties = flow.ties(row)
    if ties.flow then call('HSET', row, 'died_of', 'self') end
    tell(id, ties, 'dead', cut(text))
  end

  -- The flow keys of a parent that has ended. Small ones at once: to wake the server's other thread costs more.
  function flow.forget(row)
    local size = redis.pcall('SCARD', row .. ':children')
    local forget = type(size) == 'number' and size <= 500 and 'DEL' or 'UNLINK'
    call(forget, row .. ':dependencies', row .. ':children', row .. ':processed', row .. ':unsuccessful', row .. ':failed')
  end

  -- Out of the morgue: its parent hears of it. A parent that died of its children goes on without them. True when it waits.
  function flow.reprocessed(id, row, ties, died_of)
    local waits = false
    if ties.flow and died_of == 'children' and unsettled(row) then
      local failed = redis.pcall('HGETALL', row .. ':failed')
      if not failed.err then
        chunked('HSET', row .. ':unsuccessful', failed)
        call('UNLINK', row .. ':failed')
        waits = count_down(row, #failed / 2) > 0
      end
    end
    tell(id, ties, 'back', '')
    return waits
  end

  -- Landing. A tree is a flat list of tokens:
  --   node     id, payload, delay, nfields, field, value ..., children
  --   alike    a, and if that is not 0: nfields, field, value ..., a times id, payload: nodes for now, without children, which
  --            share these fields
  --   children m, and if that is not 0: alike; n; g; m - a times `queue|id`; n nodes of this queue; o, o times the queue and the
  --            packed nodes it is owed. Named first are the n nodes, in their order; then g that a user may have given an id;
  --            the rest were minted for this call, so that their ids can be neither taken nor double, and are not looked at
  --   packed   a list of tokens: alike; n, n nodes
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
  function flow.nothing_found(members)
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
  flow.inspect_node, flow.inspect_children = inspect_node, inspect_children

  function flow.inspect_packed(tokens, found)
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
  function flow.are_free(found)
    return not found.twice and chunked('EXISTS', nil, found.rows) == 0
  end

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
    tell(id, fields, 'gone', 'the id ' .. id .. ' is taken')
  end

  local land_children
  -- Each writes a part that was looked at, and answers where the next token is. `free`: it is known that no id is taken.
  local function land_node(tokens, i, free)
    if results then record_results() end
    local id, row = tokens[i], base .. 'job:' .. tokens[i]
    local at = i + 4 + 2 * tonumber(tokens[i + 3])
    if not free and call('EXISTS', row) == 1 then
      not_landed(id, fields_of(tokens, i + 4, at - 1))
      return (inspect_node(tokens, i, flow.nothing_found()))
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
      flow.forget(row) -- records that a row deleted by hand has left
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
    if results then record_results() end
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
    call('SET', row .. ':dependencies', outstanding(row))
    land_alike(tokens, i + 1, free)
    i = last + 1
    for _ = 1, inline do i = land_node(tokens, i, free) end
    local owed = tonumber(tokens[i])
    for o = i + 1, i + 2 * owed, 2 do owe(tokens[o], 'land', 'nodes', tokens[o + 1]) end
    return i + 1 + 2 * owed
  end
  flow.land_node, flow.land_children = land_node, land_children

  function flow.land_packed(tokens, free)
    local i = land_alike(tokens, 1, free)
    local nodes = tonumber(tokens[i])
    i = i + 1
    for _ = 1, nodes do i = land_node(tokens, i, free) end
  end

  -- The last words of a step: counts, wake-ups, who died of its children, and that something is owed.
  function flow.finish()
    if results then record_results() end
    if results_owed then owe_all_results() end
    if #ready > 0 then the_line(base).add('', ready) end
    for row in pairs(unnamed) do name_failure(row) end
    count(base, 'failed', #flow.fallen)
    count(base, 'enqueued', landed)
    if earliest then announce_if_earlier(base, earliest[1], schedule, now) end
    for _, id in ipairs(flow.fallen) do redis.pcall(PUBLISH, base .. 'beat', 'died:' .. id) end
    if owes then redis.pcall(PUBLISH, base .. 'beat', 'relay') end
  end

  return flow
end
