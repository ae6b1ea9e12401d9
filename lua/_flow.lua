-- What the end of a job means for its parent, and for those who wait for it. One closure a run: the steps are made when a job
-- with a parent, or with children, turns up.
--
-- A parent waits in `waiting` for `dependencies` children. Its row has `flow`; a child's row names its `parent`, the
-- `parent_queue` when that is another, and the `parent_policy`. What it means for another queue goes to the outbox.

-- A refusal when a key that the end of a job may reach holds another type. Looked at before the first write.
local function flow_refusal(base)
  return line_refusal(base) or mistyped('zset', base .. 'waiting') or mistyped('zset', base .. 'dead')
    or mistyped('stream', base .. 'outbox')
end

local MOST_HOPS = 500 -- from parent to parent, upwards, in one step; the rest is owed to the queue itself

local function flows(base, record, now)
  local queue = string.match(base, '{(.*)}:$')
  local records = child_records(queue)
  local count_down, among = records.count_down, records.among
  local flow = { queue = queue, outstanding = records.outstanding, forget = records.forget }
  local fallen, hops = {}, 0
  local unnamed = {} -- rows of dead parents that have lost a child they may have named
  local tell

  local due

  -- What this step owes to other queues.
  function flow.owed()
    due = due or debts(base)
    return due
  end

  -- The parent's turn has come.
  local function release(id, row, p)
    call('ZREM', base .. 'waiting', id)
    call('HSET', row, 'state', 'pending')
    the_line(base).put(id, p.lane, p.priority)
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
    if records.outstanding(row) == 0 then
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
    fallen[#fallen + 1] = id
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
    if #fresh > 0 then records.record_processed(row, fresh) end
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
      flow.owed().owe_result(target, c.parent, child, policy, text)
    elseif target ~= queue or hops > MOST_HOPS then
      flow.owed().owe(target, 'settle', 'parent', c.parent, 'child', child, 'how', how, 'policy', policy, 'text', text)
    else
      flow.arrive(c.parent, queue, child, how, policy, text)
    end
  end

  flow.tell = tell

  -- What of a row tells who wants to know of its end: read before the row goes.
  function flow.ties(row)
    local r = call('HMGET', row, 'parent', 'parent_queue', 'parent_policy', 'flow', 'awaited')
    return { parent = r[1], parent_queue = r[2], parent_policy = r[3], flow = r[4], awaited = r[5] }
  end

  -- A job of this queue has been buried for a reason of its own.
  function flow.buried(id, row, text)
    local ties = flow.ties(row)
    if ties.flow then call('HSET', row, 'died_of', 'self') end
    tell(id, ties, 'dead', cut(text))
  end

  -- Out of the morgue: its parent hears of it. A parent that died of its children goes on without them. True when it waits.
  function flow.reprocessed(id, row, ties, died_of)
    local waits = false
    if ties.flow and died_of == 'children' and records.unsettled(row) then
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

  -- Children that are done are recorded before anything else happens to their parents.
  function flow.record()
    if results then record_results() end
  end

  -- The last words of a step: counts, wake-ups, who died of its children, and that something is owed.
  function flow.finish()
    flow.record()
    if due then due.owe_all_results() end
    for row in pairs(unnamed) do records.name_failure(row) end
    count(base, 'failed', #fallen)
    for _, id in ipairs(fallen) do redis.pcall(PUBLISH, base .. 'beat', 'died:' .. id) end
    if due then redis.pcall(PUBLISH, base .. 'beat', 'relay') end
  end

  return flow
end
