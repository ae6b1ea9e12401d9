-- watch x n: from now on the end of these jobs is told on the channel `settled`, and the result of one that completes can be
-- fetched for a minute.
-- KEYS pending base
-- ARGV ids
-- Answers a state per job, '' when it is gone. One that has ended is left as it is.
local base = KEYS[2]
if #ARGV == 0 then return refuse('EMQARG', 'watch: no job') end
local states = {}
for i, id in ipairs(ARGV) do
  local row = base .. 'job:' .. id
  local state = redis.pcall('HGET', row, 'state')
  if type(state) == 'table' then state = false end
  if state and state ~= 'done' and state ~= 'dead' then
    call('HDEL', row, 'awaited') -- a first write that full memory lets through
    call('HSET', row, 'awaited', 1)
  end
  states[i] = state or ''
end
return states
