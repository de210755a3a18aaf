//! What a run came to, as text and as JSON.
//!
//! In: counts and the list. Out: the sums by what Cache-Status said, the statuses other than 2xx, the failures and the slowest
//! answers, each with a URL to begin with; and the exit code that follows from them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::counts::{Tally, WarmCounts};
use super::url::WarmUrl;
use crate::cli::exit;
use crate::cli::output::printable;
use crate::cli::table::{Lean, Table, bytes, count, counted};

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cli) struct WarmReport {
    /// URLs of the list.
    urls: usize,
    /// Those that were asked for, with or without an answer.
    asked: u64,
    /// Ctrl-C ended the run.
    interrupted: bool,
    seconds: f64,
    hit: u64,
    stored: u64,
    not_stored: BTreeMap<String, u64>,
    nothing_said: u64,
    body_bytes: u64,
    /// Other than 2xx.
    statuses: Vec<StatusTally>,
    unanswered: Vec<FailureTally>,
    slowest: Vec<SlowAnswer>,
    #[serde(skip)]
    counts: WarmCounts,
}

#[derive(Clone, Debug, Serialize)]
struct StatusTally {
    status: u16,
    count: u64,
    first: String,
}

#[derive(Clone, Debug, Serialize)]
struct FailureTally {
    reason: String,
    count: u64,
    first: String,
}

#[derive(Clone, Debug, Serialize)]
struct SlowAnswer {
    seconds: f64,
    url: String,
}

impl WarmReport {
    pub(super) fn new(urls: &[WarmUrl], counts: WarmCounts, passed: Duration, interrupted: bool) -> Self {
        let at = |place: usize| urls.get(place).map(WarmUrl::to_string).unwrap_or_default();
        let status = |(status, tally): (&u16, &Tally)| StatusTally {
            status: *status,
            count: tally.count,
            first: at(tally.first),
        };
        let failure = |(reason, tally): (&String, &Tally)| FailureTally {
            reason: reason.clone(),
            count: tally.count,
            first: at(tally.first),
        };
        let slow =
            |(time, place): &(Duration, usize)| SlowAnswer { seconds: time.as_secs_f64(), url: at(*place) };
        Self {
            urls: urls.len(),
            asked: counts.done,
            interrupted,
            seconds: passed.as_secs_f64(),
            hit: counts.hit,
            stored: counts.stored,
            not_stored: counts.not_stored.clone(),
            nothing_said: counts.unsaid,
            body_bytes: counts.body_bytes,
            statuses: counts.statuses.iter().map(status).collect(),
            unanswered: counts.unanswered.iter().map(failure).collect(),
            slowest: counts.slowest.iter().map(slow).collect(),
            counts,
        }
    }

    /// 130 after Ctrl-C, 1 where an answer had a status of 500 or more or did not come, else 0.
    pub(in crate::cli) fn exit_code(&self) -> u8 {
        match self.interrupted {
            true => exit::INTERRUPTED,
            false if self.counts.errors() + self.counts.unanswered() > 0 => exit::FAILURE,
            false => exit::SUCCESS,
        }
    }

    /// The result as people read it.
    pub(in crate::cli) fn text(&self) -> String {
        let all = self.urls as u64;
        let asked = match self.interrupted {
            true => format!("{} of {}", count(self.asked), counted(all, "URL", "URLs")),
            false => counted(all, "URL", "URLs"),
        };
        let end = if self.interrupted { ", interrupted" } else { "" };
        let mut text = format!("{asked} in {:.1} s, {}{end}\n", self.seconds, bytes(self.body_bytes));
        for table in [self.outcomes(), self.failures(), self.slow()] {
            if !table.is_empty() {
                text.push('\n');
                text.push_str(&table.text(0));
            }
        }
        text
    }

    fn outcomes(&self) -> Table {
        let mut table = Table::new(&[("CACHE", Lean::Left), ("URLS", Lean::Right), ("", Lean::Left)]);
        let rows = [
            ("hit", self.hit, String::new()),
            ("stored", self.stored, String::new()),
            ("not stored", self.counts.not_stored(), self.counts.reasons(usize::MAX)),
            ("nothing said", self.nothing_said, String::new()),
            ("no answer", self.counts.unanswered(), String::new()),
        ];
        for (name, number, reasons) in rows {
            if number > 0 || name == "hit" || name == "stored" {
                table.row([name.to_owned(), count(number), reasons]);
            }
        }
        table
    }

    /// Statuses other than 2xx, and requests without an answer.
    fn failures(&self) -> Table {
        let mut table = Table::new(&[("STATUS", Lean::Left), ("URLS", Lean::Right), ("FIRST", Lean::Left)]);
        for StatusTally { status, count: number, first } in &self.statuses {
            table.row([status.to_string(), count(*number), first.clone()]);
        }
        for FailureTally { reason, count: number, first } in &self.unanswered {
            table.row([reason.clone(), count(*number), first.clone()]);
        }
        table
    }

    fn slow(&self) -> Table {
        let mut table = Table::new(&[("TIME", Lean::Right), ("SLOWEST", Lean::Left)]);
        for SlowAnswer { seconds, url } in &self.slowest {
            table.row([format!("{seconds:.3} s"), printable(url)]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use larder_http::fields::cache_status::NearestCache;

    use super::super::client::Unfetched;
    use super::super::counts::WarmAnswer;
    use super::*;

    fn report(statuses: &[u16], failures: usize, interrupted: bool) -> WarmReport {
        let url = |number: usize| WarmUrl::parse(&format!("http://a/{number}")).expect("a URL");
        let urls: Vec<_> = (0..statuses.len() + failures).map(url).collect();
        let mut counts = WarmCounts::default();
        for (place, status) in statuses.iter().enumerate() {
            let cache = Some(NearestCache {
                hit: false,
                stored: *status == 200,
                detail: Some("no-lifetime".to_owned()),
            });
            let status = StatusCode::from_u16(*status).expect("a status");
            counts.count(
                place,
                Duration::from_millis(place as u64),
                Ok(WarmAnswer { status, cache, body_bytes: 2048 }),
            );
        }
        for place in statuses.len()..urls.len() {
            counts.count(place, Duration::from_secs(90), Err(Unfetched::Time));
        }
        WarmReport::new(&urls, counts, Duration::from_millis(1500), interrupted)
    }

    #[test]
    fn the_exit_code_follows_from_the_answers() {
        for (statuses, failures, interrupted, code) in [
            (&[200, 404, 301][..], 0, false, exit::SUCCESS),
            (&[], 0, false, exit::SUCCESS),
            (&[200, 500], 0, false, exit::FAILURE),
            (&[200], 1, false, exit::FAILURE),
            (&[500], 1, true, exit::INTERRUPTED),
        ] {
            assert_eq!(report(statuses, failures, interrupted).exit_code(), code, "{statuses:?} {failures}");
        }
    }

    #[test]
    fn the_text_has_a_row_for_each_thing_that_happened() {
        let text = report(&[200, 200, 404], 1, false).text();
        let expected = "4 URLs in 1.5 s, 6.0 KiB\n\n\
            CACHE       URLS\nhit            0\nstored         2\nnot stored     1  no-lifetime 1\nno answer      1\n\n\
            STATUS                 URLS  FIRST\n404                       1  http://a/2\n\
            no answer within 90 s     1  http://a/3\n\n    TIME  SLOWEST\n90.000 s  http://a/3\n";
        assert!(text.starts_with(expected), "{text}");
        let text = report(&[200], 0, true).text();
        assert!(text.starts_with("1 of 1 URL in 1.5 s, 2.0 KiB, interrupted\n"), "{text}");
        assert!(!text.contains("STATUS"), "{text}");
    }

    #[test]
    fn the_json_has_the_same() {
        let json = serde_json::to_value(report(&[200, 404], 1, false)).expect("JSON");
        assert_eq!(json["asked"], 3);
        assert_eq!(json["not_stored"]["no-lifetime"], 1);
        assert_eq!(
            json["statuses"][0],
            serde_json::json!({"status": 404, "count": 1, "first": "http://a/1"})
        );
        assert_eq!(json["unanswered"][0]["reason"], "no answer within 90 s");
        assert_eq!(json["slowest"][0]["url"], "http://a/2");
    }
}
