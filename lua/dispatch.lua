-- dispatch: lands a job and claims it, for a process that waits for work: one step where enqueue and claim would be two.
-- Only a plain job into a queue of plain jobs, not paused, in which nothing waits; anything else is left to enqueue and claim.
-- KEYS active pending base
-- ARGV lease_ms, epoch, process, stays, id, payload, [field, value ...]
-- `stays`: 1, the process could take more, and stays hungry; 0, it is hungry no longer.
-- Answers 1 the job is active, with token 1; 0 nothing was done.
-- Cost: EXISTS, TIME, ZADD, HSET, HINCRBY; a ZREM for a process that is hungry no longer.
-- A server that has just been asleep pays most for what it has not at hand: so the plain way through is short, and calls no helper.
local format = string.format
local active, pending, base = KEYS[1], KEYS[2], KEYS[3]
local leased, epoch, process, stays, id, payload = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local lease = tonumber(leased)
if not lease or lease < 1 or lease > MAX_INT or format('%d', lease) ~= leased then
  return redis.error_reply('EMQARG dispatch: lease_ms is not an integer from 1')
end
if stays ~= '0' and stays ~= '1' then return redis.error_reply('EMQARG dispatch: stays is neither 0 nor 1') end
if #ARGV < 6 or #ARGV % 2 ~= 0 or #ARGV > 22 then return redis.error_reply('EMQARG dispatch: fields do not add up') end
if #id ~= MINTED_BYTES or not string.find(id, MINTED) then return redis.error_reply('EMQARG dispatch: not a minted id') end
local priority
for i = 7, #ARGV, 2 do
  local bad = bad_field(ARGV[i], ARGV[i + 1])
  if bad then return redis.error_reply('EMQARG dispatch: ' .. bad) end
  if ARGV[i] == 'priority' then priority = ARGV[i + 1] end
end

local row = base .. 'job:' .. id
-- Nothing may wait, and the queue is one of plain jobs.
if call('EXISTS', pending, row, base .. 'paused', base .. 'lanes:floor', base .. 'limits', base .. 'dedups', base .. 'heard') > 0 then
  return 0
end
local now = call('TIME')
local deadline = format('%d', math.min(now[1] * 1000 + math.floor(now[2] / 1000) + lease, MAX_INT))
local added = redis.pcall('ZADD', active, deadline, id) -- the first write: refused, it has written nothing
if type(added) == 'table' then
  local found = call('TYPE', active).ok
  return (found == 'zset' or found == 'none') and added or redis.error_reply('EMQTYPE ' .. active .. ' holds a ' .. found .. ', not a zset')
end
call('HSET', row, 'state', 'active', 'attempts', '1', 'payload', payload, 'lease_epoch', epoch == '' and '-' or epoch, unpack(ARGV, 7))
if priority == '0' then call('HDEL', row, 'priority') end -- a row says its priority only if it is not 0
redis.pcall('HINCRBY', base .. 'metrics:enqueued', 'count', 1)
if stays == '0' then redis.pcall('ZREM', base .. 'hungry', process) end
return 1
