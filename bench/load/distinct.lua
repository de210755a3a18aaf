-- A target that nobody has asked for before, with each request: `NEW` in the target's path becomes the time at which
-- the run began and a number. Runs begin in different seconds, so two of them have no target in common.
dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "report.lua")

local before, after, number = nil, nil, 0

function init(_)
  local whole = wrk.format("GET", wrk.path)
  local from, to = whole:find("NEW", 1, true)
  before, after = whole:sub(1, from - 1) .. os.time() .. "-", whole:sub(to + 1)
end

function request()
  number = number + 1
  return before .. number .. after
end
