-- resign: a process that stops serving queues gives back their leadership and its place among the hungry, so that
-- another takes over at once and no wake-up is sent to it.
-- KEYS leader keys of one slot, then the base of the first
-- ARGV process
-- Answers how many queues it led.
local led = 0
for i = 1, #KEYS - 1 do
  local leader = KEYS[i]
  local base = string.sub(leader, 1, -7)
  redis.pcall('ZREM', base .. 'hungry', ARGV[1])
  if redis.pcall('GET', leader) == ARGV[1] then
    call('DEL', leader)
    redis.pcall(PUBLISH, base .. 'beat', 'lead')
    led = led + 1
  end
end
return led
