-- completions: jobs that have settled, from the stream of completions, oldest first, behind the entry that a reader saw last.
-- A reader that has seen more than the stream ever held speaks of another one: the server was flushed, or has lost it. It begins
-- anew, and is told so: otherwise it would wait for ids that may never come.
-- KEYS completions base
-- ARGV after (an entry's id; 0-0 to begin), limit, max_bytes (a page ends early rather than carry more; it holds at least one)
-- Answers restarted (0/1), then per entry: its id, and its flat fields and values.
local stream = KEYS[1]
local after, limit, left = ARGV[1] or '', int(ARGV[2] or '', 1, 1000), int(ARGV[3] or '', 1, MAX_INT)
local STEP = 50 -- entries looked at in one go: what is not carried was read for nothing

-- The halves of an id, as numbers.
local function halves(id)
  local ms, seq = string.match(id, '^(%d+)%-(%d+)$')
  return ms and int(ms, 0, MAX_INT), seq and int(seq, 0, MAX_INT)
end

local ms, seq = halves(after)
if not (ms and seq and limit and left) then return refuse('EMQARG', 'completions: after, limit or max_bytes is malformed') end
local bad = mistyped('stream', stream)
if bad then return bad end

local last_ms, last_seq = 0, 0
if call('EXISTS', stream) == 1 then
  local about = call('XINFO', 'STREAM', stream)
  for i = 1, #about, 2 do
    if about[i] == 'last-generated-id' then last_ms, last_seq = halves(about[i + 1]) end
  end
end
local restarted = last_ms and last_seq and (ms > last_ms or (ms == last_ms and seq > last_seq))
if restarted then after = '0-0' end
local answer = { restarted and 1 or 0 }
while #answer <= limit do
  local entries = call('XRANGE', stream, '(' .. after, '+', 'COUNT', math.min(STEP, limit + 1 - #answer))
  for _, entry in ipairs(entries) do
    for _, text in ipairs(entry[2]) do left = left - #text end
    if left < 0 and #answer > 1 then return answer end
    answer[#answer + 1], after = entry, entry[1]
  end
  if #entries < STEP then break end
end
return answer
