-- The outbox: what a step means for other queues is owed to them. It is written down in the step that causes it, and the relay
-- carries it to the `apply` of the other queue.

-- Can a queue have this name? One that cannot would stop the whole outbox.
local function names_queue(text)
  return #text > 0 and #text <= 200 and not string.find(text, '[{}%c]')
end

-- One entry of an outbox carries results of up to so many children, twice counted, and of more than one only so many bytes.
local MOST_RESULTS, MOST_BYTES = 200, 100000

-- What this step owes to others: made when it owes something.
local function debts(base)
  local this = {}

  -- Results that parents elsewhere are owed, by parent: those of one parent go in one entry.
  local results_owed

  local function owe_results(r)
    if #r.list == 2 then
      call('XADD', base .. 'outbox', '*', 'to', r.target, 'kind', 'settle', 'parent', r.parent, 'child', r.list[1],
        'how', 'done', 'policy', r.policy, 'text', r.list[2])
    elseif #r.list > 2 then
      call('XADD', base .. 'outbox', '*', 'to', r.target, 'kind', 'results', 'parent', r.parent,
        'results', cmsgpack.pack(r.list))
    end
    r.list, r.bytes = {}, 0
  end

  -- Before anything else is owed, and at the end: what became of one child stays in its order.
  function this.owe_all_results()
    if not results_owed then return end
    for _, r in ipairs(results_owed) do owe_results(r) end
    results_owed = nil
  end

  function this.owe_result(target, parent, child, policy, text)
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

  function this.owe(target, kind, ...)
    if results_owed then this.owe_all_results() end
    call('XADD', base .. 'outbox', '*', 'to', target, 'kind', kind, ...)
  end

  return this
end
