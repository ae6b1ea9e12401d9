-- schedule_get: one repeating schedule as it stands, and the server's now, from which its caller counts slots.
-- KEYS schedules base
-- ARGV key
-- Answers now, its next slot as text (2^53-1 while paused, -1 when there is none), and the flat fields and values of its row.
local schedules, base = KEYS[1], KEYS[2]
local bad = mistyped('zset', schedules)
if bad then return bad end
local row = redis.pcall('HGETALL', base .. 'schedule:' .. (ARGV[1] or ''))
return { server_ms(), call('ZSCORE', schedules, ARGV[1] or '') or '-1', row.err and {} or row }
