-- cancel x n: a job that has not started goes, and its parent hears of it; a running one is asked to stop, and its holder is
-- told.
-- KEYS pending base
-- ARGV tree (0/1/2), then ids
-- Answers a code per job: 1 removed before it ran, 2 asked to stop, 0 gone, -2 dead, done, or waiting for children. With tree
-- also 3: it has children, which go first; it is marked, so that no policy applies to it, and goes when it is named again.
-- Tree 2 is the first call of whoever cancels a tree: a mark that somebody left, who has not come to the end, is none.
local base = KEYS[2]
local tree, first = ARGV[1] ~= '0', ARGV[1] == '2'
if not int(ARGV[1] or '', 0, 2) or #ARGV < 2 then return refuse('EMQARG', 'cancel: arguments do not add up') end
local sets = { pending = base .. 'pending', scheduled = base .. 'schedule' }
if tree then sets.awaiting_children = base .. 'waiting' end
local bad = mistyped('zset', sets.scheduled) or mistyped('hash', base .. 'metrics:removed')
  or flow_refusal(base)
if bad then return bad end

local codes, removed = {}, 0
local family
for i = 2, #ARGV do
  local id, row = ARGV[i], base .. 'job:' .. ARGV[i]
  local r = redis.pcall('HMGET', row, 'state', 'parent', 'flow', 'removing', 'awaited', 'lane', 'dedup', 'attempts')
  local state = not r.err and r[1]
  local code = 0
  if state then
    code = -2
    local ties
    if r[2] or r[3] or r[5] then
      family = family or flows(base)
      ties = family.ties(row)
    end
    if r[3] and tree and sets[state] and (first or not r[4]) then
      call('HDEL', row, 'removing') -- a first write that full memory lets through
      call('HSET', row, 'removing', 1)
      code = 3
    elseif sets[state] and (state == 'pending' and the_line(base).drop(id, r[6]) or call('ZREM', sets[state], id)) == 1 then
      call('DEL', row)
      free_key(base, id, r[7])
      report(base, 'cancelled', id, r[8])
      removed, code = removed + 1, 1
      if r[3] then family.forget(row) end
      if ties then family.tell(id, ties, 'gone', 'cancelled') end
    elseif state == 'active' then
      call('HDEL', row, 'cancel') -- likewise
      call('HSET', row, 'cancel', 1)
      redis.pcall(PUBLISH, base .. 'beat', 'cancel:' .. id)
      report(base, 'cancelled', id, r[8])
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
