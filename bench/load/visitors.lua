-- A thousand visitors in turns, each with a cookie of its own: what is decided by it is decided anew for each request.
dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "report.lua")

local VISITORS = 1000
local requests, at = {}, 0

function init(_)
  for visitor = 1, VISITORS do
    wrk.headers["Cookie"] = string.format("visitor=%03d", visitor - 1)
    requests[visitor] = wrk.format("GET")
  end
end

function request()
  at = at % VISITORS + 1
  return requests[at]
end
