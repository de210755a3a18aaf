//! The page of the outage: waits of hits and misses, and the targets.
//!
//! In: what was measured. Out: bench/results/outage.md and outage.json; then an error where a target was missed, after both are written.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::misses::PER_SECOND;
use super::{BYTES, CONNECTIONS, KEPT_UP, Measured, Part, ROUNDS, RUN, SHARE};
use crate::measure::load::{ms, quantile};
use crate::measure::outcome::{Judged, Verdict};
use crate::measure::page::{targets, told};
use crate::measure::report::{Report, median, round};

/// The p99 of hits during it, over that before.
const HITS_MAX: f64 = 1.1;
/// The time limit of a look-up, and what timers and a load of their own core may add.
const LOOK_UP_MAX: Duration = Duration::from_millis(200);
const SLACK: Duration = Duration::from_millis(20);
/// A miss that took longer has waited for Redis.
const WAITED: Duration = Duration::from_millis(100);

/// Prints the tables and writes page and figures.
///
/// # Errors
/// A target was missed; everything has been written then.
pub(super) fn report(root: &Path, measured: &Measured) -> Result<()> {
    let judged = judge(measured);
    let missed = judged.iter().filter(|judged| judged.missed()).count();
    let parts = [("Redis answers", &measured.before), ("Redis stands still", &measured.during)];
    let mut table = String::from(
        "| | hits/s | hits: p50 us | p99 us | p99 of the rounds | misses | p50 ms | p99 ms | longest ms | that waited for Redis | the last of them after s |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (what, parts) in parts {
        let all = waits(parts);
        let [p50, p99, longest] = [0.5, 0.99, 1.0].map(|share| ms(quantile(&all, share)));
        let rounds: Vec<String> = parts.iter().map(|part| format!("{:.0}", part.hits.p99_us)).collect();
        let _ = writeln!(
            table,
            "| {what} | {:.0} | {:.0} | {:.0} | {} | {} | {p50:.2} | {p99:.1} | {longest:.1} | {} | {:.2} |",
            of(parts, |part| part.hits.requests_per_s),
            of(parts, |part| part.hits.p50_us),
            p99_us(parts),
            rounds.join(", "),
            all.len(),
            waited(parts).0,
            waited(parts).1.as_secs_f64(),
        );
    }
    Report {
        name: "outage",
        title: "A Redis that hangs",
        table: &[table, targets(&judged)].concat(),
        how: &format!(
            "A larder that shares its responses, one worker, pinned to one core; the clients, the origin and Redis on another. Hits: bodies of {BYTES} \
             bytes from memory, `h2load --h1 -c{CONNECTIONS}` at {SHARE} of what larder reached before, {:.0} a second, of which at least {KEPT_UP} were \
             reached in each run. Misses: {PER_SECOND} a second, each for a page that nobody has, from the floor as origin. {ROUNDS} rounds, each \
             of {} s with a Redis that answers and as long with one that is stopped (SIGSTOP); medians of the rounds for hits, all rounds together for misses. \
             Redis goes on between two rounds, until larder has found it well. Every answer was the right one.",
            measured.rate,
            RUN.as_secs(),
        ),
        programs: &[
            ("uname", "-sr"),
            ("rustc", "--version"),
            ("redis-server", "--version"),
            ("h2load", "--version"),
        ],
        figures: json!({
            "hits_per_s": measured.rate.round(),
            "parts": parts.map(|(what, parts)| json!({
                "what": what, "hits_p50_us": of(parts, |part| part.hits.p50_us), "hits_p99_us": p99_us(parts),
                "rounds_p99_us": parts.iter().map(|part| part.hits.p99_us).collect::<Vec<f64>>(),
                "misses": waits(parts).len(), "misses_p50_ms": round(ms(quantile(&waits(parts), 0.5))),
                "misses_longest_ms": round(ms(quantile(&waits(parts), 1.0))),
                "misses_waited": waited(parts).0, "last_waited_s": round(waited(parts).1.as_secs_f64()),
            })).to_vec(),
            "missed": missed,
            "targets": told(&judged),
        }),
    }
    .write(root)?;
    ensure!(missed == 0, "{missed} targets missed");
    Ok(())
}

fn judge(measured: &Measured) -> Vec<Judged> {
    let judged = |what: &str, target: String, figure: String, holds: bool| Judged {
        scenario: what.to_owned(),
        target,
        figure,
        verdict: Verdict::of(holds),
    };
    let ratio = p99_us(&measured.during) / p99_us(&measured.before);
    let longest = quantile(&waits(&measured.during), 1.0);
    let beyond = longest.saturating_sub(quantile(&waits(&measured.before), 0.5));
    let most = LOOK_UP_MAX + SLACK;
    let target = format!(
        "the longest takes at most {} ms more than the usual one before, and {} ms for timers and the load",
        LOOK_UP_MAX.as_millis(),
        SLACK.as_millis()
    );
    let late = waited(&measured.during).1;
    vec![
        judged(
            "hits",
            format!("p99 at most {HITS_MAX} of that before"),
            format!("{ratio:.3}"),
            ratio <= HITS_MAX,
        ),
        judged("misses", target, format!("{:.1}", ms(beyond)), beyond <= most),
        judged(
            "misses",
            format!("none waits for Redis that is sent in the last half of {} s", RUN.as_secs()),
            format!("{:.2}", late.as_secs_f64()),
            late <= RUN / 2,
        ),
    ]
}

fn of(parts: &[Part], figure: impl Fn(&Part) -> f64) -> f64 {
    median(parts.iter().map(figure).collect())
}

fn p99_us(parts: &[Part]) -> f64 {
    of(parts, |part| part.hits.p99_us)
}

/// Of the misses of all rounds, sorted.
fn waits(parts: &[Part]) -> Vec<Duration> {
    let mut waits: Vec<Duration> = parts.iter().flat_map(|part| &part.misses).map(|miss| miss.wait).collect();
    waits.sort_unstable();
    waits
}

/// How many misses of all rounds have waited for Redis, and when the last of a round was sent.
fn waited(parts: &[Part]) -> (usize, Duration) {
    let waited = || parts.iter().flat_map(|part| &part.misses).filter(|miss| miss.wait >= WAITED);
    (waited().count(), waited().map(|miss| miss.sent).max().unwrap_or_default())
}
