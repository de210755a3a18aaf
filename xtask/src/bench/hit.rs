//! Hits in memory: CPU time per request and requests per second, beside nginx's proxy_cache on tmpfs.
//!
//! In: bodies of three sizes. Each server has one worker, pinned to core 0; `wrk -t1 -c64` is pinned to core 1. The
//! servers take turns within each round, so that a slow moment of the machine meets all of them, and medians of the
//! rounds are kept. A run counts only where status and body are right before and after it, wrk saw no error, and the
//! origin was not asked meanwhile: every answer was a hit.
//! Deliberately absent: latency at equal load, which needs an open loop, and figures taken elsewhere.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::children::{Server, free_port};
use crate::origin::{Origin, body, fetch};

const SIZES: &[usize] = &[134, 8357, 57_000];
const ROUNDS: usize = 3;
const SECONDS: u32 = 5;
const SERVER_CORE: &str = "0";
const LOAD_CORE: &str = "1";
const READY_MAX: Duration = Duration::from_secs(20);

struct Contender {
    name: &'static str,
    address: SocketAddr,
    server: Server,
}

/// One run of wrk.
#[derive(Clone, Copy)]
struct Run {
    cpu_us_per_request: f64,
    requests_per_s: f64,
}

/// Measures, prints the table and writes it to bench/results.
pub(crate) fn run(root: &Path) -> Result<()> {
    crate::tools::need(root, "bench")?;
    let build = ["build", "--release", "-p", "larder"];
    let status = Command::new("cargo").args(build).current_dir(root).status().context("cargo")?;
    ensure!(status.success(), "larder could not be built");
    let cores = std::thread::available_parallelism()?.get();
    ensure!(cores >= 2, "two cores are needed, one for the server and one for the load");

    let origin = Origin::start()?;
    let shm = Path::new("/dev/shm");
    let scratch = tempfile::tempdir_in(if shm.is_dir() { shm } else { Path::new("/tmp") })?;
    let mut contenders = [larder(root, &origin)?, nginx(scratch.path(), &origin)?];

    // [size][contender] -> runs
    let mut runs = vec![vec![Vec::new(); contenders.len()]; SIZES.len()];
    for round in 1..=ROUNDS {
        for (size, of_size) in SIZES.iter().zip(&mut runs) {
            for (contender, kept) in contenders.iter_mut().zip(of_size.iter_mut()) {
                let run = measure(contender, *size, &origin).with_context(|| contender.name)?;
                println!(
                    "round {round}, {size} B, {}: {:.2} us CPU per request, {:.0} requests/s",
                    contender.name, run.cpu_us_per_request, run.requests_per_s
                );
                kept.push(run);
            }
        }
    }
    report(root, &contenders, &runs, cores)
}

fn larder(root: &Path, origin: &Origin) -> Result<Contender> {
    let (address, admin) = (free_port()?, free_port()?);
    let mut command = pinned(SERVER_CORE);
    command
        .arg(root.join("target/release/larder"))
        .args(["run", "--workers", "1", "--origin", &format!("http://{}", origin.address)])
        .args(["--listen", &address.to_string(), "--admin", &admin.to_string()])
        .stdout(Stdio::null());
    start("larder", address, &mut command)
}

fn nginx(scratch: &Path, origin: &Origin) -> Result<Contender> {
    let address = free_port()?;
    let root_user = rustix::process::geteuid().is_root();
    let folder = scratch.display();
    let config = format!(
        "{user}daemon off; worker_processes 1; pid {folder}/pid; error_log stderr warn;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n\
         access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000;\n\
         client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n\
         fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
         proxy_cache_path {folder}/cache levels=1:2 keys_zone=hits:16m max_size=256m inactive=1h;\n\
         server {{ listen {address} backlog=4096; location / {{\n\
         proxy_pass http://{origin}; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_cache hits;\n\
         }} }}\n\
         }}\n",
        user = if root_user { "user root;\n" } else { "" },
        origin = origin.address,
    );
    let file = scratch.join("nginx.conf");
    fs::write(&file, config).context("nginx.conf")?;
    let mut command = pinned(SERVER_CORE);
    command.arg("nginx").arg("-c").arg(&file).arg("-p").arg(scratch).args(["-e", "stderr"]);
    start("nginx proxy_cache", address, &mut command)
}

fn pinned(core: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]);
    command
}

fn start(name: &'static str, address: SocketAddr, command: &mut Command) -> Result<Contender> {
    let mut server = Server::start(name, command)?;
    server.wait_for(address, READY_MAX)?;
    Ok(Contender { name, address, server })
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn report(root: &Path, contenders: &[Contender], runs: &[Vec<Vec<Run>>], cores: usize) -> Result<()> {
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
    let versions = [said("rustc", "--version"), said("nginx", "-v"), said("wrk", "-v")];
    let how = format!(
        "One worker each, pinned to one core; `wrk -t1 -c64 -d{SECONDS}s` on another; {ROUNDS} interleaved rounds, \
         medians. {cores} cores, {}. {}.",
        processor(),
        versions.join(", ")
    );
    println!("\n{table}\n{how}");
    let folder = root.join("bench/results");
    fs::create_dir_all(&folder)?;
    let page = format!("# Hits in memory\n\nWritten by `make bench NAME=hit`.\n\n{table}\n{how}\n");
    fs::write(folder.join("hit.md"), page).context("hit.md")?;
    let data = json!({ "bench": "hit", "rounds": ROUNDS, "seconds": SECONDS, "cores": cores,
        "processor": processor(), "versions": versions, "rows": rows });
    fs::write(folder.join("hit.json"), format!("{data:#}\n")).context("hit.json")
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The first line of what `program` says of its version, on whichever stream.
fn said(program: &str, flag: &str) -> String {
    let Ok(output) = Command::new(program).arg(flag).output() else {
        return format!("{program} unknown");
    };
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned()
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|l| l.strip_prefix("model name")).and_then(|l| l.split_once(": "));
    model.map_or_else(|| "processor unknown".to_owned(), |(_, name)| name.trim().to_owned())
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

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]).to_bits(), 2.0_f64.to_bits());
    }
}
