//! ab without keep-alive: a connection for each request, as many published figures were taken.
//!
//! In: how many at once. Out: the figures of its summary and of the file of percentiles it writes, which ends at
//! p99; refused where a request failed or was answered with anything but 2xx.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Driven, Request, output, tool};

/// More requests than any run has time for; ab takes memory for each of them before it begins.
const REQUESTS_MAX: u32 = 2_000_000;

pub(super) fn drive(
    connections: usize,
    request: &Request,
    address: SocketAddr,
    length: Duration,
) -> Result<Driven> {
    let percentiles = tempfile::NamedTempFile::new()?;
    let mut command = tool("ab");
    command.args(["-q", "-r", "-c", &connections.to_string()]);
    // The number of requests has to stand behind the time, which would set it to 50 000.
    command
        .args(["-t", &length.as_secs().max(1).to_string(), "-n", &REQUESTS_MAX.to_string(), "-e"])
        .arg(percentiles.path());
    for field in &request.fields {
        command.args(["-H", field]);
    }
    command.arg(request.url(address));
    let text = output(&mut command, length)?;
    let csv = std::fs::read_to_string(percentiles.path())?;
    read(&text, &csv).with_context(|| format!("ab said:\n{text}"))
}

/// Summary and percentiles.
fn read(text: &str, csv: &str) -> Result<Driven> {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    ensure!(value("Failed requests:") == Some(0.0), "failed requests");
    ensure!(value("Non-2xx responses:").is_none(), "answers other than 2xx");
    let requests = value("Complete requests:").context("no count")?;
    ensure!(requests > 0.0, "no requests");
    ensure!(requests < f64::from(REQUESTS_MAX), "over before its time: {requests} requests");
    let ms = |share: &str| {
        let line = csv.lines().find_map(|line| line.strip_prefix(share)?.strip_prefix(','));
        line.and_then(|ms| ms.trim().parse::<f64>().ok()).with_context(|| format!("no p{share}"))
    };
    Ok(Driven {
        requests,
        requests_per_s: value("Requests per second:").context("no rate")?,
        p50_us: ms("50")? * 1e3,
        p99_us: ms("99")? * 1e3,
        p999_us: None,
        bytes_per_request: value("Total transferred:").context("no bytes")? / requests,
        load_percent: 0.0,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TEXT: &str = "Concurrency Level:      64\nTime taken for tests:   2.000 seconds\n\
                        Complete requests:      50000\nFailed requests:        0\n\
                        Total transferred:      16000000 bytes\nRequests per second:    25000.10 [#/sec] (mean)\n";
    const CSV: &str = "Percentage served,Time in ms\n0,0.500\n5,0.600\n50,2.000\n99,4.250\n";

    #[test]
    fn summary_and_percentiles_are_read() {
        let driven = read(TEXT, CSV).unwrap();
        assert_eq!((driven.requests, driven.requests_per_s), (50_000.0, 25_000.1));
        assert_eq!((driven.p50_us, driven.p99_us, driven.p999_us), (2000.0, 4250.0, None));
        assert_eq!(driven.bytes_per_request.to_bits(), 320.0_f64.to_bits());
    }

    #[test]
    fn a_failure_refuses_the_run() {
        assert!(read(&TEXT.replace("Failed requests:        0", "Failed requests:        2"), CSV).is_err());
        assert!(read(&format!("{TEXT}Non-2xx responses:      1\n"), CSV).is_err());
        assert!(read(&TEXT.replace(" 50000", " 2000000"), CSV).is_err());
        assert!(read(TEXT, "").is_err());
        assert!(read("", CSV).is_err());
    }
}
