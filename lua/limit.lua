-- limit: changes what holds back the whole queue, or says what does.
-- KEYS limits base
-- ARGV nothing, or settings and values: concurrency (jobs active at a time), interval (ms between two jobs), burst, until (only
-- taken back: lifts a hold). '' takes a setting back.
-- Answers concurrency, interval, burst, each '' when there is none, and the milliseconds for which the queue is held back now.
local key, base = KEYS[1], KEYS[2]
local bad = mistyped('hash', key) or line_refusal(base) or mistyped('zset', base .. 'lanes:parked')
if bad then return bad end
if #ARGV % 2 ~= 0 then return refuse('EMQARG', 'limit: arguments do not add up') end
for i = 1, #ARGV, 2 do
  local setting, value = ARGV[i], ARGV[i + 1]
  if setting == 'concurrency' or setting == 'burst' then
    if value ~= '' and not int(value, 1, MAX_INT) then return refuse('EMQARG', 'limit: ' .. setting .. ' is not an integer from 1') end
  elseif setting == 'interval' then
    local n = string.match(value, '^%d+%.?%d*$') and tonumber(value)
    if value ~= '' and not (n and n > 0 and n <= MAX_INT) then return refuse('EMQARG', 'limit: interval is not milliseconds') end
  elseif setting ~= 'until' or value ~= '' then
    return refuse('EMQARG', 'limit: there is no setting ' .. string.sub(setting, 1, 40))
  end
end
call('HDEL', key, '') -- a first write that full memory lets through
for i = 1, #ARGV, 2 do
  if ARGV[i + 1] == '' then call('HDEL', key, ARGV[i]) else call('HSET', key, ARGV[i], ARGV[i + 1]) end
end
local now = server_ms()
local r = call('HMGET', key, 'concurrency', 'interval', 'burst', 'until')
if not (r[1] or r[2] or r[4]) then call('DEL', key) end
local at = limits(base, now).held_until()
if #ARGV > 0 then
  call('ZREM', base .. 'lanes:parked', QUEUE_HELD)
  if the_line(base).claimable() > 0 and call('EXISTS', base .. 'paused') == 0 then wake(base) end -- who finds a limit parks it
end
return { r[1] or '', r[2] or '', r[3] or '', at and math.ceil(at - now) or 0 }
