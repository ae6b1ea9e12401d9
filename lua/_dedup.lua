-- Deduplication keys, as enqueue meets them. A key's end is that of its owner: see free_key in _prelude.lua.

-- A key's mode, time (nil: none) and name, of the field's value; nil when it is malformed.
local function dedup_of(value)
  local mode, ttl, key = string.match(value, '^([utdl])(%d*):(.+)$')
  if not mode or #key > 200 then return end
  ttl = ttl ~= '' and int(ttl, 1, MAX_INT) or ttl == '' and nil
  if ttl == false or (not ttl and (mode == 't' or mode == 'd')) then return end
  return { mode = mode, ttl = ttl, key = key }
end

-- What a job is answered that may not land, because another holds its key; nil when it may. What the holder waits for is replaced
-- where the mode says so: the second answer is then true if its time has moved.
local function duplicate_of(base, dedup, payload, run)
  local id = redis.pcall('GET', base .. 'dedup:' .. dedup.key)
  if type(id) ~= 'string' then return end
  local row = base .. 'job:' .. id
  local state, mode = state_of(row), dedup.mode
  if mode == 't' then return id .. ' ' .. state end -- a key held by a time goes with the time
  if state == 'gone' then return end -- any other holds as long as its job lives
  if mode == 'u' then return id .. ' ' .. state end
  local waits = state == 'scheduled' or (mode == 'l' and state == 'pending' and call('HEXISTS', row, 'lapsed') == 0)
  if not waits then return end
  call('HSET', row, 'payload', payload)
  local attempts = call('HGET', row, 'attempts')
  if attempts and attempts ~= '0' then call('HSET', row, 'uncharged', attempts) end -- they were those of the older data
  if mode == 'd' then call('ZADD', base .. 'schedule', spell(run), id) end
  return id .. ' ' .. state .. ' replaced', mode == 'd'
end

local function own_key(base, id, dedup)
  local key = base .. 'dedup:' .. dedup.key
  if dedup.ttl and dedup.mode ~= 'd' then call('SET', key, id, 'PX', dedup.ttl) else call('SET', key, id) end
end
