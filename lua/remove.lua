-- remove x n: a job that nobody is running goes, whatever set it stands in; a kept `done` row too. Its parent hears of it.
-- KEYS pending base
-- ARGV tree (0/1/2; or pending, scheduled, dead: without its tree, and only what is that), then ids
-- Answers a code per job: 1 removed, 0 gone, -2 active, in another state, or a parent with outstanding children. With tree also 3:
-- it has children, which go first; it is marked, so that no policy applies to it, and goes when it is named again; and 2: it is
-- running, and ends as any job. It keeps its parent: that may be one that stays, and one that went does not mind.
-- Tree 2 is the first call of whoever removes a tree: a mark that somebody left, who has not come to the end, is none.
local base = KEYS[2]
local tree, first = ARGV[1] == '1' or ARGV[1] == '2', ARGV[1] == '2'
local only = ({ pending = true, scheduled = true, dead = true })[ARGV[1]] and ARGV[1]
if not (only or int(ARGV[1] or '', 0, 2)) or #ARGV < 2 then return refuse('EMQARG', 'remove: arguments do not add up') end
local sets = { pending = base .. 'pending', scheduled = base .. 'schedule', dead = base .. 'dead', awaiting_children = base .. 'waiting' }
local bad = mistyped('zset', sets.scheduled) or flow_refusal(base)
  or mistyped('hash', base .. 'metrics:removed')
if bad then return bad end

local codes, removed = {}, 0
local family
for i = 2, #ARGV do
  local id, row = ARGV[i], base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'state', 'parent', 'flow', 'removing', 'awaited', 'lane', 'dedup')
  local state = not r.err and r[1]
  local code = only and state and state ~= only and -2 or 0
  if state and code == 0 then
    code = -2
    local ties
    if r[2] or r[3] or r[5] then
      family = family or flows(base)
      ties = family.ties(row)
    end
    local children_first = r[3] and tree and (first or not r[4]) and state ~= 'active' and state ~= 'done'
    if children_first then
      call('HDEL', row, 'removing') -- a first write that full memory lets through
      call('HSET', row, 'removing', 1)
      code = 3
    elseif r[3] and not tree and sets[state] and family.outstanding(row) > 0 then
      code = -2
    elseif sets[state] and (state == 'pending' and the_line(base).drop(id, r[6]) or call('ZREM', sets[state], id)) == 1 then
      call('DEL', row)
      free_key(base, id, r[7])
      removed, code = removed + 1, 1
      if r[3] then family.forget(row) end
      if ties then family.tell(id, ties, 'gone', 'removed') end
    elseif state == 'done' then -- counted when it was completed
      code = call('DEL', row)
    elseif tree and state == 'active' then
      code = 2
    end
  end
  codes[#codes + 1] = code
end
count(base, 'removed', removed)
if family then family.finish() end
if line_here then line_here.finish() end
publish_news(base)
return codes
