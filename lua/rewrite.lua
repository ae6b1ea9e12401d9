-- rewrite x n: another payload for a job that nobody runs, as long as it has the one that its caller has read.
-- KEYS pending base
-- ARGV per job: id, the payload that was read, the new one
-- Answers a code per job: 1 changed, 0 gone, -1 its payload is another one, -2 active or done.
local base = KEYS[2]
if #ARGV < 3 or #ARGV % 3 ~= 0 then return refuse('EMQARG', 'rewrite: arguments do not add up') end
local RESTS = { pending = true, scheduled = true, awaiting_children = true, dead = true }

local codes = {}
for i = 1, #ARGV, 3 do
  local row = base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'state', 'payload')
  local code = 0
  if not r.err and r[1] then
    code = -2
    if RESTS[r[1]] then
      code = -1
      if r[2] == ARGV[i + 1] then
        call('HSET', row, 'payload', ARGV[i + 2])
        code = 1
      end
    end
  end
  codes[#codes + 1] = code
end
return codes
