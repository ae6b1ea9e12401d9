-- Stands in front of every script. Reads and refusals first, then writes: once a script has written, it must not fail. So
-- what a row says is never handed to a command that may refuse it: somebody may have written to the row by hand.
-- A hash `row` holds a job; its state is the set its id stands in. `base` ends in a colon.
local call = redis.call
local PUBLISH = 'PUBLISH' -- the cluster edition says SPUBLISH, so that a channel lives where its queue does
local MAX_INT = 9007199254740991
local CHUNK = 512 -- unpack fails near 8,000, and from some 1,000 on the stack that it needs costs as much as the command
local KEPT_ERRORS = 10
local SEP = '\31' -- between the name of a group and that of a lane
local QUEUE_HELD = SEP -- the member of `lanes:parked` that stands for the whole queue, held back by its own rate or by a hold
local ERROR_BYTES = 4096
local MINTED, MINTED_BYTES = '^JOB%w+$', 14 -- what an id looks like; a pattern that counted to 14 would take three times as long

local function refuse(tag, text)
  return redis.error_reply(tag .. ' ' .. text)
end

-- A canonical decimal integer within bounds, or nil: no '+', blanks, hex, nan, inf, leading zeros.
local function int(text, low, high)
  local n = tonumber(text)
  if n and n >= low and n <= high and string.format('%d', n) == text then return n end
end

-- What is wrong with a field that a client gives a new job, or nil. `lane` and `dedup` have rules of their own.
local function bad_field(name, value)
  if name == 'priority' then
    if not int(value, -MAX_INT, MAX_INT) then return 'priority is not an integer' end
  elseif name == 'max_stalls' then
    if not int(value, 0, MAX_INT) then return 'max_stalls is not an integer' end
  elseif name ~= 'awaited' then
    return 'a client may not set field ' .. string.sub(name, 1, 40)
  end
end

-- What a field says, from `low` on; nil where it says no such number: also of a field that is not there.
local function number_of(text, low)
  local n = tonumber(text or nil)
  if n and n >= low and n <= MAX_INT then return n end
end

-- Spells an integer. Numbers handed to a command as they are get printed with 17 digits, which costs more than most
-- commands: on the hot path they are spelt once and handed over as text.
local function spell(n)
  return string.format('%d', n)
end

-- A refusal when `key` holds something else than `kind`, or nil.
local function mistyped(kind, key)
  local found = call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then
    return refuse('EMQTYPE', key .. ' holds a ' .. found .. ', not a ' .. kind)
  end
end

local function server_us()
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

local function server_ms()
  return math.floor(server_us() / 1000)
end

-- Calls a command for a list, or for what stands in it from `from` on, with up to CHUNK of its elements at a time, behind `key` if
-- there is one; adds up the answers. (No function is called with them instead: they would be copied twice more.)
local function chunked(command, key, list, from)
  local n, total = #list, 0
  for i = from or 1, n, CHUNK do
    local last = math.min(i + CHUNK - 1, n)
    if key then
      total = total + call(command, key, unpack(list, i, last))
    else
      total = total + call(command, unpack(list, i, last))
    end
  end
  return total
end

local MANY = 16
local TOO_LONG = string.rep('~', 65) -- for a set that is a list

-- Takes a flat list of scores and members; answers how many of them are new. A set of up to 128 short members is a list that the
-- server goes through for each of them: 100 in order take it five times as long as in the table that a larger set is. A member
-- that is too long for a list makes it one, and it stays one until it is empty.
local function zadd(key, scored)
  local n = #scored
  if n < 2 * MANY or call('ZCARD', key) > 128 then
    return chunked('ZADD', key, scored)
  end
  local added = call('ZADD', key, '0', TOO_LONG, unpack(scored, 1, math.min(n, CHUNK))) + chunked('ZADD', key, scored, CHUNK + 1)
  return added - call('ZREM', key, TOO_LONG)
end

local function zrem(key, ids)
  return chunked('ZREM', key, ids)
end

-- The state of a job; `gone` when there is no row.
local function state_of(row)
  local state = redis.pcall('HGET', row, 'state')
  return type(state) == 'string' and state or 'gone'
end

-- A row's counter, one higher, as text.
local function one_more(text)
  return spell((int(text or '', 0, MAX_INT - 1) or 0) + 1)
end

-- A row's priority as text; none counts as 0.
local function priority_of(text)
  return text and int(text, -MAX_INT, MAX_INT) and text or '0'
end

-- Tried, not called: a metric somebody has set to a word must not break a step that has already written.
local function count(base, metric, n)
  if n > 0 then redis.pcall('HINCRBY', base .. 'metrics:' .. metric, 'count', n) end
end

local WHOLE = true -- of the two editions of a script, this is the one that knows everything

-- Answered by the plain edition, before it has written anything: the queue uses more than plain jobs, or (EMQTIED) one of these
-- jobs has ties to others. The call is sent again to the whole edition.
local function beyond(tied)
  return refuse(tied and 'EMQTIED' or 'EMQPLAIN', 'the whole edition of the script is needed')
end

local in_use_here -- by this run: false when the queue uses nothing beyond plain jobs

-- What a queue uses beyond plain jobs: lanes, limits, deduplication keys, or events that somebody listens for. One command says no
-- for all of them. False, or a table.
local function in_use(base)
  if in_use_here == nil then
    -- In quotes, or every script that asks this would be given the function of that name.
    local keys = { lanes = base .. 'lanes:floor', ['limits'] = base .. 'limits', dedups = base .. 'dedups', heard = base .. 'heard' }
    in_use_here = call('EXISTS', keys.lanes, keys.limits, keys.dedups, keys.heard) > 0 and {}
    if in_use_here then
      for what, key in pairs(keys) do in_use_here[what] = call('EXISTS', key) == 1 end
    end
  end
  return in_use_here
end

-- From now on it does.
local function use(base, what)
  in_use_here = in_use(base) or {}
  in_use_here[what] = true
end

local news = {} -- what the queue's listeners are told at the end of the step

-- An event of a job, for whoever listens: costs nothing when nobody does. Numbers go before the text they measure, so that a
-- text may hold anything; a long one stays away.
local function report(base, event, id, attempts, text)
  local listened = in_use(base)
  if not (listened and listened.heard) then return end
  text = text or ''
  if #text > ERROR_BYTES then text = '' end
  news[#news + 1] = event .. ' ' .. id .. ' ' .. (attempts or '0') .. ' ' .. #text .. ' ' .. text
end

local function publish_news(base)
  if #news > 0 then redis.pcall(PUBLISH, base .. 'events', table.concat(news, '\n')) end
end

-- The end of its owner frees a deduplication key; that of anybody else does not.
local function free_key(base, id, key)
  if key and redis.pcall('GET', base .. 'dedup:' .. key) == id then call('DEL', base .. 'dedup:' .. key) end
end

-- Wakes the process that has been hungry longest; the next one when nobody listens there any more.
-- Publishing is tried, not called: an error here would break a step that has already written. A wake-up lost to
-- missing rights is found by the beat, and a connector probes its rights before it starts.
local function wake(base)
  for _ = 1, 100 do
    local popped = call('ZPOPMIN', base .. 'hungry')
    if #popped == 0 then return 0 end
    local heard = redis.pcall(PUBLISH, base .. 'w:' .. popped[1], '')
    if type(heard) == 'number' and heard > 0 then return 1 end
  end
  return 0
end

-- The first score of a set, or nil.
local function first_score(key)
  return tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
end

-- Tells the leader when a new earliest time has come up, as the milliseconds until then, behind a word where it is no run-at.
local function announce_if_earlier(base, before, schedule, now, word)
  local first = first_score(schedule)
  if first and (not before or first < before) then
    redis.pcall(PUBLISH, base .. 'beat', (word or '') .. spell(math.max(0, first - now)))
  end
end

-- A delay: '' = now, '250' = ms from now, '@1790000000000' = at. Answers the run-at, 0 for now, nil when malformed.
local function run_at(delay, now)
  if delay == '' then return 0 end
  local at
  if string.sub(delay, 1, 1) == '@' then
    at = int(string.sub(delay, 2), 0, MAX_INT)
  else
    local ms = int(delay, 0, MAX_INT)
    at = ms and math.min(now + ms, MAX_INT)
  end
  if at and at <= now then return 0 end
  return at
end

-- May `token` settle the claim of a row that begins `r` = attempts, lease_epoch, state? Answers 1 for a claim in
-- `active`, 2 for one that lapsed and went back to pending unclaimed, 0 gone, -1 stale.
local function holder(token, row, r)
  local attempts, epoch, state = r[1], r[2], r[3]
  if not attempts then return 0 end
  if token ~= attempts .. '@' .. (epoch or '') then
    local plain = not epoch or epoch == '-' or not string.find(epoch, '.', 1, true)
    if not (plain and token == attempts) then return -1 end
  end
  if state == 'active' then return 1 end
  if state == 'pending' and call('HGET', row, 'lapsed') == attempts then return 2 end
  return -1
end

-- Cut without leaving half a character.
local function cut(text)
  local n = ERROR_BYTES
  if #text <= n then return text end
  while n > ERROR_BYTES - 4 do
    local following = string.byte(text, n + 1)
    if following < 128 or following > 191 then break end
    n = n - 1
  end
  return string.sub(text, 1, n)
end

-- Keeps the text of the newest failures; the list of attempts says which.
local function note_error(row, attempts, text)
  text = cut(text)
  local kept = {}
  for a in string.gmatch(call('HGET', row, 'errors') or '', '[^,]+') do
    if a ~= attempts then kept[#kept + 1] = a end
  end
  kept[#kept + 1] = attempts
  while #kept > KEPT_ERRORS do call('HDEL', row, 'error:' .. table.remove(kept, 1)) end
  call('HSET', row, 'last_error', text, 'errors', table.concat(kept, ','), 'error:' .. attempts, text)
end

-- Records a settled job to the stream of completions: '0' off, '1' untrimmed, n = about n entries kept.
local function record_settled(record, base, id, outcome, attempts, at, what, text)
  if record == 0 then return end
  local key = base .. 'stream:completions'
  if record == 1 then
    call('XADD', key, '*', 'id', id, 'outcome', outcome, 'attempts', attempts, 'at', at, what, text)
  else
    call('XADD', key, 'MAXLEN', '~', record, '*', 'id', id, 'outcome', outcome, 'attempts', attempts, 'at', at, what, text)
  end
end

-- Buries a job that has been taken out of its set.
local function bury(base, id, row, attempts, text, record, now)
  call('HDEL', row, 'lapsed')
  note_error(row, attempts, text)
  call('HSET', row, 'state', 'dead')
  call('ZADD', base .. 'dead', 0, id)
  local listened = in_use(base)
  if listened and listened.dedups then free_key(base, id, call('HGET', row, 'dedup')) end
  report(base, 'dead', id, attempts, cut(text))
  record_settled(record, base, id, 'dead', attempts, now, 'error', cut(text))
end
