//! wrk, which tells its figures as a line of JSON by a script of ours.
//!
//! In: connections, a script that may vary the requests. Out: the figures of the line, with percentiles of the waits
//! that were had (histogram.rs), refused where any kind of error was counted. bench/load/report.lua prints both lines;
//! other scripts there load that one.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::histogram::Waits;
use super::{Driven, Request, output, tool};

const SCRIPT: &str = "report.lua";
/// Longest wait for one answer.
const ANSWER_MAX: &str = "10s";

pub(super) fn drive(
    root: &Path,
    connections: usize,
    script: Option<&str>,
    request: &Request,
    address: SocketAddr,
    length: Duration,
) -> Result<Driven> {
    let mut command = tool("wrk");
    command.args(["-t1", &format!("-c{connections}"), &format!("-d{}s", length.as_secs().max(1))]);
    command.args(["--timeout", ANSWER_MAX, "-s"]).arg(root.join("bench/load").join(script.unwrap_or(SCRIPT)));
    for field in &request.fields {
        command.args(["-H", field]);
    }
    command.arg(request.url(address));
    let text = output(&mut command, length)?;
    read(&text, connections).with_context(|| {
        let said: Vec<&str> = text.lines().filter(|line| !line.starts_with('[')).collect();
        format!("wrk said:\n{}", said.join("\n"))
    })
}

/// The last line that is an object, and the last that is a list.
fn read(text: &str, connections: usize) -> Result<Driven> {
    let line = |first| text.lines().rev().find(|line| line.starts_with(first));
    let figures: Value = serde_json::from_str(line('{').context("no line of JSON")?)?;
    let waits: Vec<(u64, u64)> = serde_json::from_str(line('[').context("no histogram")?)?;
    let number =
        |name: &str| figures.get(name).and_then(Value::as_f64).with_context(|| format!("no `{name}`"));
    for kind in ["connect", "read", "write", "status", "timeout"] {
        let errors = number(kind)?;
        ensure!(errors == 0.0, "{errors} errors: {kind}");
    }
    let (requests, us) = (number("requests")?, number("us")?);
    ensure!(requests > 0.0 && us > 0.0, "no requests");
    let whole =
        |name: &str| figures.get(name).and_then(Value::as_u64).with_context(|| format!("no `{name}`"));
    let waits = Waits::had(&waits, whole("requests")?, u64::try_from(connections)?, whole("us")?)?;
    Ok(Driven {
        requests,
        requests_per_s: requests / us * 1e6,
        p50_us: waits.percentile(0.5),
        p99_us: waits.percentile(0.99),
        p999_us: Some(waits.percentile(0.999)),
        bytes_per_request: number("bytes")? / requests,
        load_percent: 100.0 * number("cpu")? / us,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LINE: &str = "{\"requests\":1000,\"us\":500000,\"cpu\":400000,\"bytes\":334000,\"connect\":0,\"read\":0,\
                        \"write\":0,\"status\":0,\"timeout\":0}";
    const WAITS: &str = "[[630,900],[901,99],[999,1]]";

    #[test]
    fn the_lines_of_a_run_are_read() {
        let driven = read(&format!("Running 1s test\n{WAITS}\nRequests/sec: 7\n{LINE}\n"), 1).unwrap();
        assert_eq!((driven.requests, driven.requests_per_s), (1000.0, 2000.0));
        // An interval of 500 us: the wait of 999 us is the shortest that casts no image.
        assert_eq!((driven.p50_us, driven.p99_us, driven.p999_us), (630.0, 901.0, Some(901.0)));
        assert_eq!(driven.bytes_per_request.to_bits(), 334.0_f64.to_bits());
        assert_eq!(driven.load_percent.to_bits(), 80.0_f64.to_bits());
    }

    #[test]
    fn an_error_of_any_kind_refuses_the_run() {
        for kind in ["connect", "read", "write", "status", "timeout"] {
            let line = LINE.replace(&format!("\"{kind}\":0"), &format!("\"{kind}\":1"));
            assert!(read(&format!("{WAITS}\n{line}"), 1).unwrap_err().to_string().contains(kind), "{kind}");
        }
        assert!(read(&format!("{WAITS}\n{}", LINE.replace("1000", "0")), 1).is_err());
        assert!(read(&format!("{WAITS}\n{}", LINE.replace("1000", "1001")), 1).is_err());
        for text in ["Running\n", "{}", LINE, WAITS] {
            assert!(read(text, 1).is_err(), "{text}");
        }
    }
}
