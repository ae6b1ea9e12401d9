-- remove x n: a job that nobody is running goes, whatever set it stands in; a kept `done` row too.
-- KEYS pending base
-- ARGV tree (0/1), then ids
-- Answers a code per job: 1 removed, 0 gone, -2 active.
local pending, base = KEYS[1], KEYS[2]
if (ARGV[1] ~= '0' and ARGV[1] ~= '1') or #ARGV < 2 then return refuse('EMQARG', 'remove: arguments do not add up') end
local sets = { pending = pending, scheduled = base .. 'schedule', dead = base .. 'dead' }
local bad = mistyped('zset', pending) or mistyped('zset', sets.scheduled) or mistyped('zset', sets.dead)
  or mistyped('hash', base .. 'metrics:removed')
if bad then return bad end

local codes, removed = {}, 0
for i = 2, #ARGV do
  local id, row = ARGV[i], base .. 'job:' .. ARGV[i]
  local state = redis.pcall('HGET', row, 'state')
  local code = 0
  if type(state) == 'string' then
    code = -2
    if sets[state] and call('ZREM', sets[state], id) == 1 then
      call('DEL', row)
      removed, code = removed + 1, 1
    elseif state == 'done' then -- counted when it was completed
      code = call('DEL', row)
    end
  end
  codes[#codes + 1] = code
end
count(base, 'removed', removed)
return codes
