-- dispatch: lands a job and claims it, for a process that waits for work: one step where enqueue and claim would be two.
-- Only a plain job into a queue of plain jobs, not paused, in which nothing waits; anything else is left to enqueue and claim.
-- KEYS active pending base
-- ARGV lease_ms, epoch, process, stays, id, payload, [field, value ...]
-- `stays`: 1, the process could take more, and stays hungry; 0, it is hungry no longer.
-- Answers 1 the job is active, with token 1; 0 nothing was done.
-- Cost: EXISTS, TIME, ZADD, HSET, HINCRBY; a ZREM for a process that is hungry no longer.
local active, pending, base = KEYS[1], KEYS[2], KEYS[3]
local lease, epoch, process, stays, id = int(ARGV[1] or '', 1, MAX_INT), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if not lease then return refuse('EMQARG', 'dispatch: lease_ms is not an integer from 1') end
if stays ~= '0' and stays ~= '1' then return refuse('EMQARG', 'dispatch: stays is neither 0 nor 1') end
if #ARGV < 6 or #ARGV % 2 ~= 0 or #ARGV > 22 then return refuse('EMQARG', 'dispatch: fields do not add up') end
if not string.find(id, MINTED) then return refuse('EMQARG', 'dispatch: not a minted id') end
local priority
for i = 7, #ARGV, 2 do
  local bad = bad_field(ARGV[i], ARGV[i + 1])
  if bad then return refuse('EMQARG', 'dispatch: ' .. bad) end
  if ARGV[i] == 'priority' then priority = ARGV[i + 1] end
end

local row = base .. 'job:' .. id
-- Nothing may wait, and the queue is one of plain jobs.
if call('EXISTS', pending, row, base .. 'paused', base .. 'lanes:floor', base .. 'limits', base .. 'dedups', base .. 'heard') > 0 then
  return 0
end
local now = call('TIME')
local deadline = spell(math.min(now[1] * 1000 + math.floor(now[2] / 1000) + lease, MAX_INT))
local added = redis.pcall('ZADD', active, deadline, id) -- the first write: refused, it has written nothing
if type(added) == 'table' then return mistyped('zset', active) or added end
call('HSET', row, 'state', 'active', 'attempts', '1', 'payload', ARGV[6], 'lease_epoch', epoch == '' and '-' or epoch,
  unpack(ARGV, 7))
if priority == '0' then call('HDEL', row, 'priority') end -- a row says its priority only if it is not 0
count(base, 'enqueued', 1)
if stays == '0' then redis.pcall('ZREM', base .. 'hungry', process) end
return 1
