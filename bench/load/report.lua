-- What wrk prints when it is done, for the bench's runner; other scripts here load this one. A line with every wait that
-- its histogram has and how often, then a line of JSON with the rest. Waits and the duration are in microseconds;
-- `requests` are answers that came whole; `cpu` is what wrk took until it was done, without what these lines cost.
-- The histogram has waits in it that nobody had: wrk adds them before it calls this, and the runner takes them out.
function done(summary, latency, _)
  local cpu, errors, waits = os.clock() * 1e6, summary.errors, {}
  for place = 1, #latency do
    waits[place] = string.format("[%d,%d]", latency(place))
  end
  print("[" .. table.concat(waits, ",") .. "]")
  print(string.format(
    '{"requests":%d,"us":%d,"cpu":%d,"bytes":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}',
    summary.requests, summary.duration, cpu, summary.bytes, errors.connect, errors.read, errors.write, errors.status,
    errors.timeout))
end
