//! wrk, which tells its figures as a line of JSON by a script of ours.
//!
//! In: connections, a script that may vary the requests. Out: the figures of the line, refused where any kind of error
//! was counted. bench/load/report.lua prints it; other scripts there load that one.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

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
    command.arg(format!("http://{address}{}", request.target));
    let text = output(&mut command, length)?;
    read(&text).with_context(|| format!("wrk said:\n{text}"))
}

/// The last line that is an object.
fn read(text: &str) -> Result<Driven> {
    let line = text.lines().rev().find(|line| line.starts_with('{')).context("no line of JSON")?;
    let line: Value = serde_json::from_str(line)?;
    let number = |name: &str| line.get(name).and_then(Value::as_f64).with_context(|| format!("no `{name}`"));
    for kind in ["connect", "read", "write", "status", "timeout"] {
        let errors = number(kind)?;
        ensure!(errors == 0.0, "{errors} errors: {kind}");
    }
    let (requests, us) = (number("requests")?, number("us")?);
    ensure!(requests > 0.0 && us > 0.0, "no requests");
    Ok(Driven {
        requests,
        requests_per_s: requests / us * 1e6,
        p50_us: number("p50")?,
        p99_us: number("p99")?,
        p999_us: Some(number("p999")?),
        bytes_per_request: number("bytes")? / requests,
        load_percent: 0.0,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LINE: &str = "{\"requests\":1000,\"us\":500000,\"bytes\":334000,\"connect\":0,\"read\":0,\"write\":0,\
                        \"status\":0,\"timeout\":0,\"p50\":630,\"p99\":901,\"p999\":1203}";

    #[test]
    fn the_line_of_a_run_is_read() {
        let driven = read(&format!("Running 1s test\nRequests/sec: 7\n{LINE}\n")).unwrap();
        assert_eq!((driven.requests, driven.requests_per_s), (1000.0, 2000.0));
        assert_eq!((driven.p50_us, driven.p99_us, driven.p999_us), (630.0, 901.0, Some(1203.0)));
        assert_eq!(driven.bytes_per_request.to_bits(), 334.0_f64.to_bits());
    }

    #[test]
    fn an_error_of_any_kind_refuses_the_run() {
        for kind in ["connect", "read", "write", "status", "timeout"] {
            let line = LINE.replace(&format!("\"{kind}\":0"), &format!("\"{kind}\":1"));
            assert!(read(&line).unwrap_err().to_string().contains(kind), "{kind}");
        }
        assert!(read(&LINE.replace("1000", "0")).is_err());
        assert!(read("Running\n").is_err());
        assert!(read("{}").is_err());
    }
}
