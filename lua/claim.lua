-- claim x n: the lowest scores of pending become active under a lease; `attempts` + 1 is the fencing token.
-- KEYS pending active base
-- ARGV lease_ms [count [epoch [process]]]
-- Answers flat id, payload, attempts per job, with an epoch also uncharged; empty when nothing is claimable or paused.
-- A process that got fewer than it asked for is registered as hungry in the same step; otherwise, if jobs remain, the
-- next hungry process is woken. A head without a row is dropped: one ends a single claim, up to 100 a counted one.
-- Cost: per job one HMGET, one HSET; per call one ZPOPMIN, one ZADD.
local pending, active, base = KEYS[1], KEYS[2], KEYS[3]
local lease = int(ARGV[1] or '', 1, MAX_INT)
local wanted = ARGV[2] and ARGV[2] ~= '' and int(ARGV[2], 1, 500)
local single = not ARGV[2] or ARGV[2] == ''
local epoch = ARGV[3] or ''
local process = ARGV[4] or ''
if not lease then return refuse('EMQARG', 'claim: lease_ms is not an integer from 1') end
if single then wanted = 1 end
if not wanted then return refuse('EMQARG', 'claim: count is not an integer from 1 to 500') end

local bad = mistyped('zset', active) or mistyped('zset', base .. 'hungry')
if bad then return bad end

local answer, leases, got, ghosts = {}, {}, 0, 0
local now = call('TIME')
if call('EXISTS', base .. 'paused') == 0 then
  local deadline = spell(math.min(now[1] * 1000 + math.floor(now[2] / 1000) + lease, MAX_INT))
  local spelt = {} -- most jobs of a call have been claimed equally often
  local with_epoch = epoch ~= ''
  local stored = with_epoch and epoch or '-'
  local rows = base .. 'job:'
  local width = with_epoch and 4 or 3
  repeat
    local asked = wanted - got
    local popped = redis.pcall('ZPOPMIN', pending, asked)
    if popped.err then return mistyped('zset', pending) or popped end -- the first write, and it has written nothing
    for i = 1, #popped, 2 do
      local id = popped[i]
      local row = rows .. id
      -- tried, not called: a key of another type must not take the rest of the batch with it
      local r = redis.pcall('HMGET', row, 'payload', 'attempts', 'uncharged')
      if r.err or not (r[1] or r[2]) then
        ghosts = ghosts + 1
      else
        local before = r[2] or '0'
        local attempts = spelt[before]
        if not attempts then
          attempts = spell((tonumber(before) or 0) + 1)
          spelt[before] = attempts
        end
        call('HSET', row, 'attempts', attempts, 'state', 'active', 'lease_epoch', stored)
        local n = got * width
        answer[n + 1] = id
        answer[n + 2] = r[1] or ''
        answer[n + 3] = attempts
        if with_epoch then answer[n + 4] = r[3] or '0' end
        leases[2 * got + 1] = deadline
        leases[2 * got + 2] = id
        got = got + 1
      end
    end
  until #popped < 2 * asked or got == wanted or single or ghosts >= 100
  zadd(active, leases)
elseif process ~= '' then
  call('ZREM', base .. 'hungry', process) -- a first write that full memory lets through
end

if got < wanted and process ~= '' then
  call('ZADD', base .. 'hungry', spell(now[1] * 1000000 + now[2]), process)
end
-- Jobs remain behind a full claim, or behind so many ghosts that this one gave up.
if (got == wanted or ghosts > 0) and call('ZCARD', pending) > 0 then wake(base) end
return answer
