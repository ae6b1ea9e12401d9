-- schedule_put: declares a repeating schedule, or declares it again. Its next slot moves only when `spec`, which says when it
-- runs, is another; what it lands (payload and fields) and its rules are replaced in the same step. A paused one stays paused.
-- KEYS schedules base
-- ARGV key, rev (new, drawn by the caller), spec, rules, payload, next slot, origin, nfields, field, value ...
-- Answers 1 new, 2 changed, 0 as it was; then its next slot, as text (clients round it as a number): 2^53-1 while it is paused.
local schedules, base = KEYS[1], KEYS[2]
local key, rev, spec, rules, payload, origin = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[7]
local next_slot, fields = int(ARGV[6] or '', 1, MAX_INT), int(ARGV[8] or '', 0, 3)
if not key or #key == 0 or #key > 200 then return refuse('EMQARG', 'schedule_put: key is not 1 to 200 bytes') end
if rev == '' or not next_slot then return refuse('EMQARG', 'schedule_put: rev or next slot is malformed') end
if not fields or #ARGV ~= 8 + 2 * fields then return refuse('EMQARG', 'schedule_put: fields do not add up') end
local given = {}
for f = 9, #ARGV, 2 do
  local name, value = ARGV[f], ARGV[f + 1]
  if not (name == 'priority' and int(value, -MAX_INT, MAX_INT)) and not (name == 'max_stalls' and int(value, 0, MAX_INT))
    and not (name == 'lane' and lane_named(value)) then
    return refuse('EMQARG', 'schedule_put: a field is not priority, max_stalls or lane, or has no such value')
  end
  if given[name] then return refuse('EMQARG', 'schedule_put: a field stands twice') end
  given[name] = value
end
local row = base .. 'schedule:' .. key
local bad = mistyped('zset', schedules) or mistyped('hash', row)
if bad then return bad end

local h = call('HMGET', row, 'rev', 'spec', 'rules', 'payload', 'origin', 'priority', 'max_stalls', 'lane', 'paused')
local score = tonumber(call('ZSCORE', schedules, key))
local known = h[1] and score
local same_times = known and h[2] == spec
if same_times and h[3] == rules and h[4] == payload and h[5] == origin
  and (h[6] or nil) == given.priority and (h[7] or nil) == given.max_stalls and (h[8] or nil) == given.lane then
  return { 0, spell(score) }
end

local before = first_score(schedules)
call('HSET', row, 'rev', rev, 'spec', spec, 'rules', rules, 'payload', payload, 'origin', origin, unpack(ARGV, 9))
if not given.priority then call('HDEL', row, 'priority') end
if not given.max_stalls then call('HDEL', row, 'max_stalls') end
if not given.lane then call('HDEL', row, 'lane') end
if not known then call('HDEL', row, 'last_slot', 'last_job', 'skipped', 'paused') end -- what a hand has left
if not same_times then
  score = known and h[9] and MAX_INT or next_slot
  call('ZADD', schedules, spell(score), key)
  if score < MAX_INT then announce_if_earlier(base, before, schedules, server_ms(), 'slot:') end
end
return { known and 2 or 1, spell(score) }
