-- What is recorded of a parent's children beside its row: who they are, what became of each, and how many are outstanding. Somebody
-- may have written to a record by hand.

local LISTED = 32 -- of up to so many children the results take as little memory as they can

-- `row` is a parent's, which is in this queue.
local function child_records(queue)
  local this = {}

  -- How many children are outstanding, from what is recorded of them; false when a record is none, because somebody has
  -- written to it by hand.
  function this.unsettled(row)
    local all, processed = redis.pcall('SCARD', row .. ':children'), redis.pcall('HLEN', row .. ':processed')
    local unsuccessful = redis.pcall('HLEN', row .. ':unsuccessful')
    if type(all) ~= 'number' or type(processed) ~= 'number' or type(unsuccessful) ~= 'number' then return false end
    return math.max(all - processed - unsuccessful, 0)
  end

  -- The same as a number: what cannot be counted is not waited for.
  function this.outstanding(row)
    return this.unsettled(row) or 0
  end

  -- Counts n children down that have just been recorded. Somebody may have written to the count by hand: then it is made
  -- anew from the records.
  function this.count_down(row, n)
    local left = redis.pcall('DECRBY', row .. ':dependencies', n)
    if type(left) ~= 'number' or left < 0 then
      left = this.outstanding(row)
      call('SET', row .. ':dependencies', left)
    end
    return left
  end

  -- A dead parent names one of the children that hold it.
  function this.name_failure(row)
    local r = call('HMGET', row, 'state', 'died_of', 'last_error')
    if r[1] ~= 'dead' or r[2] ~= 'children' then return end
    local named = string.match(r[3] or '', '^child .-|(JOB%w%w%w%w%w%w%w%w%w%w%w): ')
    if named and call('HEXISTS', row .. ':failed', named) == 1 then return end
    local failure = call('HRANDFIELD', row .. ':failed', 1, 'WITHVALUES')
    local id, text = failure[1], failure[2]
    if not id then return end
    local found = call('SISMEMBER', row .. ':children', queue .. '|' .. id) == 1 and queue .. '|' .. id
    local cursor, pages = '0', 0
    while not found and pages < 50 do
      local scanned = call('SSCAN', row .. ':children', cursor, 'MATCH', '*|' .. id, 'COUNT', 1000)
      cursor, found, pages = scanned[1], scanned[2][1], pages + 1
      if cursor == '0' then break end
    end
    call('HSET', row, 'last_error', cut('child ' .. (found or '|' .. id) .. ': ' .. text))
  end

  -- Which of these children a record holds; false when somebody has written to it by hand. A record that is not there holds none.
  function this.among(key, children)
    if call('EXISTS', key) == 0 then return {} end
    local found = redis.pcall('HMGET', key, unpack(children))
    return not found.err and found
  end

  -- A hash of up to 512 short fields is a list that is gone through for each of them. One field that is too long for that makes
  -- it a table, and it stays one.
  function this.record_processed(row, fresh)
    local key = row .. ':processed'
    if call('EXISTS', key) == 1 or call('SCARD', row .. ':children') <= LISTED then
      call('HSET', key, unpack(fresh))
    else
      local long = string.rep('-', 65)
      call('HSET', key, long, '', unpack(fresh))
      call('HDEL', key, long)
    end
  end

  -- The flow keys of a parent that has ended. Small ones at once: to wake the server's other thread costs more.
  function this.forget(row)
    local size = redis.pcall('SCARD', row .. ':children')
    local forget = type(size) == 'number' and size <= 500 and 'DEL' or 'UNLINK'
    call(forget, row .. ':dependencies', row .. ':children', row .. ':processed', row .. ':unsuccessful', row .. ':failed')
  end

  return this
end
