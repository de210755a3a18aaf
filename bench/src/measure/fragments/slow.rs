//! A page whose fragments take their time: when does a visitor see something, and when all of it?
//!
//! In: larder, nginx and Varnish, each with a stored template of eight fragments that take 200 ms and may not be stored. Out: the wait for the
//! first byte of content and for the last, by one visitor at a time. Whoever asks for fragments one after the other takes eight
//! times as long, and whoever begins with the head alone has shown nothing.
//! Deliberately absent: load. The servers wait here, and do not work.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{ESI, NGINX, NGINX_LINES, PAGE, SSI, VARNISH};
use crate::measure::contender::larder::{self, AccessLog};
use crate::measure::contender::{Contender, Kit, nginx, varnish};
use crate::measure::load::on_load_core;
use crate::measure::outcome::{Judged, Verdict};
use crate::measure::page::More;
use crate::measure::report::{median, round};
use harness::origin::Origin;
use harness::pages::{Form, FragmentedPage, SLOW, Theme};
use harness::received::{Received, head_end};

const SLOW_PAGE: FragmentedPage = FragmentedPage { theme: Theme::Slow, fragments: 8, ..PAGE };
const VISITS: usize = 20;
/// Longest wait for a page.
const PAGE_MAX: Duration = Duration::from_secs(30);
/// What the page is allowed, in milliseconds.
const FIRST_MAX_MS: f64 = 5.0;
const LAST_MAX_MS: f64 = 250.0;

/// Lines of Varnish's `vcl_backend_response`.
pub(super) const DO_ESI: &str = "if (bereq.url ~ \"^/page/esi/\") { set beresp.do_esi = true; }";

/// One server's pages.
pub(super) struct Waits {
    server: &'static str,
    first_ms: Vec<f64>,
    last_ms: Vec<f64>,
    /// Requests to the origin for one page.
    asked: f64,
}

/// For the page of the measurement.
pub(super) fn how() -> String {
    format!(
        "Slow fragments: a stored template of {} fragments that take {} ms each and may not be stored, asked for {VISITS} times, one after \
         the other, each time over a new connection; medians, with the least and the most.",
        SLOW_PAGE.fragments,
        SLOW.as_millis()
    )
}

/// Measures each server.
pub(super) fn run(kit: &Kit) -> Result<Vec<Waits>> {
    type Start = fn(&Kit, SocketAddr, &'static str) -> Result<Contender>;
    let full: Start = |kit, origin, name| larder::full(kit, &kit.setup(origin), name, AccessLog::Off);
    let with_ssi: Start =
        |kit, origin, name| nginx::cache(&kit.setup(origin), name, &format!("{NGINX_LINES} ssi on;"));
    let with_esi: Start = |kit, origin, name| varnish::cache(&kit.setup(origin), name, DO_ESI);
    let servers = [
        (SSI, Form::Ssi, full),
        (ESI, Form::Esi, full),
        (NGINX, Form::Ssi, with_ssi),
        (VARNISH, Form::Esi, with_esi),
    ];
    let mut all = Vec::with_capacity(servers.len());
    for (server, form, start) in servers {
        let origin = Origin::start()?;
        let contender = start(kit, origin.address, server)?;
        all.push(visits(server, &contender, &origin, form).context(server)?);
    }
    Ok(all)
}

fn visits(server: &'static str, contender: &Contender, origin: &Origin, form: Form) -> Result<Waits> {
    let (page, address) = (SLOW_PAGE.written(form), contender.address);
    let visit = || on_load_core(async { tokio::time::timeout(PAGE_MAX, visit(address, page)).await });
    // The template is stored with the first.
    visit()???;
    let asked = origin.asked();
    let mut waits = Waits { server, first_ms: Vec::new(), last_ms: Vec::new(), asked: 0.0 };
    for _ in 0..VISITS {
        let (first, last) = visit()???;
        waits.first_ms.push(first.as_secs_f64() * 1e3);
        waits.last_ms.push(last.as_secs_f64() * 1e3);
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let per_page = (origin.asked() - asked) as f64 / VISITS as f64;
    ensure!(per_page >= 8.0, "the origin was asked {per_page:.1} times for a page: fragments were stored");
    println!(
        "slow fragments, {server}: first byte {:.1} ms, last {:.1} ms",
        median(waits.first_ms.clone()),
        median(waits.last_ms.clone())
    );
    Ok(Waits { asked: per_page, ..waits })
}

/// One page over a connection of its own: the waits for the first byte of its content, and for its end.
async fn visit(address: SocketAddr, page: FragmentedPage) -> Result<(Duration, Duration)> {
    let mut stream = TcpStream::connect(address).await.context("connecting")?;
    stream.set_nodelay(true)?;
    let request = format!("GET {} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n", page.target());
    let began = Instant::now();
    stream.write_all(request.as_bytes()).await?;
    let (mut received, mut first) = (Vec::with_capacity(page.bytes * 2), None);
    while stream.read_buf(&mut received).await? > 0 {
        if first.is_none() && head_end(&received).is_some_and(|end| received.len() > end) {
            first = Some(began.elapsed());
        }
    }
    let last = began.elapsed();
    let answer = Received::read(&received)?;
    ensure!(answer.status == 200 && answer.is_whole, "status {}, or cut", answer.status);
    ensure!(answer.content == page.page(0), "another page of {} bytes", answer.content.len());
    Ok((first.context("no content")?, last))
}

/// larder's targets.
pub(super) fn judge(all: &[Waits]) -> Vec<Judged> {
    let mut judged = Vec::new();
    for waits in all.iter().filter(|waits| [SSI, ESI].contains(&waits.server)) {
        let figures =
            [("first byte", &waits.first_ms, FIRST_MAX_MS), ("last byte", &waits.last_ms, LAST_MAX_MS)];
        for (what, ms, most) in figures {
            let figure = median(ms.clone());
            judged.push(Judged {
                scenario: "slow fragments".to_owned(),
                target: format!("{}: {what} within {most:.0} ms", waits.server),
                figure: format!("{figure:.1}"),
                verdict: Verdict::of(figure <= most),
            });
        }
    }
    judged
}

/// The table, and the same for programs.
pub(super) fn told(all: &[Waits]) -> More {
    let mut tables = String::from(
        "\nSlow fragments:\n\n| | first byte ms | least..most | last byte ms | least..most | origin requests per page |\n\
         |---|---|---|---|---|---|\n",
    );
    let mut rows = Vec::new();
    for Waits { server, first_ms, last_ms, asked } in all {
        let spread = |ms: &[f64]| {
            let least = ms.iter().copied().fold(f64::NAN, f64::min);
            format!("{least:.1}..{:.1}", ms.iter().copied().fold(f64::NAN, f64::max))
        };
        let [first, last] = [first_ms, last_ms].map(|ms| median(ms.clone()));
        let _ = writeln!(
            tables,
            "| {server} | {first:.1} | {} | {last:.1} | {} | {asked:.0} |",
            spread(first_ms),
            spread(last_ms)
        );
        rows.push(json!({
            "server": server, "first_byte_ms": round(first), "last_byte_ms": round(last), "origin_requests": asked,
        }));
    }
    More { tables, figures: json!({ "slow_fragments": rows }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(server: &'static str, first_ms: f64, last_ms: f64) -> Waits {
        Waits { server, first_ms: vec![first_ms], last_ms: vec![last_ms], asked: 8.0 }
    }

    #[test]
    fn larder_is_judged_and_the_peers_are_told() {
        let all = [waits(SSI, 1.0, 210.0), waits(ESI, 5.1, 251.0), waits(NGINX, 200.0, 1600.0)];
        let verdicts: Vec<Verdict> = judge(&all).iter().map(|judged| judged.verdict).collect();
        assert_eq!(verdicts, [Verdict::Holds, Verdict::Holds, Verdict::Missed, Verdict::Missed]);
        let row = "| nginx, ssi on | 200.0 | 200.0..200.0 | 1600.0 | 1600.0..1600.0 | 8 |";
        assert!(told(&all).tables.lines().any(|line| line == row));
    }
}
