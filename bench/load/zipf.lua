-- Ten thousand keys, the most wanted one asked for far more often than the last: the share of key k goes with
-- 1/k (Zipf, exponent 1). The order is drawn before the run from a fixed seed, so that every server gets the same
-- requests in the same order and no drawing takes part in the measurement.
dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "report.lua")

local KEYS, DRAWS, SEED = 10000, 262144, 20231
local order, at = {}, 0

function init(_)
  local reach, sum = {}, 0
  for key = 1, KEYS do
    sum = sum + 1 / key
    reach[key] = sum
  end
  local requests = {}
  for key = 1, KEYS do
    requests[key] = wrk.format("GET", string.format("/key/%d/134", key - 1))
  end
  -- Park and Miller's generator: the same numbers with every Lua.
  local state = SEED
  for draw = 1, DRAWS do
    state = (state * 16807) % 2147483647
    local wanted = state / 2147483647 * sum
    local low, high = 1, KEYS
    while low < high do
      local middle = math.floor((low + high) / 2)
      if reach[middle] < wanted then low = middle + 1 else high = middle end
    end
    order[draw] = requests[low]
  end
end

function request()
  at = at % DRAWS + 1
  return order[at]
end
