-- trim: removes the oldest of the dead until keep_count are left, at most limit a call. Their parents hear of it.
-- KEYS dead base
-- ARGV keep_count, limit
-- Answers removed.
local dead, base = KEYS[1], KEYS[2]
local keep, limit = int(ARGV[1] or '', 0, MAX_INT), int(ARGV[2] or '', 1, 1000)
if not (keep and limit) then return refuse('EMQARG', 'trim: keep_count or limit is malformed') end
local bad = mistyped('zset', dead) or mistyped('hash', base .. 'metrics:removed')
if bad then return bad end

local surplus = math.min(call('ZCARD', dead) - keep, limit)
if surplus <= 0 then return 0 end
local ids, rows = call('ZRANGE', dead, 0, surplus - 1), {}
local family, tied
for i, id in ipairs(ids) do
  rows[i] = base .. 'job:' .. id
  local r = redis.pcall('HMGET', rows[i], 'parent', 'flow', 'awaited')
  if r[1] or r[2] or r[3] then
    family, tied = family or flows(base), tied or {}
    tied[#tied + 1] = { id, rows[i], family.ties(rows[i]) }
  end
end
bad = tied and flow_refusal(base)
if bad then return bad end
local removed = zrem(dead, ids)
chunked('DEL', nil, rows)
count(base, 'removed', removed)
if tied then
  for _, job in ipairs(tied) do
    if job[3].flow then family.forget(job[2]) end
    family.tell(job[1], job[3], 'gone', 'trimmed')
  end
  family.finish()
end
if line_here then line_here.finish() end
publish_news(base)
return removed
