-- progress x n: the holder of a claim says how far it has come; the row keeps the latest.
-- KEYS active base
-- ARGV per job: id, token, value
-- Answers a code per job: 1 kept, 0 gone, -1 stale.
local base = KEYS[2]
if #ARGV < 3 or #ARGV % 3 ~= 0 then return refuse('EMQARG', 'progress: arguments do not add up') end
local codes = {}
for i = 1, #ARGV, 3 do
  local id, row = ARGV[i], base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'attempts', 'lease_epoch', 'state')
  local code = r.err and 0 or holder(ARGV[i + 1], row, r)
  if code > 0 then
    call('HSET', row, 'progress', ARGV[i + 2])
    report(base, 'progress', id, r[1], ARGV[i + 2])
    code = 1
  end
  codes[#codes + 1] = code
end
publish_news(base)
return codes
