-- lead: takes the free leader keys, renews this process's own, and says when each queue wants attention.
-- KEYS leader keys of one slot, then the base of the first
-- ARGV process, ttl_ms
-- Answers seven numbers per key: leads 0/1; milliseconds until the next run-at, lease deadline and parked lane, each -1
-- when there is none or another process leads; claimable 0/1, 0 also while a limit of the queue lets no job run; owes something to
-- other queues 0/1; milliseconds until the next slot of a repeating schedule, -1 likewise.
local process, ttl = ARGV[1], int(ARGV[2] or '', 1, MAX_INT)
if not process or process == '' or not ttl then return refuse('EMQARG', 'lead: process or ttl_ms is malformed') end

local now = server_ms()
-- Looking ahead is tried, not called: one queue with a key of another type must not take the beat from the rest.
local function until_first(key)
  local first = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES')
  local at = tonumber(first[2])
  return at and at < MAX_INT and math.max(0, at - now) or -1 -- a paused schedule stands at 2^53-1
end

-- Does a claim bring something now? A queue that waits for a time, or for a job to end, is not asked in vain.
local function claimable(base)
  local waiting = redis.pcall('ZCARD', base .. (call('EXISTS', base .. 'lanes:floor') == 1 and 'lanes' or 'pending'))
  if waiting == 0 or type(waiting) ~= 'number' or call('EXISTS', base .. 'paused') == 1 then return 0 end
  if call('EXISTS', base .. 'limits') == 0 or type(redis.pcall('ZCARD', base .. 'active')) ~= 'number' then return 1 end
  return limits(base, now).allowed(1)
end

local answer = {}
for i = 1, #KEYS - 1 do
  local leader = KEYS[i]
  local base = string.sub(leader, 1, -7)
  local holder_of = redis.pcall('GET', leader)
  local leads = holder_of == process
  if leads then
    call('PEXPIRE', leader, ttl)
  elseif not holder_of then
    call('DEL', leader) -- a first write that full memory lets through: the beat must go on
    call('SET', leader, process, 'PX', ttl)
    leads = true
  end
  local n = #answer
  answer[n + 1] = leads and 1 or 0
  answer[n + 2] = leads and until_first(base .. 'schedule') or -1
  answer[n + 3] = leads and until_first(base .. 'active') or -1
  answer[n + 4] = leads and until_first(base .. 'lanes:parked') or -1
  answer[n + 5] = claimable(base)
  local owed = leads and redis.pcall('XLEN', base .. 'outbox')
  answer[n + 6] = (owed ~= 0 and type(owed) == 'number') and 1 or 0
  answer[n + 7] = leads and until_first(base .. 'schedules') or -1
end
return answer
