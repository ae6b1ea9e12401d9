-- wait x n: a running parent goes back to wait for its children, or to pending when none is outstanding. Not charged.
-- KEYS active pending base
-- ARGV per job: id, token
-- Answers a code per job: 1 waits or is pending (or buried, when it was asked to stop), 0 gone, -1 stale.
local active, base = KEYS[1], KEYS[3]
local waiting = base .. 'waiting'
if #ARGV < 2 or #ARGV % 2 ~= 0 then return refuse('EMQARG', 'wait: arguments do not add up') end
local bad = mistyped('zset', active) or mistyped('hash', base .. 'metrics:failed')
  or flow_refusal(base)
if bad then return bad end

local family = flows(base)
local line = the_line(base)
local codes, buried, held = {}, 0, {}
for i = 1, #ARGV, 2 do
  local id, row = ARGV[i], base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'attempts', 'lease_epoch', 'state', 'priority', 'cancel', 'uncharged', 'lane')
  local code = r.err and 0 or holder(ARGV[i + 1], row, r)
  if code > 0 then
    if code == 1 then
      call('ZREM', active, id)
      held[#held + 1] = id
    else
      line.drop(id, r[7])
    end
    if r[5] then
      bury(base, id, row, r[1], 'cancelled', 0, server_ms())
      family.buried(id, row, 'cancelled')
      buried = buried + 1
    else
      call('HDEL', row, 'lapsed')
      call('HSET', row, 'uncharged', one_more(r[6]))
      if family.outstanding(row) > 0 then
        call('HSET', row, 'state', 'awaiting_children')
        call('ZADD', waiting, 0, id)
      else
        call('HSET', row, 'state', 'pending')
        line.put(id, r[7], r[4])
      end
    end
    code = 1
  end
  codes[#codes + 1] = code
end
count(base, 'failed', buried)
family.finish()
line.left(held)
line.finish()
publish_news(base)
return codes
