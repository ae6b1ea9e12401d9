-- reprocess x n: out of the morgue and back to pending. The token goes on counting. A parent that died of its children goes
-- on without those that failed it, and waits for the rest; a child's parent that died of it comes back.
-- KEYS dead pending base
-- ARGV fresh (1: the attempts so far no longer count against the cap), then ids
-- Answers a code per job: 1, 0 gone, -2 not dead.
local dead, base = KEYS[1], KEYS[3]
local fresh = ARGV[1]
if (fresh ~= '0' and fresh ~= '1') or #ARGV < 2 then return refuse('EMQARG', 'reprocess: arguments do not add up') end
local bad = mistyped('zset', dead) or flow_refusal(base)
if bad then return bad end

local line = the_line(base)
local codes = {}
local family
for i = 2, #ARGV do
  local id, row = ARGV[i], base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'state', 'attempts', 'priority', 'parent', 'flow', 'died_of', 'lane', 'dedup')
  local code = 0
  if not r.err and r[1] then
    code = -2
    if r[1] == 'dead' and call('ZREM', dead, id) == 1 then
      call('HDEL', row, 'last_error', 'cancel', 'stalls', 'lapsed', 'died_of', 'removing')
      if r[8] and type(redis.pcall('SET', base .. 'dedup:' .. r[8], id, 'NX')) == 'table' then call('SET', base .. 'dedups', 1) end
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
        line.put(id, r[7], r[3])
      end
      code = 1
    end
  end
  codes[#codes + 1] = code
end
if family then family.finish() end
line.finish()
publish_news(base)
return codes
