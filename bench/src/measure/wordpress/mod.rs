//! WordPress behind each cache: the published microcaching setup for real.
//!
//! In: WordPress, Apache with PHP and MariaDB from Debian's packages, filled with sample posts. Out: the table of what
//! ten clients with keep-alive get from the front page in half a minute, plain and through each cache, beside the
//! published figures; also in docs/guide/wordpress.md. Before anything is measured, what larder's example config
//! promises is tried with visitors who log in, comment and type passwords; a page in the wrong hands fails the run.
//! The caches have one core and the load another; WordPress has what they leave of both, as a busy machine would.
//! Deliberately absent: any service or configuration of the system. What is started ends with this, by its id.

mod ab;
mod forms;
mod safety;
pub(crate) mod site;
mod visitor;

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::contender::{self, Contender, SERVER_CORE, Setup, build_larder, cores, pinned};
use super::report::{Report, round};
use crate::packages;
use ab::Measured;
use harness::children::free_port;
use safety::Safety;
use site::Site;
use visitor::Visitor;

const EXAMPLE: &str = "examples/wordpress.toml";
const GUIDE: &str = "docs/guide/wordpress.md";
const FIGURES_BEGIN: &str = "<!-- written by `make bench NAME=wordpress` -->";
const FIGURES_END: &str = "<!-- end -->";
/// Where the example config expects WordPress.
const EXAMPLE_ORIGIN: &str = "http://127.0.0.1:8083";
const EXAMPLE_TTL: &str = "ttl = \"1s\"";
const EXAMPLE_COOKIES: &str = "harmless_cookies = [";
/// The front page's size, near the published 57 KB.
const PAGE_BYTES: std::ops::Range<usize> = 54_000..61_000;

/// Below this share of requests on kept connections, two caches did not have the same load. Apache alone makes pages so
/// slowly that its connections do not matter, and closes them.
const KEPT_MIN: f64 = 0.9;

const NGINX: &str = "proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr; proxy_cache_valid 200 1s;";
const NGINX_RIGHT: &str = "proxy_cache_lock on; proxy_cache_use_stale updating;";

/// The published figures: requests per second, origin requests in 30 s, standard deviation in ms.
struct Published(f64, Option<(u32, f64)>);

/// One line of the table.
struct Row {
    name: &'static str,
    measured: Measured,
    /// Requests for the front page in Apache's log.
    origin_requests: usize,
    /// Of the cache; none where there is none.
    cpu_us: Option<f64>,
    published: Option<Published>,
}

/// Tries, measures, prints the tables and writes them to bench/results and the guide.
pub(crate) fn run(root: &Path) -> Result<()> {
    packages::install(site::PACKAGES)?;
    let program = build_larder(root)?;
    cores()?;
    // On a disk: a container's /dev/shm has no room for a database. Caches lie in memory.
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let work = scratch.path();
    let caches = contender::scratch()?;
    let mut site = Site::start(work)?;
    let page = front_page(site.address, work)?;

    let config = |edits: &[(&str, &str)]| config(root, site.address, edits);
    let mut safeties = Vec::new();
    for (number, ttl) in [(1, "1s"), (2, "1h")] {
        let config = config(&[(EXAMPLE_TTL, &format!("ttl = \"{ttl}\""))])?;
        let larder = larder(&program, work, &config, Cores::All)?;
        safeties.push(safety::run(&site, &larder, work, number, ttl)?);
        println!("with ttl = \"{ttl}\": nothing reached the wrong visitor");
    }
    let careless = config(&[(EXAMPLE_COOKIES, &format!("cookies = \"ignore\"\n{EXAMPLE_COOKIES}"))])?;
    let missed = {
        let larder = larder(&program, work, &careless, Cores::All)?;
        safety::run(&site, &larder, work, 3, "1s").err()
    };
    let missed = missed.map(|error| format!("{error:#}")).unwrap_or_default();
    ensure!(safety::is_leak(&missed), "with cookies ignored, no leak was found, but `{missed}`");
    println!("with cookies = \"ignore\", as it has to be: {missed}");

    let ahead = config(&[(EXAMPLE_TTL, &format!("{EXAMPLE_TTL}\nrefresh_ahead = true"))])?;
    let plain = config(&[])?;
    let mut rows = vec![measure("Apache, no cache", None, &site, work, Some(Published(5.53, None)))?];
    let mut turn = |name, contender: Contender, published| -> Result<()> {
        rows.push(measure(name, Some(contender), &site, work, published)?);
        Ok(())
    };
    let setup = Setup::new(caches.path(), site.address);
    let naive = contender::nginx::cache(&setup, "nginx", NGINX)?;
    turn("nginx, naive", naive, Some(Published(600.0, Some((150, 141.0)))))?;
    let right = contender::nginx::cache(&setup, "nginx", &format!("{NGINX}\n{NGINX_RIGHT}"))?;
    turn("nginx, right", right, Some(Published(2185.0, Some((16, 8.0)))))?;
    turn("larder", larder(&program, work, &plain, Cores::Own)?, None)?;
    turn("larder, `refresh_ahead`", larder(&program, work, &ahead, Cores::Own)?, None)?;

    let larder = larder(&program, work, &plain, Cores::All)?;
    let outage = safety::outage(&mut site, &larder, work)?;
    report(root, page, &rows, &safeties, &outage)
}

/// The example config for a site at `origin`, with other words in place of some.
fn config(root: &Path, origin: SocketAddr, edits: &[(&str, &str)]) -> Result<String> {
    let mut config = fs::read_to_string(root.join(EXAMPLE)).context(EXAMPLE)?;
    let origin = format!("http://{origin}");
    for (from, to) in [(EXAMPLE_ORIGIN, origin.as_str())].iter().chain(edits) {
        ensure!(config.matches(from).count() == 1, "{EXAMPLE} does not say `{from}` once");
        config = config.replace(from, to);
    }
    Ok(config)
}

/// Who has the machine while larder runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cores {
    /// Nobody measures: as many workers as there are cores.
    All,
    /// One worker on the core of all contenders.
    Own,
}

/// larder with this config.
fn larder(program: &Path, work: &Path, config: &str, cores: Cores) -> Result<Contender> {
    let (address, admin) = (free_port()?, free_port()?);
    let file = work.join("larder.toml");
    fs::write(&file, config).context("larder.toml")?;
    let mut command = match cores {
        Cores::All => Command::new(program),
        Cores::Own => pinned(SERVER_CORE),
    };
    if cores == Cores::Own {
        command.arg(program);
    }
    command.args(["run", "-c"]).arg(&file);
    if cores == Cores::Own {
        command.args(["--workers", "1"]);
    }
    command.args(["--listen", &address.to_string(), "--admin", &admin.to_string()]).stdout(Stdio::null());
    contender::start("larder", address, &mut command)
}

/// One contender's turn: nobody else is asked meanwhile. Without a contender, Apache itself.
fn measure(
    name: &'static str,
    contender: Option<Contender>,
    site: &Site,
    work: &Path,
    published: Option<Published>,
) -> Result<Row> {
    let address = contender.as_ref().map_or(site.address, |c| c.address);
    let cpu = || contender.as_ref().map(|c| c.server.cpu_time()).unwrap_or_default();
    let line = "GET / ";
    let measured = || -> Result<Row> {
        // Whoever caches has it before the clock starts.
        front_page(address, work)?;
        let (asked, used) = (site.asked(line)?, cpu());
        let measured = ab::run(address, work)?;
        let used = cpu().saturating_sub(used);
        let kept = measured.kept_alive / measured.requests;
        ensure!(contender.is_none() || kept > KEPT_MIN, "only {kept:.2} of its connections were kept");
        let origin_requests = site.asked(line)? - asked;
        front_page(address, work)?;
        let cpu_us = contender.as_ref().map(|_| used.as_secs_f64() * 1e6 / measured.requests);
        Ok(Row { name, measured, origin_requests, cpu_us, published: None })
    };
    let row = measured().context(name)?;
    if let Some(mut contender) = contender {
        contender.server.still_runs()?;
    }
    println!(
        "{name}: {:.0} requests/s, {} origin requests",
        row.measured.requests_per_s, row.origin_requests
    );
    Ok(Row { published, ..row })
}

/// Fetches the front page, fails where it is not the right one, and returns its length.
fn front_page(address: SocketAddr, work: &Path) -> Result<usize> {
    let answer = Visitor::new(address, work, "nobody", 1).look_at("/")?;
    ensure!(answer.status == 200, "the front page is answered {}", answer.status);
    ensure!(
        answer.says(">Shelf number 1</a>") && answer.body().ends_with("</html>"),
        "that is no front page"
    );
    let length = answer.length();
    ensure!(PAGE_BYTES.contains(&length), "the front page has {length} bytes");
    Ok(length)
}

fn table(rows: &[Row]) -> String {
    let mut table = String::from(
        "| | requests/s | mean | deviation | p99 | longest | origin requests | CPU per request | published |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for Row { name, measured, origin_requests, cpu_us, published } in rows {
        let _ = writeln!(
            table,
            "| {name} | {:.0} | {:.2} ms | {:.1} ms | {:.2} ms | {:.0} ms | {origin_requests} | {} | {} |",
            measured.requests_per_s,
            measured.mean_ms,
            measured.deviation_ms,
            measured.p99_ms,
            measured.longest_ms,
            cpu_us.map_or_else(|| "–".to_owned(), |cpu| format!("{cpu:.1} µs")),
            published.as_ref().map_or_else(
                || "–".to_owned(),
                |Published(rate, more)| more.map_or_else(
                    || format!("{rate} /s"),
                    |(asked, sd)| format!("{rate} /s, {sd} ms, {asked}")
                )
            ),
        );
    }
    table
}

fn report(
    root: &Path,
    page: usize,
    rows: &[Row],
    safeties: &[Safety],
    outage: &[(String, String)],
) -> Result<()> {
    let measured = table(rows);
    let mut tried = String::from("| asked, under `ttl = \"1h\"` | `Cache-Status` |\n|---|---|\n");
    let harsh = safeties.last().context("nothing was tried")?;
    for (what, said) in harsh.seen.iter().chain(outage) {
        let _ = writeln!(tried, "| {what} | `{said}` |");
    }
    let meanwhile: Vec<String> = safeties
        .iter()
        .map(|s| format!("{} of {} under `ttl = \"{}\"`", s.anonymous_hits, s.anonymous, s.ttl))
        .collect();
    let shown = safeties.iter().find_map(|s| s.edit_shown_after).unwrap_or(Duration::ZERO);
    let watched = format!(
        "Anonymous requests that were hits meanwhile: {}; not one of their pages held anything of another's. A writer's \
         edit showed after {:.1} s under `ttl = \"1s\"`. The same visitors with `cookies = \"ignore\"` found a leak, as they \
         have to.",
        meanwhile.join(", "),
        shown.as_secs_f64()
    );
    let versions: Vec<String> = ["wordpress", "apache2-bin", "php-cli", "mariadb-server", "apache2-utils"]
        .iter()
        .map(|name| format!("{name} {}", packages::version(name).unwrap_or_default()))
        .collect();
    let how = format!(
        "The front page, {page} bytes; `ab -c {} -t {} -k` on one core, the cache with one worker on another, Apache and \
         MariaDB on both; one run each, in this order, the page fetched once before. Apache sends each page with its \
         length (mod_buffer), without which ab keeps connections with larder alone. The CPU time is the cache's own. \
         Published: requests/s, standard deviation and origin requests in 30 s, on other machines and through a \
         network of 1 Gbit/s. {}.",
        ab::CLIENTS,
        ab::SECONDS,
        versions.join(", ")
    );
    let figures: Vec<Value> = rows.iter().map(figures_of).collect();
    let guide = format!("{measured}\n{how}\n\n{tried}\n{watched}\n");
    Report {
        name: "wordpress",
        title: "WordPress, microcached",
        table: &format!("{measured}\n{tried}\n{watched}\n"),
        how: &how,
        programs: &[("nginx", "-v")],
        figures: json!({ "page_bytes": page, "clients": ab::CLIENTS, "seconds": ab::SECONDS, "packages": versions,
            "rows": figures, "tried": harsh.seen, "outage": outage, "meanwhile": meanwhile,
            "edit_shown_after_s": round(shown.as_secs_f64()) }),
    }
    .write(root)?;
    into_guide(root, &guide)
}

fn figures_of(row: &Row) -> Value {
    let measured = &row.measured;
    json!({
        "server": row.name, "requests_per_s": measured.requests_per_s.round(), "mean_ms": round(measured.mean_ms),
        "deviation_ms": measured.deviation_ms, "p99_ms": round(measured.p99_ms), "longest_ms": measured.longest_ms,
        "origin_requests": row.origin_requests, "cpu_us_per_request": row.cpu_us.map(round),
        "kept_alive": round(measured.kept_alive / measured.requests),
        "published_requests_per_s": row.published.as_ref().map(|p| p.0),
    })
}

/// Puts the figures into the guide, between the two marks.
fn into_guide(root: &Path, figures: &str) -> Result<()> {
    let file = root.join(GUIDE);
    let text = fs::read_to_string(&file).context(GUIDE)?;
    let (before, rest) = text.split_once(FIGURES_BEGIN).context("the guide has no mark for the figures")?;
    let (_, after) = rest.split_once(FIGURES_END).context("the guide's figures do not end")?;
    fs::write(file, format!("{before}{FIGURES_BEGIN}\n\n{figures}\n{FIGURES_END}{after}")).context(GUIDE)
}

#[expect(clippy::disallowed_methods, reason = "no worker here: a tool that waits for other programs")]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}
