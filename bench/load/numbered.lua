-- A field with another value in each request: no two requests are alike.
dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "report.lua")

local before, after, number = nil, nil, 0

function init(_)
  wrk.headers["X-Number"] = "NUMBER"
  local whole = wrk.format("GET")
  local from, to = whole:find("NUMBER", 1, true)
  before, after = whole:sub(1, from - 1), whole:sub(to + 1)
end

function request()
  number = number + 1
  return before .. number .. after
end
