-- reap: every lease at or below now is lost. The lapse is counted; over max_stalls the job is buried, else it goes back
-- to pending, where its holder may still settle it until someone claims it. A lease from before a server restart is
-- given back uncounted, once.
-- KEYS active pending dead base
-- ARGV limit, max_stalls, epoch ('' when unknown), record
-- Answers requeued, died, next deadline or -1, milliseconds until then or -1, then the ids of those that died.
local active, dead, base = KEYS[1], KEYS[3], KEYS[4]
local limit = int(ARGV[1] or '', 1, 1000)
local max_stalls = int(ARGV[2] or '', 0, MAX_INT)
local record = int(ARGV[4] or '', 0, MAX_INT)
if not (limit and max_stalls and record) then return refuse('EMQARG', 'reap: limit, max_stalls or record is malformed') end
local bad = mistyped('zset', active) or mistyped('zset', dead) or flow_refusal(base)
  or mistyped('hash', base .. 'metrics:failed') or mistyped('hash', base .. 'metrics:stalled')
  or (record > 0 and mistyped('stream', base .. 'stream:completions'))
if bad then return bad end

-- The server run an epoch was given in; nil when unknown ('-' is a claim that gave none).
local function run_of(epoch)
  local run = epoch and string.match(epoch, '^[^.]+')
  if run ~= '-' then return run end
end

local now = server_ms()
local this_run = run_of(ARGV[3])
local lapsed = call('ZRANGEBYSCORE', active, '-inf', now, 'LIMIT', 0, limit)
local requeued, dead_ids, stalled = 0, {}, 0
local family
if #lapsed > 0 then
  local line = the_line(base)
  zrem(active, lapsed)
  line.left(lapsed)
  for _, id in ipairs(lapsed) do
    local row = base .. 'job:' .. id
    local r = redis.pcall('HMGET', row, 'attempts', 'lease_epoch', 'stalls', 'max_stalls', 'cancel', 'priority', 'uncharged',
      'parent', 'flow', 'awaited', 'lane')
    if not r.err and r[1] then
      local run = run_of(r[2])
      local restarted = this_run and run and run ~= this_run
      local text
      if r[5] then
        text = 'cancelled'
      elseif not restarted then
        stalled = stalled + 1
        local stalls = one_more(r[3])
        call('HSET', row, 'stalls', stalls)
        report(base, 'stalled', id, r[1], stalls)
        if tonumber(stalls) > (int(r[4] or '', 0, MAX_INT) or max_stalls) then text = 'lease lapsed ' .. stalls .. ' times' end
      end
      if text then
        bury(base, id, row, r[1], text, record, now)
        dead_ids[#dead_ids + 1] = id
        if r[8] or r[9] or r[10] then
          family = family or flows(base, record, now)
          family.buried(id, row, text)
        end
      else
        if restarted then
          call('HSET', row, 'uncharged', one_more(r[7]), 'lease_epoch', '-')
        end
        call('HSET', row, 'state', 'pending', 'lapsed', r[1])
        line.put(id, r[11], r[6])
        requeued = requeued + 1
      end
    end
  end
  count(base, 'stalled', stalled)
  count(base, 'failed', #dead_ids)
  if family then family.finish() end
  line.finish()
  publish_news(base)
end
local next_at = first_score(active)
local answer = { requeued, #dead_ids, next_at or -1, next_at and math.max(0, next_at - now) or -1 }
for i = 1, #dead_ids do answer[4 + i] = dead_ids[i] end
return answer
