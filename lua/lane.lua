-- lane: changes what a lane, a group of lanes, or every lane that has no setting of its own is judged by. Without arguments: brings
-- the parked lanes back whose time has come, at most 16, and wakes somebody.
-- KEYS lanes base
-- ARGV nothing, or: `lane`, `group` or `all`, the name ('' of all), then settings and values: weight (0.1 to 100), cap, interval (ms
-- between two jobs), burst, max_waiting, paused (1), until (only taken back). '' takes a setting back; `-`, of a cap, an interval or
-- a max_waiting, is none, whatever stands for all. A group has a weight, and can be paused.
-- Answers 1; without arguments how many were due, and milliseconds until the next, -1 when there is none.
local base = KEYS[2]
local kind, name = ARGV[1], ARGV[2]
local LEAST = { weight = 0.1, cap = 1, interval = 0, burst = 1, max_waiting = 1 }
local MOST = { weight = 100, cap = MAX_INT, interval = MAX_INT, burst = MAX_INT, max_waiting = MAX_INT }
local ABSENT = { cap = true, interval = true, max_waiting = true }

local bad = line_refusal(base, kind) or mistyped('zset', base .. 'lanes:parked')
if bad then return bad end

if not kind then
  local used = in_use(base)
  local parked = base .. 'lanes:parked'
  local now = server_ms()
  local due
  if used and used.lanes then
    the_line(base).sweep()
    due = the_line(base).bring_back()
    the_line(base).finish(true)
  else
    due = call('ZREMRANGEBYSCORE', parked, '-inf', spell(now))
  end
  if due > 0 and the_line(base).claimable() > 0 and call('EXISTS', base .. 'paused') == 0 then wake(base) end
  local at = first_score(parked)
  return { due, at and math.max(0, at - now) or -1 }
end

if not ({ lane = true, group = true, all = true })[kind] or not name or #ARGV < 2 or #ARGV % 2 ~= 0 then
  return refuse('EMQARG', 'lane: arguments do not add up')
end
if (kind == 'all' and name ~= '') or (kind == 'group' and (not lane_named(name) or string.find(name, SEP, 1, true)))
  or (kind == 'lane' and name ~= '' and not lane_named(name)) then
  return refuse('EMQARG', 'lane: not a name of a lane or a group')
end
for i = 3, #ARGV, 2 do
  local setting, value = ARGV[i], ARGV[i + 1]
  local known = LEAST[setting] or setting == 'paused' or setting == 'until'
  if kind == 'group' or (kind == 'lane' and name == '') then known = setting == 'weight' or setting == 'paused' end
  if not known or (kind == 'all' and (setting == 'paused' or setting == 'until')) then
    return refuse('EMQARG', 'lane: there is no setting ' .. string.sub(setting, 1, 40) .. ' of this')
  end
  local n = LEAST[setting] and string.match(value, '^%d+%.?%d*$') and tonumber(value)
  local whole = setting == 'weight' or setting == 'interval' or not n or n == math.floor(n)
  if value ~= '' and not (value == '-' and ABSENT[setting]) and not (setting == 'paused' and value == '1')
    and not (n and whole and n >= LEAST[setting] and n <= MOST[setting] and (setting ~= 'interval' or n > 0)) then
    return refuse('EMQARG', 'lane: setting ' .. setting .. ' has no such value')
  end
end

local key = base .. 'lanes:defaults'
local full = name
if kind == 'lane' then key = base .. 'lanestate:' .. name end
if kind == 'group' then
  key, full = base .. 'lanegroupstate:' .. name, name .. SEP
end
bad = mistyped('hash', key)
if bad then return bad end

call('HDEL', key, '') -- a first write that full memory lets through
local line = begin_lanes(base)
for i = 3, #ARGV, 2 do
  if ARGV[i + 1] == '' then call('HDEL', key, ARGV[i]) else call('HSET', key, ARGV[i], ARGV[i + 1]) end
end
if kind ~= 'all' then line.judge(full) end
line.finish()
return 1
