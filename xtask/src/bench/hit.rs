//! Hits in memory: CPU time per request and requests per second, beside nginx's proxy_cache on tmpfs.
//!
//! In: bodies of three sizes. Each server has one worker, pinned to core 0; `wrk -t1 -c64` is pinned to core 1. The
//! servers take turns within each round, so that a slow moment of the machine meets all of them, and medians of the
//! rounds are kept. A run counts only where status and body are right before and after it, wrk saw no error, and the
//! origin was not asked meanwhile: every answer was a hit.
//! Deliberately absent: latency at equal load, which needs an open loop, and figures taken elsewhere.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::contender::{self, Contender, LOAD_CORE, SERVER_CORE, pinned};
use super::report::{Report, median, round};
use crate::children::free_port;
use crate::origin::{Origin, body, fetch};

const SIZES: &[usize] = &[134, 8357, 57_000];
const ROUNDS: usize = 3;
const SECONDS: u32 = 5;

/// One run of wrk.
#[derive(Clone, Copy)]
struct Run {
    cpu_us_per_request: f64,
    requests_per_s: f64,
}

/// Measures, prints the table and writes it to bench/results.
pub(crate) fn run(root: &Path) -> Result<()> {
    contender::cores()?;
    let program = contender::build_larder(root)?;
    let origin = Origin::start()?;
    let scratch = contender::scratch()?;
    let nginx = contender::nginx(scratch.path(), "nginx proxy_cache", "", origin.address)?;
    let mut contenders = [larder(&program, &origin)?, nginx];

    // [size][contender] -> runs
    let mut runs = vec![vec![Vec::new(); contenders.len()]; SIZES.len()];
    for round in 1..=ROUNDS {
        for (size, of_size) in SIZES.iter().zip(&mut runs) {
            for (contender, kept) in contenders.iter_mut().zip(of_size.iter_mut()) {
                let run = measure(contender, *size, &origin).with_context(|| contender.name.clone())?;
                println!(
                    "round {round}, {size} B, {}: {:.2} us CPU per request, {:.0} requests/s",
                    contender.name, run.cpu_us_per_request, run.requests_per_s
                );
                kept.push(run);
            }
        }
    }
    report(root, &contenders, &runs)
}

/// As started without a file: the origin's own word decides.
fn larder(program: &Path, origin: &Origin) -> Result<Contender> {
    let (address, admin) = (free_port()?, free_port()?);
    let mut command = pinned(SERVER_CORE);
    command
        .arg(program)
        .args(["run", "--workers", "1", "--origin", &format!("http://{}", origin.address)])
        .args(["--listen", &address.to_string(), "--admin", &admin.to_string()])
        .stdout(Stdio::null());
    contender::start("larder", address, &mut command)
}

fn measure(contender: &mut Contender, size: usize, origin: &Origin) -> Result<Run> {
    let path = format!("/page/{size}");
    verify(contender.address, &path, size)?;
    let asked = origin.asked();
    let cpu = contender.server.cpu_time();
    let output = pinned(LOAD_CORE)
        .args([
            "wrk",
            "-t1",
            "-c64",
            &format!("-d{SECONDS}s"),
            &format!("http://{}{path}", contender.address),
        ])
        .output()
        .context("wrk")?;
    let cpu = contender.server.cpu_time().saturating_sub(cpu);
    let text = String::from_utf8_lossy(&output.stdout);
    let (requests, requests_per_s) = read_wrk(&text).with_context(|| format!("wrk said:\n{text}"))?;
    verify(contender.address, &path, size)?;
    let more = origin.asked() - asked;
    ensure!(more == 0, "the origin was asked {more} times during the run: not all were hits");
    contender.server.still_runs()?;
    Ok(Run { cpu_us_per_request: cpu.as_secs_f64() * 1e6 / requests, requests_per_s })
}

fn verify(address: SocketAddr, path: &str, size: usize) -> Result<()> {
    let (status, content) = fetch(address, path)?;
    ensure!(status == 200, "status {status}");
    ensure!(content == body(size), "a wrong body of {} bytes", content.len());
    Ok(())
}

/// Requests done, and requests per second; fails where wrk saw an error.
fn read_wrk(text: &str) -> Result<(f64, f64)> {
    ensure!(!text.contains("Socket errors") && !text.contains("Non-2xx"), "errors during the run");
    let requests = text.lines().find_map(|l| l.trim().split_once(" requests in ")).context("no count")?.0;
    let rate = text.lines().find_map(|l| l.strip_prefix("Requests/sec:")).context("no rate")?;
    let requests: f64 = requests.trim().parse().context("count")?;
    ensure!(requests > 0.0, "no requests");
    Ok((requests, rate.trim().parse().context("rate")?))
}

fn report(root: &Path, contenders: &[Contender], runs: &[Vec<Vec<Run>>]) -> Result<()> {
    let mut rows = Vec::new();
    let mut table = String::from(
        "| body | server | CPU us per request | requests/s | CPU beside nginx |\n|---|---|---|---|---|\n",
    );
    for (size, of_size) in SIZES.iter().zip(runs) {
        let medians: Vec<(f64, f64)> = of_size
            .iter()
            .map(|runs| {
                let cpu = median(runs.iter().map(|r| r.cpu_us_per_request).collect());
                (cpu, median(runs.iter().map(|r| r.requests_per_s).collect()))
            })
            .collect();
        // nginx stands last.
        let beside = medians.last().map_or(f64::NAN, |m| m.0);
        for (contender, (cpu, rate)) in contenders.iter().zip(&medians) {
            let _ = writeln!(
                table,
                "| {size} B | {} | {cpu:.2} | {rate:.0} | {:.2} |",
                contender.name,
                cpu / beside
            );
            rows.push(json!({
                "body_bytes": size, "server": contender.name, "cpu_us_per_request": round(*cpu),
                "requests_per_s": rate.round(), "cpu_beside_nginx": round(cpu / beside),
            }));
        }
    }
    let how = format!(
        "One worker each, pinned to one core; `wrk -t1 -c64 -d{SECONDS}s` on another; {ROUNDS} interleaved rounds, \
         medians."
    );
    Report {
        name: "hit",
        title: "Hits in memory",
        table: &table,
        how: &how,
        programs: &[("rustc", "--version"), ("nginx", "-v"), ("wrk", "-v")],
        figures: json!({ "rounds": ROUNDS, "seconds": SECONDS, "rows": rows }),
    }
    .write(root)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_run_of_wrk_is_read_and_errors_refuse_it() {
        let text = "Running 5s test @ http://127.0.0.1:1/\n  485113 requests in 5.00s, 70MB read\nRequests/sec:  97012.33\n";
        assert_eq!(read_wrk(text).unwrap(), (485_113.0, 97_012.33));
        assert!(read_wrk(&format!("{text}  Non-2xx or 3xx responses: 4\n")).is_err());
        assert!(read_wrk(&format!("{text}  Socket errors: connect 0, read 1\n")).is_err());
        assert!(read_wrk("").is_err());
    }
}
