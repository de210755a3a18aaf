//! Rates per interval: what changed between two looks at `/stats`, in a second.
//!
//! In: an interval. Out: a line per interval, from the first full one on. A larder that does not answer, because it is started
//! anew, is a warning: the next answer begins a new interval, and so does one whose counters began anew. Only a larder that
//! does not answer at the first look ends the command.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::super::ended::Ended;
use super::super::output::{complain, write_out};
use super::super::table::{bytes, count};
use super::figures::{ask, each, origin_requests, tenths};
use crate::cli::admin::RunningLarder;

/// Lines between two heads.
const HEAD_EVERY: u64 = 20;

/// The shortest interval: a look costs larder something too.
const SHORTEST: Duration = Duration::from_millis(100);

/// Reads an interval.
pub(in crate::cli) fn interval(text: &str) -> Result<Duration, String> {
    let read = larder_config::read_duration(text).map_err(|hint| match hint {
        Some(hint) => format!("expected a duration such as 1s, 500ms, 5m; {hint}"),
        None => "expected a duration such as 1s, 500ms, 5m".to_owned(),
    })?;
    if read < SHORTEST { Err("at least 100ms".to_owned()) } else { Ok(read) }
}

/// Counters at one moment, as far as they are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    requests: u64,
    hits: u64,
    collapsed: u64,
    origin_requests: u64,
    errors: u64,
    body_bytes: u64,
    connections: u64,
}

/// What happened in an interval, per second but for what says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Rates {
    /// The length of the interval.
    seconds: f64,
    requests: f64,
    /// Hits and collapsed.
    saved: f64,
    /// `saved` in all requests, 0 to 1.
    saved_ratio: Option<f64>,
    hits: f64,
    collapsed: f64,
    origin_requests: f64,
    /// Answers with a status of 500 or more.
    errors: f64,
    body_bytes: f64,
    /// Open at the end of the interval.
    connections: u64,
}

impl Counters {
    fn of(stats: &Value) -> Self {
        let figure = |value: &Value| value.as_u64().unwrap_or_default();
        let sites = |of: &dyn Fn(&Value) -> u64| each(&stats["sites"]).map(of).fold(0, u64::saturating_add);
        Self {
            requests: figure(&stats["requests"]),
            hits: figure(&stats["hits"]),
            collapsed: figure(&stats["collapsed"]),
            origin_requests: origin_requests(stats).unwrap_or_default(),
            errors: sites(&|site| figure(&site["by_code_class"]["5xx"])),
            body_bytes: sites(&|site| figure(&site["body_bytes"])),
            connections: figure(&stats["connections"]),
        }
    }

    /// What happened since `before`; nothing where the counters began anew.
    fn since(self, before: Self, length: Duration) -> Option<Rates> {
        let seconds = length.as_secs_f64();
        let rate = |now: u64, then: u64| now.checked_sub(then).map(|more| more as f64 / seconds);
        let requests = rate(self.requests, before.requests)?;
        let (hits, collapsed) = (rate(self.hits, before.hits)?, rate(self.collapsed, before.collapsed)?);
        let saved = hits + collapsed;
        Some(Rates {
            seconds,
            requests,
            saved,
            saved_ratio: (requests > 0.0).then(|| (saved / requests).min(1.0)),
            hits,
            collapsed,
            origin_requests: rate(self.origin_requests, before.origin_requests)?,
            errors: rate(self.errors, before.errors)?,
            body_bytes: rate(self.body_bytes, before.body_bytes)?,
            connections: self.connections,
        })
    }
}

/// Prints the rates of each interval, as JSON where that is wanted, until `lines_max` lines are printed or nobody reads them any
/// more.
pub(super) async fn watch(
    larder: &RunningLarder,
    every: Duration,
    lines_max: Option<u64>,
    is_json: bool,
) -> Result<(), Ended> {
    let mut before = Some((Counters::of(&ask(larder).await?), Instant::now()));
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut printed = 0;
    while lines_max.is_none_or(|most| printed < most) {
        ticks.tick().await;
        let counters = match ask(larder).await {
            Ok(stats) => Counters::of(&stats),
            Err(error) => {
                // Said once, not at every interval that it lasts.
                if before.take().is_some() {
                    complain(&error);
                }
                continue;
            }
        };
        let now = Instant::now();
        let last = before.replace((counters, now));
        let rates = last.and_then(|(last, at)| counters.since(last, now.duration_since(at)));
        let Some(rates) = rates else { continue };
        let out = match is_json {
            true => serde_json::to_string(&rates).map_err(|error| Ended::Writing(error.into()))?,
            false if printed % HEAD_EVERY == 0 => format!("{}\n{}", head(), line(&rates)),
            false => line(&rates),
        };
        if !write_out((out + "\n").as_bytes()).map_err(Ended::Writing)? {
            break;
        }
        printed += 1;
    }
    Ok(())
}

fn columns(cells: [&str; 9]) -> String {
    let [requests, saved, share, hits, collapsed, origin, errors, sent, open] = cells;
    format!(
        "{requests:>7} {saved:>7} {share:>7} {hits:>7} {collapsed:>11} {origin:>8} {errors:>5} {sent:>9} {open:>6}"
    )
}

fn head() -> String {
    columns(["REQ/S", "SAVED/S", "SAVED", "HITS/S", "COLLAPSED/S", "ORIGIN/S", "5XX/S", "SENT/S", "OPEN"])
}

fn line(of: &Rates) -> String {
    columns([
        &rate(of.requests),
        &rate(of.saved),
        &of.saved_ratio.map_or_else(|| "-".to_owned(), tenths),
        &rate(of.hits),
        &rate(of.collapsed),
        &rate(of.origin_requests),
        &rate(of.errors),
        &bytes(of.body_bytes.round() as u64),
        &count(of.connections),
    ])
}

/// A rate: with a tenth where it is small.
fn rate(per_second: f64) -> String {
    match per_second {
        0.0 => "0".to_owned(),
        rate if rate < 9.95 => format!("{rate:.1}"),
        rate => count(rate.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(requests: u64, hits: u64) -> Counters {
        Counters { requests, hits, collapsed: 3, body_bytes: requests * 1024, ..Counters::default() }
    }

    #[test]
    fn a_line_is_what_changed_per_second_and_fits_80_columns() {
        let before = counters(1000, 0);
        let now = Counters { collapsed: 5, connections: 12, errors: 1, ..counters(3000, 1900) };
        let rates = now.since(before, Duration::from_secs(2)).unwrap();
        assert_eq!((rates.requests, rates.saved, rates.hits, rates.collapsed), (1000.0, 951.0, 950.0, 1.0));
        assert_eq!(
            line(&rates),
            "  1 000     951  95.1 %     950         1.0        0   0.5  1000 KiB     12"
        );
        assert_eq!(head().chars().count(), line(&rates).chars().count());
        assert!(head().chars().count() < 80);
    }

    #[test]
    fn nothing_in_an_interval_is_no_ratio() {
        let rates = counters(10, 5).since(counters(10, 5), Duration::from_secs(1)).unwrap();
        assert_eq!((rates.saved_ratio, rates.requests), (None, 0.0));
    }

    #[test]
    fn counters_that_began_anew_are_no_rate() {
        assert_eq!(counters(1, 0).since(counters(1000, 0), Duration::from_secs(1)), None);
    }

    #[test]
    fn an_interval_is_a_duration_of_some_length() {
        assert_eq!(interval("1s"), Ok(Duration::from_secs(1)));
        assert!(interval("1").is_err_and(|said| said.contains("add a unit")));
        assert!(interval("10ms").is_err_and(|said| said.contains("at least")));
        assert!(interval("often").is_err());
    }
}
