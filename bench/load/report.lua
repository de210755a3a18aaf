-- What wrk prints when it is done: one line of JSON for the bench's runner. Other scripts here load this one.
-- Latencies and the duration are in microseconds; `requests` are answers that came whole.
function done(summary, latency, _)
  local errors = summary.errors
  print(string.format(
    '{"requests":%d,"us":%d,"bytes":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d,' ..
      '"p50":%d,"p99":%d,"p999":%d}',
    summary.requests, summary.duration, summary.bytes, errors.connect, errors.read, errors.write, errors.status,
    errors.timeout, latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end
