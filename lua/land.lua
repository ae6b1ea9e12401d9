-- land: a tree of jobs, whole or not at all: its root, and its descendants as far as they are reached without leaving the
-- queue; what is left is owed by the outbox. Or more children of a parent that is running, named by its token.
-- KEYS waiting base
-- ARGV parent, token (both '' for a tree of its own), then a node, or the children of the parent, as tokens: see _tree_tokens.lua
-- Answers 1 landed (again for a repeat of the same children), 0 the root exists (or the parent is gone) and nothing was
-- changed, -1 stale. At most 1,000 jobs a call.
-- Cost: per job one HSET; per thousand children one SADD, of those that are looked at one EXISTS; per call one ZADD.
local waiting, base = KEYS[1], KEYS[2]
local parent, token = ARGV[1], ARGV[2]
if not token then return refuse('EMQARG', 'land: arguments do not add up') end
local bad = mistyped('zset', waiting) or mistyped('zset', base .. 'schedule') or mistyped('hash', base .. 'metrics:enqueued')
  or flow_refusal(base)
if bad then return bad end
local family = flows(base)
local inspector = tree_inspector(base, family.queue)
local landing = tree_landing(base, family, inspector)

local members = parent ~= '' and {} or nil -- those of the parent's children that are looked at
local found = inspector.nothing_found(members)
local inspect = parent == '' and inspector.node or inspector.children
local after, fault = inspect(ARGV, 3, found)
if not after or after ~= #ARGV + 1 then return refuse('EMQARG', 'land: ' .. (fault or 'arguments do not add up')) end
if found.inline > 1000 then return refuse('EMQARG', 'land: more than 1000 jobs at once') end
if found.twice then return refuse('EMQSTATE', 'land: an id stands twice in the tree: ' .. found.twice) end

bad = found.laned and line_refusal(base, true)
if bad then return bad end

local row = base .. 'job:' .. (parent == '' and ARGV[3] or parent)
if parent == '' then
  if call('EXISTS', row) == 1 then return 0 end
  if found.seen[ARGV[3]] then return refuse('EMQSTATE', 'land: the root is its own descendant') end
else
  local r = redis.pcall('HMGET', row, 'attempts', 'lease_epoch', 'state')
  local code = r.err and 0 or holder(token, row, r)
  if code < 1 then return code end
  if found.seen[parent] then return refuse('EMQSTATE', 'land: the parent is its own descendant') end
  bad = mistyped('set', row .. ':children') or mistyped('hash', row .. ':processed') or mistyped('hash', row .. ':unsuccessful')
    or mistyped('hash', row .. ':failed')
  if bad then return bad end
  -- A call that is sent again, because its answer was lost, must not land and owe its children a second time.
  local known = 0
  for from = 1, #members, CHUNK do
    local some = call('SMISMEMBER', row .. ':children', unpack(members, from, math.min(from + CHUNK - 1, #members)))
    for _, is in ipairs(some) do known = known + is end
  end
  if known == #members then return 1 end
  if known > 0 then return refuse('EMQSTATE', 'land: some of these are children of this parent already') end
end
if not inspector.are_free(found) then
  for _, taken in ipairs(found.rows) do
    if call('EXISTS', taken) == 1 then return refuse('EMQSTATE', 'land: the id ' .. string.sub(taken, -14) .. ' is taken') end
  end
end

if parent == '' then
  landing.node(ARGV, 3, true)
else
  call('HSET', row, 'flow', '1')
  landing.children(row, ARGV, 3, true)
end
landing.finish()
family.finish()
the_line(base).finish()
publish_news(base)
return 1
