-- claim x n: the jobs whose turn it is become active under a lease; `attempts` + 1 is the fencing token. Their turn: the lowest
-- scores of pending; with lanes, the lane of the lowest tag first.
-- KEYS pending active base
-- ARGV lease_ms [count [epoch [process]]]
-- Answers flat id, payload, attempts per job, with an epoch also uncharged; empty when nothing is claimable or paused.
-- A process that got fewer than it asked for is registered as hungry in the same step; if jobs remain all the same, or behind one that
-- got all, the next hungry process is woken. Fewer than there are: where the payloads come to MOST_PAYLOAD. A head without a row is
-- dropped: one ends a single claim, up to 100 a counted one.
-- Cost: per job one HMGET, one HSET; per call one ZPOPMIN (of many a ZRANGE, a ZREM and a ZREMRANGEBYRANK), one ZADD. Per lane that
-- gives a job some ten commands more.
local pending, active, base = KEYS[1], KEYS[2], KEYS[3]
local FEW = 7 -- taken without a look at how large they are
local MOST_PAYLOAD = 4000000 -- of payloads that one call gives out, but for the few
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

local used = WHOLE and in_use(base)
local paused
if WHOLE then
  paused = call('EXISTS', base .. 'paused') == 1
else
  paused = in_use(base, base .. 'paused') -- or more than plain jobs
  if paused and in_use(base, base .. 'heard') then return beyond() end
end

local answer, leases, got, ghosts, bytes = {}, {}, 0, 0, 0
local now = call('TIME')
local now_ms = now[1] * 1000 + now[2] / 1000
local laned, heard = used and used.lanes, used and used.heard
local limit = used and used.limits and limits(base, now_ms)
local most = wanted -- of what is wanted, what may be given
if not paused then
  bad = laned and line_refusal(base)
  if bad then return bad end
  if limit and limit.is_over() then
    call('DEL', base .. 'limits') -- which full memory lets through
    limit = nil
  end
  if limit then
    most = limit.allowed(wanted)
    if most == 0 then call('ZREM', base .. 'hungry', process) end -- a first write that full memory lets through
  end
  local deadline = spell(math.min(math.floor(now_ms) + lease, MAX_INT))
  local spelt = {} -- most jobs of a call have been claimed equally often
  local with_epoch = epoch ~= ''
  local stored = with_epoch and epoch or '-'
  local rows = base .. 'job:'
  local width = with_epoch and 4 or 3
  local in_lanes = laned and {} -- flat, an id and its lane
  if laned and the_line(base).bring_back() == 0 then call('ZREM', base .. 'lanes', QUEUE_HELD) end -- likewise
  while got < most and bytes <= MOST_PAYLOAD do
    local asked = most - got
    local popped, lanes_of, step, looks = nil, nil, 1, false
    if laned then
      asked = math.min(asked, FEW)
      popped, lanes_of = the_line(base).take(asked)
    elseif asked <= FEW then
      popped, step = redis.pcall('ZPOPMIN', pending, asked), 2
    else
      -- Only looked at, since it is not known yet how many fit. The scores that ZPOPMIN tells as well cost more than another command.
      popped, looks = redis.pcall('ZRANGE', pending, 0, asked - 1), true
    end
    -- the first write, or what comes before it: nothing has been written
    if popped.err then return mistyped('zset', pending) or popped end
    local last = #popped
    if looks then call('ZREM', pending, popped[1] or '') end -- a first write that full memory lets through
    for i = 1, last, step do
      local id = popped[i]
      local row = rows .. id
      -- tried, not called: a key of another type must not take the rest of the batch with it
      local r = redis.pcall('HMGET', row, 'payload', 'attempts', 'uncharged')
      local payload = r[1]
      if payload then
        bytes = bytes + #payload
        if bytes > MOST_PAYLOAD and looks and i > 1 then
          last = i - 1
          break
        end
      end
      if r.err or not (payload or r[2]) then
        ghosts = ghosts + 1
        if lanes_of then the_line(base).ghost(lanes_of[i]) end
      else
        local before = r[2] or '0'
        local attempts = (tonumber(before) or 0) + 1
        local text = spelt[attempts]
        if not text then
          text = spell(attempts)
          spelt[attempts] = text
        end
        call('HSET', row, 'attempts', text, 'state', 'active', 'lease_epoch', stored)
        local n = got * width
        answer[n + 1] = id
        answer[n + 2] = payload or ''
        answer[n + 3] = attempts
        if with_epoch then answer[n + 4] = r[3] and number_of(r[3], 0) or 0 end
        leases[2 * got + 1] = deadline
        leases[2 * got + 2] = id
        got = got + 1
        if lanes_of and lanes_of[i].name ~= '' then
          in_lanes[#in_lanes + 1], in_lanes[#in_lanes + 2] = id, lanes_of[i].name
        end
        if heard then report(base, 'active', id, text) end
      end
    end
    if looks and last > 1 then call('ZREMRANGEBYRANK', pending, 0, last - 2) end
    if #popped < step * asked or single or ghosts >= 100 then break end
  end
  zadd(active, leases)
  if laned then
    if #in_lanes > 0 then call('HSET', base .. 'lanes:active', unpack(in_lanes)) end
    the_line(base).finish(true)
  end
  if limit then limit.spend(got) end
elseif process ~= '' then
  call('ZREM', base .. 'hungry', process) -- likewise
end

if got < wanted and process ~= '' then
  call('ZADD', base .. 'hungry', spell(now[1] * 1000000 + now[2]), process)
end
-- Jobs remain behind a full claim, behind so many bytes, or behind so many ghosts that this one gave up; or a limit stands before
-- them, and time will take it away.
local more = got == wanted or ghosts > 0 or bytes > MOST_PAYLOAD
if not paused and (more or limit) then
  local remaining = laned and call('ZCARD', base .. 'lanes') or call('ZCARD', pending)
  if remaining > 0 then
    if limit and limit.held_until() then
      limit.park()
    elseif more then
      wake(base)
    end
  end
end
if used then publish_news(base) end
return answer
