//! What a server has answered: classes of status codes, times, bytes, and its last health check.
//!
//! In: final heads, content as it comes, verdicts of checks. Out: sums since the server is known. Times are counted by powers of two, because
//! such counts can be subtracted from one another: whoever reads twice knows how long the answers between took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::health::Verdict;

/// The last health check of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// How long ago it ended.
    pub ago: Duration,
    /// `good`, `bad` or `not-asked`.
    pub result: &'static str,
}

/// How many times of heads are told apart.
pub const HEAD_TIMES: usize = 22;

/// The longest time that counts in a place of `ServerReport::heads`: 32 us, 64 us, and so on to 67 s. The last place has all others as well.
pub fn head_time_bound(place: usize) -> Duration {
    Duration::from_micros(32 << place.min(HEAD_TIMES - 1))
}

/// Sums of one server.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// 1xx to 5xx; all others with the last.
    classes: [AtomicU64; 5],
    heads: [AtomicU64; HEAD_TIMES],
    bytes: AtomicU64,
    check: Mutex<Option<(Instant, Verdict)>>,
}

/// Up to 32 us, up to 64 us, and so on; all others in the last.
fn place(took: Duration) -> usize {
    let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(32);
    let octave = us.saturating_sub(1).ilog2().saturating_sub(4);
    usize::try_from(octave).unwrap_or(HEAD_TIMES).min(HEAD_TIMES - 1)
}

impl Answers {
    /// A final head with this status, so long after the request was sent.
    pub(super) fn answered(&self, status: http::StatusCode, took: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
        for counter in [self.classes.get(class), self.heads.get(place(took))].into_iter().flatten() {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// So much content came.
    pub(super) fn received(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// It was asked how it is.
    pub(super) fn checked(&self, verdict: Verdict, now: Instant) {
        *self.check.lock() = Some((now, verdict));
    }

    pub(super) fn classes(&self) -> [u64; 5] {
        self.classes.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    pub(super) fn heads(&self) -> [u64; HEAD_TIMES] {
        self.heads.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn check(&self, now: Instant) -> Option<CheckReport> {
        let (at, verdict) = (*self.check.lock())?;
        Some(CheckReport { ago: now.saturating_duration_since(at), result: verdict.token() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lie_below_the_bound_of_their_place() {
        for (us, expected) in [(0, 0), (32, 0), (33, 1), (64, 1), (65, 2), (1 << 26, 21), (u64::MAX, 21)] {
            assert_eq!(place(Duration::from_micros(us)), expected, "{us} us");
        }
        for place_of in 0..HEAD_TIMES - 1 {
            let bound = head_time_bound(place_of);
            assert_eq!(place(bound), place_of);
            assert_eq!(place(bound + Duration::from_micros(1)), place_of + 1);
        }
    }

    #[test]
    fn classes_and_bytes_add_up() {
        let answers = Answers::default();
        for status in [200, 204, 304, 404, 500, 999] {
            answers.answered(http::StatusCode::from_u16(status).unwrap(), Duration::from_millis(1));
        }
        answers.received(10);
        answers.received(5);
        assert_eq!((answers.classes(), answers.bytes()), ([0, 2, 1, 1, 2], 15));
        assert_eq!(answers.heads().iter().sum::<u64>(), 6);
    }
}
