-- health: what tells whether a queue is served: one consistent look, which writes nothing.
-- KEYS pending base
-- Answers the leading process or '', paused 0/1, how many are pending, the id at their head or '', the earliest run-at in
-- `schedule` and lease deadline in `active`, each -1 when there is none, and the server's now; times in ms.
-- Cost: O(log n), however long the queue is.
local pending, base = KEYS[1], KEYS[2]
local bad = mistyped('zset', pending) or mistyped('zset', base .. 'schedule') or mistyped('zset', base .. 'active')
  or mistyped('string', base .. 'leader')
if bad then return bad end
return {
  call('GET', base .. 'leader') or '', call('EXISTS', base .. 'paused'),
  call('ZCARD', pending), call('ZRANGE', pending, 0, 0)[1] or '',
  first_score(base .. 'schedule') or -1, first_score(base .. 'active') or -1, server_ms(),
}
