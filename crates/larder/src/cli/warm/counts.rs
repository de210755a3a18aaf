//! What the answers came to, counted as they come.
//!
//! In: one answer after the other, or why there is none. Out: sums by what the nearest cache said, by status, by failure, and the
//! slowest. What is counted by a word of the other side has a bounded number of words.

use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;
use larder_http::fields::cache_status::NearestCache;

use super::client::Unfetched;
use crate::cli::output::chain;

/// The slowest answers that are kept.
const SLOWEST_MAX: usize = 10;
/// Different words that are told apart; the others are counted together.
const WORDS_MAX: usize = 50;
/// Characters of such a word.
const WORD_CHARACTERS_MAX: usize = 60;
const OTHERS: &str = "others";

/// An answer, read to its end or to the bound of its body.
#[derive(Debug)]
pub(super) struct WarmAnswer {
    pub(super) status: StatusCode,
    pub(super) cache: Option<NearestCache>,
    pub(super) body_bytes: u64,
}

/// How often, and for which URL first, by its place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) first: usize,
}

/// Everything that was counted.
#[derive(Clone, Debug, Default)]
pub(super) struct WarmCounts {
    /// Requests with an answer, and those without one.
    pub(super) done: u64,
    pub(super) hit: u64,
    pub(super) stored: u64,
    /// Answers that were not stored, by reason.
    pub(super) not_stored: BTreeMap<String, u64>,
    /// Answers that say nothing of a cache.
    pub(super) unsaid: u64,
    pub(super) body_bytes: u64,
    /// Of answers other than 2xx.
    pub(super) statuses: BTreeMap<u16, Tally>,
    /// Requests without a whole answer, by reason.
    pub(super) unanswered: BTreeMap<String, Tally>,
    /// The slowest first, each with its place in the list.
    pub(super) slowest: Vec<(Duration, usize)>,
}

impl WarmCounts {
    /// Counts the answer to the URL at `place` of the list.
    pub(super) fn count(&mut self, place: usize, time: Duration, answered: Result<WarmAnswer, Unfetched>) {
        self.done += 1;
        self.keep_slowest(place, time);
        let answer = match answered {
            Ok(answer) => answer,
            Err(error) => {
                let word = word(&self.unanswered, &chain(&error));
                self.unanswered.entry(word).or_insert(Tally { count: 0, first: place }).count += 1;
                return;
            }
        };
        self.body_bytes = self.body_bytes.saturating_add(answer.body_bytes);
        if !answer.status.is_success() {
            let status = answer.status.as_u16();
            self.statuses.entry(status).or_insert(Tally { count: 0, first: place }).count += 1;
        }
        match answer.cache {
            Some(NearestCache { hit: true, .. }) => self.hit += 1,
            Some(NearestCache { stored: true, .. }) => self.stored += 1,
            Some(NearestCache { detail: Some(detail), .. }) => {
                let word = word(&self.not_stored, &detail);
                *self.not_stored.entry(word).or_default() += 1;
            }
            Some(_) | None => self.unsaid += 1,
        }
    }

    fn keep_slowest(&mut self, place: usize, time: Duration) {
        let is_faster = |(slow, _): &(Duration, usize)| time <= *slow;
        if self.slowest.len() == SLOWEST_MAX && self.slowest.last().is_some_and(is_faster) {
            return;
        }
        let at = self.slowest.partition_point(is_faster);
        self.slowest.insert(at, (time, place));
        self.slowest.truncate(SLOWEST_MAX);
    }

    /// Answers that were not stored, with a reason.
    pub(super) fn not_stored(&self) -> u64 {
        self.not_stored.values().sum()
    }

    /// Requests without a whole answer.
    pub(super) fn unanswered(&self) -> u64 {
        self.unanswered.values().map(|tally| tally.count).sum()
    }

    /// Answers with a status of 500 or more.
    pub(super) fn errors(&self) -> u64 {
        self.statuses.range(500..).map(|(_, tally)| tally.count).sum()
    }

    /// The reasons for what was not stored, the most frequent first: "set-cookie 4, no-store 1".
    pub(super) fn reasons(&self, most: usize) -> String {
        let mut reasons: Vec<_> = self.not_stored.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let more = reasons.len().saturating_sub(most);
        let mut shown: Vec<_> =
            reasons.into_iter().take(most).map(|(reason, count)| format!("{reason} {count}")).collect();
        if more > 0 {
            shown.push(format!("{more} more"));
        }
        shown.join(", ")
    }
}

/// The word that `said` is counted under.
fn word<T>(known: &BTreeMap<String, T>, said: &str) -> String {
    let cut = said.get(..said.floor_char_boundary(WORD_CHARACTERS_MAX)).unwrap_or(said);
    if known.len() < WORDS_MAX || known.contains_key(cut) { cut.to_owned() } else { OTHERS.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, cache: Option<NearestCache>) -> Result<WarmAnswer, Unfetched> {
        Ok(WarmAnswer { status: StatusCode::from_u16(status).expect("a status"), cache, body_bytes: 10 })
    }

    fn said(hit: bool, stored: bool, detail: Option<&str>) -> Option<NearestCache> {
        Some(NearestCache { hit, stored, detail: detail.map(str::to_owned) })
    }

    #[test]
    fn each_answer_counts_once_by_what_the_cache_said() {
        let mut counts = WarmCounts::default();
        let answers = [
            answer(200, said(true, false, Some("stale-origin-dead"))),
            answer(200, said(false, true, None)),
            answer(200, said(false, true, Some("cookies-withheld"))),
            answer(200, said(false, false, Some("set-cookie"))),
            answer(404, said(false, false, Some("no-lifetime"))),
            answer(502, said(false, false, Some("set-cookie"))),
            answer(301, said(false, false, None)),
            answer(200, None),
            Err(Unfetched::Time),
            Err(Unfetched::Time),
        ];
        for (place, answered) in answers.into_iter().enumerate() {
            counts.count(place, Duration::ZERO, answered);
        }
        assert_eq!((counts.done, counts.hit, counts.stored, counts.unsaid), (10, 1, 2, 2));
        assert_eq!((counts.not_stored(), counts.unanswered(), counts.errors()), (3, 2, 1));
        assert_eq!(counts.reasons(9), "set-cookie 2, no-lifetime 1");
        assert_eq!(counts.reasons(1), "set-cookie 2, 1 more");
        assert_eq!(counts.body_bytes, 80);
        assert_eq!(counts.statuses.keys().copied().collect::<Vec<_>>(), [301, 404, 502]);
        assert_eq!(counts.unanswered["no answer within 90 s"], Tally { count: 2, first: 8 });
    }

    #[test]
    fn the_ten_slowest_stay_in_order() {
        let mut counts = WarmCounts::default();
        for place in 0..100_usize {
            let time = Duration::from_millis((place as u64 * 37) % 100);
            counts.count(place, time, Err(Unfetched::Time));
        }
        let times: Vec<_> = counts.slowest.iter().map(|(time, _)| time.as_millis()).collect();
        assert_eq!(times, [99, 98, 97, 96, 95, 94, 93, 92, 91, 90]);
        assert!(counts.slowest.iter().all(|(time, place)| time.as_millis() == (*place as u128 * 37) % 100));
    }

    #[test]
    fn words_of_the_other_side_have_a_bound() {
        let mut counts = WarmCounts::default();
        for number in 0..1000 {
            let detail = format!("{number:03}{}", "é".repeat(1000));
            counts.count(number, Duration::ZERO, answer(200, said(false, false, Some(&detail))));
        }
        assert_eq!((counts.not_stored.len(), counts.not_stored()), (WORDS_MAX + 1, 1000));
        assert!(counts.not_stored.keys().all(|word| word.len() <= WORD_CHARACTERS_MAX));
    }
}
