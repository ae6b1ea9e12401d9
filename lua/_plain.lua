-- Stands in the place of what the plain edition of a script does without: see scripts/lua-chunks.mjs.
local WHOLE = false

-- Uses the queue more than plain jobs, or is there the other key?
local function in_use(base, other)
  return call('EXISTS', base .. 'lanes:floor', base .. 'limits', base .. 'dedups', base .. 'heard', other) > 0
end

local report, publish_news, free_key, limits, the_line, line_here, begin_lanes, line_refusal, flows, flow_refusal, lane_named
local dedup_of, duplicate_of, own_key
