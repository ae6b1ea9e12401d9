-- apply: what another queue owes this one, in the order of its outbox, each entry exactly once however often it is relayed.
-- KEYS relayed base
-- ARGV source, previous id, then per entry: id, kind, and of a `land` the packed nodes, of a `settle` the parent, the child,
-- how it ended, its policy, and its result or error, of `results` the parent and, packed, children that are done, each with
-- its result
-- Answers the last id of the source applied here. Below the previous id it says that this queue has lost something in a
-- failover, and nothing was applied: the relay goes back to it.
local relayed, base = KEYS[1], KEYS[2]
local source, previous = ARGV[1], ARGV[2]
local WIDTH = { land = 3, settle = 7, results = 4 }
local ENDS = { done = true, dead = true, gone = true, back = true }

local function parts(id)
  local ms, seq = string.match(id or '', '^(%d+)%-(%d+)$')
  return tonumber(ms), tonumber(seq)
end

local function earlier(a_ms, a_seq, b_ms, b_seq)
  return a_ms < b_ms or (a_ms == b_ms and a_seq < b_seq)
end

local previous_ms, previous_seq = parts(previous)
if not source or not previous_ms then return refuse('EMQARG', 'apply: source or previous id is malformed') end
local ms, seq = {}, {} -- of the entry that begins there
local i = 3
while i <= #ARGV do
  local width = WIDTH[ARGV[i + 1] or '']
  ms[i], seq[i] = parts(ARGV[i])
  if not ms[i] or not width or i + width - 1 > #ARGV then return refuse('EMQARG', 'apply: entries do not add up') end
  if width == 7 and not ENDS[ARGV[i + 4]] then return refuse('EMQARG', 'apply: a child has settled in no known way') end
  i = i + width
end
local bad = mistyped('hash', relayed) or mistyped('zset', base .. 'schedule') or mistyped('hash', base .. 'metrics:enqueued')
  or mistyped('hash', base .. 'metrics:failed') or flow_refusal(base)
if bad then return bad end

local last = call('HGET', relayed, source)
if not parts(last) then last = '0-0' end
local last_ms, last_seq = parts(last)
if earlier(last_ms, last_seq, previous_ms, previous_seq) or #ARGV == 2 then return last end

local family = flows(base)
local inspector = tree_inspector(base, family.queue)
local landing = tree_landing(base, family, inspector)

-- Unpacks a list of texts; nil when it is none.
local function listed(bytes)
  local ok, list = pcall(cmsgpack.unpack, bytes)
  if not ok or type(list) ~= 'table' then return end
  for _, text in ipairs(list) do
    if type(text) ~= 'string' then return end
  end
  return list
end

local lists, landings = {}, {}
i = 3
while i <= #ARGV do
  local kind = ARGV[i + 1]
  if kind ~= 'settle' and earlier(last_ms, last_seq, ms[i], seq[i]) then
    local list = listed(ARGV[i + WIDTH[kind] - 1])
    if kind == 'results' then
      if not list or #list % 2 ~= 0 then return refuse('EMQARG', 'apply: results are no list of children and texts') end
    else
      if not list then return refuse('EMQARG', 'apply: a landing is no list of nodes') end
      landings[i] = inspector.nothing_found()
      local after, fault = inspector.packed(list, landings[i])
      if not after then return refuse('EMQARG', 'apply: ' .. fault) end
      bad = landings[i].laned and line_refusal(base, true)
      if bad then return bad end
    end
    lists[i] = list
  end
  i = i + WIDTH[kind]
end

call('HDEL', relayed, '') -- a first write that full memory lets through
i = 3
while i <= #ARGV do
  local id, kind = ARGV[i], ARGV[i + 1]
  if earlier(last_ms, last_seq, ms[i], seq[i]) then
    if kind == 'land' then
      landing.packed(lists[i], inspector.are_free(landings[i]))
    elseif kind == 'results' then
      local list = lists[i]
      for k = 1, #list, 2 do family.arrive(ARGV[i + 2], source, list[k], 'done', '', list[k + 1]) end
    else
      family.arrive(ARGV[i + 2], source, ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6])
    end
    last, last_ms, last_seq = id, ms[i], seq[i]
  end
  i = i + WIDTH[kind]
end
call('HSET', relayed, source, last)
call('PERSIST', relayed) -- an obliterated queue leaves it with an expiry
landing.finish()
family.finish()
the_line(base).finish()
publish_news(base)
return last
