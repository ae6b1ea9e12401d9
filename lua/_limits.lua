-- Stands in front of the scripts that call limits(). What holds back a whole queue, whatever its lanes allow: how many of its jobs
-- are active at a time, in all processes, and how many are claimed in a time (GCRA: one timestamp, an interval, a burst); and a
-- hold that a handler has asked for.
local function limits(base, now)
  local this, key = {}, base .. 'limits'
  local r = redis.pcall('HMGET', key, 'concurrency', 'interval', 'burst', 'tat', 'until')
  if r.err then r = {} end
  local concurrency, interval, burst = number_of(r[1], 1), number_of(r[2], 0), number_of(r[3], 1) or 1
  local tat, hold = math.max(number_of(r[4], 0) or 0, now), number_of(r[5], 0) or 0

  -- How many jobs its rate allows now: a hair more than exact, since an interval is no whole number of what a timestamp can hold.
  local function by_rate()
    return math.floor(burst - (tat - now) / interval + 1e-6)
  end

  -- How many of the jobs that are wanted may be claimed now.
  function this.allowed(wanted)
    if hold > now then return 0 end
    if concurrency then wanted = math.min(wanted, concurrency - call('ZCARD', base .. 'active')) end
    if interval then wanted = math.min(wanted, by_rate()) end
    return math.max(wanted, 0)
  end

  -- A hold was all there was, and it is over.
  function this.is_over()
    return r[5] and not concurrency and not interval and hold <= now
  end

  function this.spend(n)
    if not interval or n == 0 then return end
    tat = math.min(tat + n * interval, MAX_INT)
    call('HSET', key, 'tat', string.format('%.17g', tat))
  end

  -- No job may be claimed before then; nil when one may be now, as far as time goes: when it does not, somebody must be told of the
  -- time, or nobody would come.
  function this.held_until()
    local waits = interval and by_rate() < 1
    if not waits and hold <= now then return end
    return math.max(hold, waits and tat - (burst - 1) * interval or now, now)
  end

  -- Nothing is claimed for so long.
  function this.hold(ms)
    hold = math.min(math.max(hold, now + ms), MAX_INT)
    call('HSET', key, 'until', string.format('%.17g', hold))
  end

  -- Has the leader wake somebody when the time has come.
  function this.park()
    local at = this.held_until()
    if not at then return end
    local parked = base .. 'lanes:parked'
    if mistyped('zset', parked) then return end
    local earliest = first_score(parked)
    call('ZADD', parked, spell(math.ceil(at)), QUEUE_HELD)
    announce_if_earlier(base, earliest, parked, math.floor(now), 'park:')
  end

  return this
end
