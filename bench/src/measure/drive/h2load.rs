//! h2load, for HTTP/2 and, with `--h1`, for a load that does not wait for its answers (an open loop).
//!
//! In: connections, requests at once on each, a rate where the loop is open. Out: the figures of its log, a line per
//! request (when it began, its status, its microseconds), and of its summary; refused where a request failed.
//! An open loop counts from the moment when the request was sent: h2load does not know when it was due.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::{Driven, Request, output, percentile, tool};
use crate::measure::contender::Protocol;

/// How many, and how fast.
pub(super) struct Shape {
    pub(super) connections: usize,
    pub(super) streams: usize,
    /// Of all connections together, per second.
    pub(super) rate: Option<f64>,
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) fn drive(
    protocol: Protocol,
    shape: &Shape,
    request: &Request,
    address: SocketAddr,
    length: Duration,
) -> Result<Driven> {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let log = folder.path().join("log");
    let mut command = tool("h2load");
    if protocol == Protocol::Http1 {
        command.arg("--h1");
    }
    command.args([&format!("-c{}", shape.connections), &format!("-m{}", shape.streams), "-t1"]);
    command.args(["-D", &length.as_secs().max(1).to_string()]);
    if let Some(rate) = shape.rate {
        command.args(["--rps", &(rate / shape.connections as f64).to_string()]);
    }
    for field in &request.fields {
        command.args(["-H", field]);
    }
    command.arg("--log-file").arg(&log).arg(request.url(address));
    let text = output(&mut command, length)?;
    let log = fs::read_to_string(&log).context("h2load's log")?;
    read(&text, &log, length).with_context(|| format!("h2load said:\n{text}"))
}

/// Summary and log of a run of this length.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn read(text: &str, log: &str, length: Duration) -> Result<Driven> {
    let line =
        |name: &str| text.lines().find(|line| line.starts_with(name)).with_context(|| format!("no `{name}`"));
    for part in line("requests:")?.split(", ") {
        let (count, kind) = part.split_once(' ').context("a count")?;
        let wrong = ["failed", "errored", "timeout"].contains(&kind) && count != "0";
        ensure!(!wrong, "{count} requests {kind}");
    }
    let traffic = line("traffic:")?;
    let bytes = traffic.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(bytes, _)| bytes);
    let bytes: f64 = bytes.and_then(|bytes| bytes.parse().ok()).context("no bytes in `traffic:`")?;
    let mut waits = Vec::with_capacity(log.len() / 24);
    for line in log.lines() {
        let mut cells = line.split('\t');
        let (_began, status, us) = (cells.next(), cells.next(), cells.next());
        match (status.and_then(|s| s.parse::<i32>().ok()), us.and_then(|us| us.parse::<f64>().ok())) {
            (Some(200..=399), Some(us)) => waits.push(us),
            _ => bail!("in the log: {line}"),
        }
    }
    ensure!(!waits.is_empty(), "no requests");
    waits.sort_by(f64::total_cmp);
    let requests = waits.len() as f64;
    Ok(Driven {
        requests,
        requests_per_s: requests / length.as_secs_f64(),
        p50_us: percentile(&waits, 0.5),
        p99_us: percentile(&waits, 0.99),
        p999_us: Some(percentile(&waits, 0.999)),
        bytes_per_request: bytes / requests,
        load_percent: 0.0,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TEXT: &str = "finished in 2.00s, 2.00 req/s, 1.2KB/s\n\
         requests: 4 total, 4 started, 4 done, 4 succeeded, 0 failed, 0 errored, 0 timeout\n\
         status codes: 4 2xx, 0 3xx, 0 4xx, 0 5xx\n\
         traffic: 1.20KB (1200) total, 120B (120) headers (space savings 80.00%), 1.00KB (1000) data\n";
    const LOG: &str = "1000\t200\t310\n1001\t200\t290\n1002\t304\t330\n1003\t200\t5000\n";

    #[test]
    fn summary_and_log_are_read() {
        let driven = read(TEXT, LOG, Duration::from_secs(2)).unwrap();
        assert_eq!((driven.requests, driven.requests_per_s), (4.0, 2.0));
        assert_eq!((driven.p50_us, driven.p99_us, driven.p999_us), (310.0, 5000.0, Some(5000.0)));
        assert_eq!(driven.bytes_per_request.to_bits(), 300.0_f64.to_bits());
    }

    #[test]
    fn a_request_that_failed_refuses_the_run() {
        let length = Duration::from_secs(2);
        for kind in ["failed", "errored", "timeout"] {
            let text = TEXT.replace(&format!("0 {kind}"), &format!("3 {kind}"));
            assert!(read(&text, LOG, length).is_err(), "{kind}");
        }
        for line in ["1\t-1\t10\n", "1\t503\t10\n", "1\t200\n", "\n"] {
            assert!(read(TEXT, &format!("{LOG}{line}"), length).is_err(), "{line}");
        }
        assert!(read(TEXT, "", length).is_err());
        assert!(read("", LOG, length).is_err());
    }
}
