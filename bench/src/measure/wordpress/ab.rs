//! ApacheBench, the tool of the published figures: ten clients with keep-alive for half a minute.
//!
//! In: an address. Out: what it measured, or an error where a single answer was not as the first. Times come from its
//! list of percentiles, since its table knows whole milliseconds only.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::measure::contender::{LOAD_CORE, pinned};
use harness::children::run_within;

pub(super) const CLIENTS: u32 = 10;
pub(super) const SECONDS: u32 = 30;
/// With a time limit alone, it would stop after 50 000.
const REQUESTS_MAX: u32 = 3_000_000;
const RUN_MAX: Duration = Duration::from_secs(SECONDS as u64 + 30);

/// What one run measured; times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) requests: f64,
    pub(super) requests_per_s: f64,
    pub(super) mean_ms: f64,
    pub(super) deviation_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) longest_ms: f64,
    /// Requests on a connection that was used before.
    pub(super) kept_alive: f64,
}

/// Runs it against the front page at `address`.
pub(super) fn run(address: SocketAddr, work: &Path) -> Result<Measured> {
    let (said, percentiles) = (work.join("ab.txt"), work.join("ab.csv"));
    let mut command = pinned(LOAD_CORE);
    command
        .args(["ab", "-k", "-q", "-c", &CLIENTS.to_string(), "-t", &SECONDS.to_string()])
        .args(["-n", &REQUESTS_MAX.to_string(), "-e"])
        .arg(&percentiles)
        .arg(format!("http://{address}/"))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&said)?);
    let status = run_within(&mut command, RUN_MAX).context("ab")?;
    let said = fs::read_to_string(said)?;
    ensure!(status.success(), "ab: {status}\n{said}");
    read(&said, &fs::read_to_string(percentiles)?).with_context(|| format!("ab said:\n{said}"))
}

fn read(said: &str, percentiles: &str) -> Result<Measured> {
    let number = |start: &str, nth: usize| -> Result<f64> {
        let line =
            said.lines().find(|line| line.trim_start().starts_with(start)).context(start.to_owned())?;
        let rest = line.trim_start().trim_start_matches(start);
        rest.split_whitespace().nth(nth).and_then(|text| text.parse().ok()).with_context(|| line.to_owned())
    };
    ensure!(!said.contains("Non-2xx"), "some answers were no pages");
    ensure!(number("Failed requests:", 0)? == 0.0, "some answers failed or differed in length");
    let p99 = percentiles.lines().find_map(|line| line.strip_prefix("99,")).context("no 99th percentile")?;
    let measured = Measured {
        requests: number("Complete requests:", 0)?,
        requests_per_s: number("Requests per second:", 0)?,
        mean_ms: number("Time per request:", 0)?,
        // min, mean, deviation, median, max
        deviation_ms: number("Total:", 2)?,
        p99_ms: p99.trim().parse().context("99th percentile")?,
        longest_ms: number("100%", 0)?,
        kept_alive: number("Keep-Alive requests:", 0)?,
    };
    ensure!(measured.requests > 0.0, "no requests");
    Ok(measured)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SAID: &str = "Complete requests:      204\nFailed requests:        0\nKeep-Alive requests:    3\n\
        Requests per second:    40.74 [#/sec] (mean)\nTime per request:       245.468 [ms] (mean)\n\
        Time per request:       24.547 [ms] (mean, across all concurrent requests)\n\
        Total:         52  239  50.2    247     351\n 100%    350 (longest request)\n";
    const PERCENTILES: &str = "Percentage served,Time in ms\n98,333.1\n99,347.25\n";

    #[test]
    fn a_run_is_read_and_errors_refuse_it() {
        let expected = Measured {
            requests: 204.0,
            requests_per_s: 40.74,
            mean_ms: 245.468,
            deviation_ms: 50.2,
            p99_ms: 347.25,
            longest_ms: 350.0,
            kept_alive: 3.0,
        };
        assert_eq!(read(SAID, PERCENTILES).unwrap(), expected);
        assert!(read(&SAID.replace("requests:        0", "requests:        2"), PERCENTILES).is_err());
        assert!(read(&format!("{SAID}Non-2xx responses:      1\n"), PERCENTILES).is_err());
        assert!(read(SAID, "").is_err());
        assert!(read("", PERCENTILES).is_err());
    }
}
