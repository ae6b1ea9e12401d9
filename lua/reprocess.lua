-- reprocess x n: out of the morgue and back to pending. The token goes on counting. A parent that died of its children goes
-- on without those that failed it, and waits for the rest; a child's parent that died of it comes back.
-- KEYS dead pending base
-- ARGV fresh (1: the attempts so far no longer count against the cap), then ids
-- Answers a code per job: 1, 0 gone, -2 not dead.
local dead, pending, base = KEYS[1], KEYS[2], KEYS[3]
local fresh = ARGV[1]
if (fresh ~= '0' and fresh ~= '1') or #ARGV < 2 then return refuse('EMQARG', 'reprocess: arguments do not add up') end
local bad = mistyped('zset', dead) or mistyped('zset', pending) or flow_refusal(base)
if bad then return bad end

local before = call('ZCARD', pending)
local codes, moved = {}, 0
local family
for i = 2, #ARGV do
  local id, row = ARGV[i], base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'state', 'attempts', 'priority', 'parent', 'flow', 'died_of')
  local code = 0
  if not r.err and r[1] then
    code = -2
    if r[1] == 'dead' and call('ZREM', dead, id) == 1 then
      call('HDEL', row, 'last_error', 'cancel', 'stalls', 'lapsed', 'died_of', 'removing')
      if fresh == '1' then call('HSET', row, 'uncharged', r[2]) end
      local waits = false
      if r[4] or r[5] then
        family = family or flows(base)
        waits = family.reprocessed(id, row, family.ties(row), r[6])
      end
      if waits then
        call('HSET', row, 'state', 'awaiting_children')
        call('ZADD', base .. 'waiting', 0, id)
      else
        call('HSET', row, 'state', 'pending')
        call('ZADD', pending, priority_of(r[3]), id)
        moved = moved + 1
      end
      code = 1
    end
  end
  codes[#codes + 1] = code
end
if family then family.finish() end
if moved > 0 then wake_if_new(base, before) end
return codes
