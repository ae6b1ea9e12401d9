-- Where the claimable jobs of a queue stand: in `pending`, or once it has used a lane, in its lanes (see _lanes.lua).

-- The line of a queue without lanes.
local function plain_line(base, limited)
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
    line_here = used and used.lanes and laned_line(base) or plain_line(base, used and used.limits)
  end
  return line_here
end

-- The queue has lanes from now on: its jobs without one become one of them.
local function begin_lanes(base)
  local used = in_use(base)
  if not (used and used.lanes) then
    call('SET', base .. 'lanes:floor', 0)
    use(base, 'lanes')
    line_here = laned_line(base)
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
