-- complete x n: the holder of a claim is done; the row goes, or stays as `done` for keep_ms with its result.
-- KEYS active base
-- ARGV record, then per job: id, token, keep_ms, result
-- Answers a code per job: 1 done (again for a repeat on a kept row), 0 gone, -1 stale.
-- Cost: per job one HMGET; per call one ZREM, one DEL, one HINCRBY. A child counts its parent down, a parent takes its flow
-- keys with it.
local active, base = KEYS[1], KEYS[2]
local record = int(ARGV[1] or '', 0, MAX_INT)
if not record or #ARGV < 5 or (#ARGV - 1) % 4 ~= 0 then return refuse('EMQARG', 'complete: arguments do not add up') end
for i = 4, #ARGV, 4 do
  if ARGV[i] ~= '0' and not int(ARGV[i], 0, MAX_INT) then return refuse('EMQARG', 'complete: keep_ms is not an integer') end
end
local bad = mistyped('zset', active) or mistyped('hash', base .. 'metrics:completed')
  or (record > 0 and mistyped('stream', base .. 'stream:completions'))
if bad then return bad end

local now = record > 0 and server_ms() or nil
local AWAITED_MS = 60000 -- so long, at least, the result of a job that somebody waits for can be fetched
local codes, settled, recorded = {}, {}, {}
local held, lapsed, rows, kept, awaited = {}, {}, {}, {}, {}
local jobs = base .. 'job:'
local family, tied
local read = redis.pcall
if not WHOLE and in_use(base, base .. 'heard') then return beyond() end
local used = WHOLE and in_use(base)
local freed = used and used.dedups and {} -- flat, ids and the deduplication keys they own
local waited = used and used.lanes and {} -- of the lapsed, the lanes they wait in

for i = 2, #ARGV, 4 do
  local id, token, keep = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local row = jobs .. id
  local earlier, code = settled[id], 0
  if earlier then
    -- an earlier item of this call has settled it: the row is gone, or done
    if ARGV[earlier + 2] ~= '0' or call('HGET', row, 'awaited') then code = ARGV[earlier + 1] == token and 1 or -1 end
  else
    local r = read('HMGET', row, 'attempts', 'lease_epoch', 'state', 'parent', 'flow', 'awaited')
    if not r.err then
      code = holder(token, row, r)
      if code > 0 then
        local list = code == 1 and held or lapsed
        list[#list + 1] = id
        if used then -- more than plain jobs
          if code == 2 and waited then waited[#list] = call('HGET', row, 'lane') or '' end
          local key = freed and call('HGET', row, 'dedup')
          if key then freed[#freed + 1], freed[#freed + 2] = id, key end
          report(base, 'completed', id, r[1], ARGV[i + 3])
        end
        if keep == '0' and not r[6] then rows[#rows + 1] = row else kept[#kept + 1] = i end
        settled[id], code = i, 1
        if r[4] or r[5] or r[6] then
          if not WHOLE then return beyond(true) end
          family, tied = family or flows(base, record, now), tied or {}
          awaited[i] = r[6] and tonumber(keep) < AWAITED_MS
          tied[#tied + 1], r.item = r, i
          if r[4] then r[7], r.policy = unpack(call('HMGET', row, 'parent_queue', 'parent_policy')) end
        end
        if record > 0 then recorded[#recorded + 1] = { id, r[1], ARGV[i + 3] } end
      elseif r[3] == 'done' then
        code = holder(token, row, { r[1], r[2], 'active' }) -- repeated by the same token
      end
    end
  end
  codes[#codes + 1] = code
end

bad = #lapsed > 0 and mistyped('zset', base .. 'pending') or tied and flow_refusal(base)
  or used and line_refusal(base)
if bad then return bad end
zrem(active, held)
if not used then
  zrem(base .. 'pending', lapsed)
else
  for i, id in ipairs(lapsed) do the_line(base).drop(id, waited and waited[i]) end
  the_line(base).left(held)
  for i = 1, freed and #freed or 0, 2 do free_key(base, freed[i], freed[i + 1]) end
end
chunked('DEL', nil, rows)
for _, i in ipairs(kept) do
  local row = jobs .. ARGV[i]
  call('HDEL', row, 'lapsed', 'cancel')
  call('HSET', row, 'state', 'done', 'result', ARGV[i + 3])
  call('PEXPIRE', row, awaited[i] and AWAITED_MS or ARGV[i + 2])
end
count(base, 'completed', #rows + #kept)
for _, r in ipairs(recorded) do record_settled(record, base, r[1], 'completed', r[2], now, 'result', r[3]) end
if tied then
  for _, job in ipairs(tied) do
    local id, result, parent = ARGV[job.item], ARGV[job.item + 3], job[4]
    if job[5] then family.forget(jobs .. id) end
    if job[6] or job[7] then
      family.tell(id, { awaited = job[6], parent = parent, parent_queue = job[7], parent_policy = job.policy }, 'done', result)
    elseif parent then
      family.succeed(parent, id, result)
    end
  end
  family.finish()
end
if line_here then line_here.finish() end
if used then publish_news(base) end
return codes
