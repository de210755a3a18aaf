//! A dynamic page kept for one second: what an expiry costs the clients and the application.
//!
//! In: an application that takes 180 ms for a page of 57 000 bytes, one page at a time, and says nothing about
//! caching; ten clients with keep-alive that ask for that page again and again for 30 s. nginx in three manners,
//! Varnish and larder in two stand in front, one after the other. Out: throughput, CPU time, the waits' spread, what
//! the application was asked, and how old a page anybody got, with larder's targets judged by the figures.
//! The age of a page is counted from the moment when the application had sent its last byte to the moment when the
//! client read the answer's first: what a clock beside both would see. The client's own queue is in it, so it is at
//! most too high.
//! The longest wait is told as it was and without the machine's own pauses (pauses.rs); targets are judged by the latter.
//! Deliberately absent: figures taken elsewhere as if they were comparable; published ones are quoted apart.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::contender::{self, Contender, LOAD_CORE, SERVER_CORE, Setup, pinned};
use super::load::{Loop, closed_loop, ms, quantile};
use super::pauses::{Pauses, Watchers};
use super::report::{Report, round};
use super::slow_app::{Habits, PAGE_BYTES, SlowApp};

const RENDER: Duration = Duration::from_millis(180);
const CLIENTS: usize = 10;
const LENGTH: Duration = Duration::from_secs(30);
const AB_SECONDS: u32 = 5;
const TARGET: &str = "/page";

/// nginx as found on many pages: expiry lets everybody through.
const NAIVE: &str = "proxy_cache_valid 200 1s;";
/// nginx as its makers advise.
const RIGHT: &str = "proxy_cache_valid 200 1s; proxy_cache_lock on; proxy_cache_use_stale updating;";
const BEHIND: &str = "proxy_cache_valid 200 1s; proxy_cache_lock on; proxy_cache_use_stale updating; \
                      proxy_cache_background_update on;";
const VARNISH: &str = "set beresp.ttl = 1s;";
const LARDER: &str = "ttl = \"1s\"\nstale_while_revalidate = \"10s\"\n";
const LARDER_AHEAD: &str = "ttl = \"1s\"\nstale_while_revalidate = \"10s\"\nrefresh_ahead = true\n";

/// What larder is measured against; the origin's requests are counted over `LENGTH`.
struct Targets {
    origin_requests: u64,
    oldest_age_s: Option<f64>,
}

const AT_ONCE_MAX: u64 = 1;
const LONGEST_MS_MAX: f64 = 20.0;

/// One contender's figures.
struct Figures {
    name: String,
    requests: usize,
    requests_per_s: f64,
    requests_per_s_by_ab: f64,
    /// How busy the clients' core was with the clients, in percent.
    load_percent: f64,
    cpu_us_per_request: f64,
    mean_ms: f64,
    deviation_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
    machine: Option<Machine>,
    origin_requests: u64,
    at_once: u64,
    oldest_s: f64,
    targets: Option<Targets>,
}

/// What the machine did to one contender's figures.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Machine {
    /// The longest wait with pauses taken off; not of the answer, always, that waited longest with them.
    longest_without_ms: f64,
    pauses: usize,
    longest_pause_ms: f64,
    all_pauses_ms: f64,
}

impl Figures {
    /// The longest wait that the server can be blamed for, as far as that is known.
    fn longest_judged_ms(&self) -> f64 {
        self.machine.map_or(self.longest_ms, |machine| machine.longest_without_ms)
    }
}

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    contender::cores()?;
    let program = contender::build_larder(root)?;
    let scratch = contender::scratch()?;
    let scratch = scratch.path();
    let unwatched = watchers().err().map(|error| format!("{error:#}"));
    if let Some(why) = &unwatched {
        println!("The machine's pauses are not taken off: {why}");
    }
    let mut rows = Vec::new();
    for place in 0..6 {
        // An application for each: what one left behind (a rendering under way) must not reach the next.
        let app = SlowApp::start(Habits { render: RENDER, one_at_a_time: true })?;
        let setup = Setup::new(scratch, app.address);
        let (mut contender, targets) = match place {
            0 => (contender::nginx::cache(&setup, "nginx naive", NAIVE)?, None),
            1 => (contender::nginx::cache(&setup, "nginx right", RIGHT)?, None),
            2 => (contender::nginx::cache(&setup, "nginx right, background update", BEHIND)?, None),
            3 => (contender::varnish::cache(&setup, "Varnish, grace", VARNISH)?, None),
            4 => (
                contender::larder::site(&program, &setup, "larder", LARDER)?,
                Some(Targets { origin_requests: 31, oldest_age_s: None }),
            ),
            _ => (
                contender::larder::site(&program, &setup, "larder, refresh ahead", LARDER_AHEAD)?,
                Some(Targets { origin_requests: 39, oldest_age_s: Some(1.0) }),
            ),
        };
        let mut figures =
            measure(&mut contender, &app, unwatched.is_none()).with_context(|| contender.name.clone())?;
        figures.targets = targets;
        println!(
            "{}: {:.0} requests/s, {} origin requests, longest wait {:.1} ms ({:.1} judged), oldest page {:.2} s",
            figures.name,
            figures.requests_per_s,
            figures.origin_requests,
            figures.longest_ms,
            figures.longest_judged_ms(),
            figures.oldest_s
        );
        rows.push(figures);
    }
    report(root, &rows, unwatched.as_deref())
}

fn watchers() -> Result<Watchers> {
    Watchers::start(&[SERVER_CORE, LOAD_CORE])
}

fn measure(contender: &mut Contender, app: &SlowApp, watched: bool) -> Result<Figures> {
    let watching = watched.then(watchers).transpose()?;
    let cpu = contender.server.cpu_time();
    let done = closed_loop(contender.address, TARGET, CLIENTS, LENGTH)?;
    let cpu = contender.server.cpu_time().saturating_sub(cpu);
    let pauses = watching.map(Watchers::end).transpose()?;
    let (origin_requests, at_once) = (app.asked(), app.in_flight_most());
    contender.server.still_runs()?;
    let mut figures = figures(&done, &app.sent(), pauses.as_ref())?;
    figures.name.clone_from(&contender.name);
    figures.origin_requests = origin_requests;
    figures.at_once = at_once;
    figures.cpu_us_per_request = cpu.as_secs_f64() * 1e6 / count(figures.requests);
    figures.requests_per_s_by_ab = ab(contender)?;
    Ok(figures)
}

/// What the answers tell; `sent` says when each rendering had left the application.
fn figures(done: &Loop, sent: &[Option<Instant>], pauses: Option<&Pauses>) -> Result<Figures> {
    ensure!(!done.answers.is_empty(), "no answers");
    let first = done.answers.iter().map(|answer| answer.done).min().context("no answers")?;
    let mut waits: Vec<Duration> = done.answers.iter().map(|answer| answer.done - answer.sent).collect();
    waits.sort_unstable();
    let mean = waits.iter().map(|wait| ms(*wait)).sum::<f64>() / count(waits.len());
    let variance = waits.iter().map(|wait| (ms(*wait) - mean).powi(2)).sum::<f64>() / count(waits.len());
    let after_first = || done.answers.iter().filter(|answer| answer.sent >= first);
    let longest = after_first().map(|answer| answer.done - answer.sent).max().unwrap_or_default();
    let begun = done.answers.iter().map(|answer| answer.sent).min().context("no answers")?;
    let ended = done.answers.iter().map(|answer| answer.done).max().context("no answers")?;
    let machine = pauses.map(|pauses| {
        let without = after_first().map(|answer| pauses.take_off(answer.sent, answer.done)).max();
        Machine {
            longest_without_ms: ms(without.unwrap_or_default()),
            pauses: pauses.between(begun, ended).count(),
            longest_pause_ms: ms(pauses.between(begun, ended).max().unwrap_or_default()),
            all_pauses_ms: ms(pauses.between(begun, ended).sum()),
        }
    });
    let oldest = done
        .answers
        .iter()
        .filter_map(|answer| {
            // A rendering still on its way when it is served has no age.
            let sent = (*sent.get(answer.rendering?)?)?;
            Some(answer.first_byte.saturating_duration_since(sent))
        })
        .max()
        .unwrap_or_default();
    Ok(Figures {
        name: String::new(),
        requests: waits.len(),
        requests_per_s: count(waits.len()) / done.took.as_secs_f64(),
        requests_per_s_by_ab: 0.0,
        load_percent: 100.0 * done.load_cpu.as_secs_f64() / done.took.as_secs_f64(),
        cpu_us_per_request: 0.0,
        mean_ms: mean,
        deviation_ms: variance.sqrt(),
        p99_ms: ms(quantile(&waits, 0.99)),
        longest_ms: ms(longest),
        machine,
        origin_requests: 0,
        at_once: 0,
        oldest_s: oldest.as_secs_f64(),
        targets: None,
    })
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn count(of: usize) -> f64 {
    of as f64
}

/// The same load by another hand: ab, as the published figures were taken.
fn ab(contender: &Contender) -> Result<f64> {
    let output = pinned(LOAD_CORE)
        .args(["ab", "-q", "-k", "-c", &CLIENTS.to_string(), "-t", &AB_SECONDS.to_string(), "-n", "10000000"])
        .arg(format!("http://{}{TARGET}", contender.address))
        .output()
        .context("ab")?;
    let text = String::from_utf8_lossy(&output.stdout);
    read_ab(&text).with_context(|| format!("ab said:\n{text}"))
}

/// Requests per second; fails where ab counted an error.
fn read_ab(text: &str) -> Result<f64> {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()
    };
    ensure!(value("Failed requests:") == Some("0"), "failed requests");
    ensure!(value("Non-2xx responses:").is_none(), "answers other than 2xx");
    value("Requests per second:").and_then(|rate| rate.parse().ok()).context("no rate")
}

/// One target, judged.
struct Judged {
    larder: String,
    target: String,
    figure: String,
    holds: bool,
}

fn judge(rows: &[Figures]) -> Vec<Judged> {
    let mut judged = Vec::new();
    for row in rows {
        let Some(targets) = &row.targets else { continue };
        let mut add = |target: String, figure: String, holds: bool| {
            judged.push(Judged { larder: row.name.clone(), target, figure, holds });
        };
        add(
            format!("at most {} origin requests", targets.origin_requests),
            row.origin_requests.to_string(),
            row.origin_requests <= targets.origin_requests,
        );
        add("never two at once".to_owned(), row.at_once.to_string(), row.at_once <= AT_ONCE_MAX);
        let without = if row.machine.is_some() { ", without the machine's pauses" } else { "" };
        add(
            format!("longest wait after the first answer under {LONGEST_MS_MAX:.0} ms{without}"),
            format!("{:.1} ms", row.longest_judged_ms()),
            row.longest_judged_ms() < LONGEST_MS_MAX,
        );
        if let Some(most) = targets.oldest_age_s {
            add(
                format!("nobody gets a page older than {most:.1} s"),
                format!("{:.3} s", row.oldest_s),
                row.oldest_s <= most,
            );
        }
    }
    judged
}

fn report(root: &Path, rows: &[Figures], unwatched: Option<&str>) -> Result<()> {
    let judged = judge(rows);
    let mut table = String::from(
        "| server | requests/s | by ab | load's core % | CPU us per request | mean ms | std. dev. ms | p99 ms | longest ms | \
         longest ms without pauses | machine's pauses | longest pause ms | origin requests | at once | oldest page s \
         |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let _ = writeln!(
            table,
            "| {} | {:.0} | {:.0} | {:.0} | {:.1} | {:.3} | {:.2} | {:.2} | {:.1} | {} | {} | {} | {:.2} |",
            row.name,
            row.requests_per_s,
            row.requests_per_s_by_ab,
            row.load_percent,
            row.cpu_us_per_request,
            row.mean_ms,
            row.deviation_ms,
            row.p99_ms,
            row.longest_ms,
            machine_cells(row.machine),
            row.origin_requests,
            row.at_once,
            row.oldest_s
        );
    }
    table.push_str("\nTargets:\n\n| | target | figure | |\n|---|---|---|---|\n");
    for Judged { larder, target, figure, holds } in &judged {
        let _ = writeln!(
            table,
            "| {larder} | {target} | {figure} | {} |",
            if *holds { "holds" } else { "MISSED" }
        );
    }
    table.push_str(
        "\nPublished by others for nginx in front of WordPress (57 KB, `ab -c 10 -t 30 -k`, over a 1 Gbit/s network; \
         quoted, not measured here): 5.53 requests/s without a cache; 600 naive, 150 origin requests in 30 s, standard \
         deviation 141 ms; 2185 right, 16 origin requests in 30 s, standard deviation 8 ms.\n",
    );
    let missed = judged.iter().filter(|judged| !judged.holds).count();
    Report {
        name: "microcache",
        title: "A page kept for one second",
        table: &table,
        how: &how(unwatched),
        programs: &[("rustc", "--version"), ("nginx", "-v"), ("varnishd", "-V"), ("ab", "-V")],
        figures: json!({
            "seconds": LENGTH.as_secs(), "clients": CLIENTS, "page_bytes": PAGE_BYTES,
            "render_ms": round(ms(RENDER)), "missed": missed,
            "rows": rows.iter().map(row_json).collect::<Vec<Value>>(),
            "targets": judged.iter().map(|j| json!({ "server": j.larder, "target": j.target,
                "figure": j.figure, "holds": j.holds })).collect::<Vec<Value>>(),
        }),
    }
    .write(root)?;
    ensure!(missed == 0, "{missed} targets missed");
    Ok(())
}

const HOW_PAUSES: &str = "\"Without pauses\" takes off each wait the time within it in which this machine itself stood \
    still on either core, counted once where both did; it is what the targets judge. A watcher per core, a process of its \
    own with real-time priority (SCHED_FIFO) above everything that is measured, sleeps 1 ms at a time; a pause is noted \
    when the timer interrupt that ends the sleep came more than 1 ms late, and lasts from the moment when it was due. No \
    server can put off that interrupt: it is late when the hypervisor does not run the core, or while the kernel has \
    interrupts off, which is a matter of microseconds. What a server can put off, in a kernel that does not preempt \
    itself, is the watcher's turn once it is awake: a long system call or softirq ends first. The kernel counts that wait \
    apart (schedstat), and it is not taken off. Neither are pauses under 1 ms, nor what queued up during a pause and is \
    worked off after it, nor the turns that other programs on the machine took. What a server does on one core while the \
    other is held up is taken off with the pause.";

/// Three cells of the table.
fn machine_cells(machine: Option<Machine>) -> String {
    machine.map_or_else(
        || "- | - | -".to_owned(),
        |m| format!("{:.1} | {} | {:.1}", m.longest_without_ms, m.pauses, m.longest_pause_ms),
    )
}

fn how(unwatched: Option<&str>) -> String {
    let pauses = unwatched.map_or_else(
        || HOW_PAUSES.to_owned(),
        |why| format!("The machine's pauses were not watched and nothing is taken off ({why})."),
    );
    format!(
        "An application renders {PAGE_BYTES} bytes in {:.0} ms, one page at a time, keeps connections alive and says \
         nothing about caching. {CLIENTS} clients with keep-alive ask for one page for {} s, each as soon as it has its \
         answer. One server after the other, pinned to one core (nginx and larder with one worker); the load on another. \
         Waits are from sending to the last byte. \"Longest\" counts requests sent after the first answer of all. \
         \"At once\" is the most the application had in flight. \"Oldest page\" is from the application having sent the \
         page's last byte to a client reading the first. \"By ab\" is `ab -k -c {CLIENTS} -t {AB_SECONDS}` after that. \
         \"Load's core\" is how busy the clients kept theirs: near 100 they were the limit, and CPU per request is what \
         compares. Every answer was 200 with a whole page, else nothing would stand here. {pauses}",
        ms(RENDER),
        LENGTH.as_secs()
    )
}

fn row_json(row: &Figures) -> Value {
    json!({
        "server": row.name, "requests": row.requests, "requests_per_s": row.requests_per_s.round(),
        "requests_per_s_by_ab": row.requests_per_s_by_ab.round(), "load_percent": row.load_percent.round(),
        "cpu_us_per_request": round(row.cpu_us_per_request), "mean_ms": (row.mean_ms * 1e4).round() / 1e4,
        "deviation_ms": (row.deviation_ms * 1e3).round() / 1e3, "p99_ms": (row.p99_ms * 1e3).round() / 1e3,
        "longest_ms": round(row.longest_ms),
        "longest_without_pauses_ms": row.machine.map(|machine| round(machine.longest_without_ms)),
        "pauses": row.machine.map(|machine| machine.pauses),
        "longest_pause_ms": row.machine.map(|machine| round(machine.longest_pause_ms)),
        "all_pauses_ms": row.machine.map(|machine| round(machine.all_pauses_ms)),
        "origin_requests": row.origin_requests, "at_once": row.at_once,
        "oldest_s": (row.oldest_s * 1e3).round() / 1e3,
    })
}

#[cfg(test)]
mod tests;
