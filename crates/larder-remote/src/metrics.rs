//! What is counted of one server.
//!
//! In: events of look-ups and writes. Out: samples under the families of `larder-observe`, with the labels of store and server.
//! Counters are relaxed atomics that workers share: each event stands beside a round trip to another process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use larder_observe::{Exposition, HistogramSnapshot, family};
use parking_lot::Mutex;

use crate::breaker::Breaker;

/// The figures of one server, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReport {
    /// What it is: `memcached` or `redis`.
    pub kind: &'static str,
    /// Its address.
    pub server: String,
    /// Whether it is asked; false while it is left alone.
    pub is_up: bool,
    /// Look-ups, by what they came to.
    pub lookups: Vec<(&'static str, u64)>,
    /// Values and deletions, likewise.
    pub writes: Vec<(&'static str, u64)>,
    /// Bytes that wait to be written.
    pub queued_bytes: u64,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($variant),+ }

        impl $name {
            const WORDS: &[&str] = &[$($word),+];
        }
    };
}

words! {
    /// What a look-up came to.
    Result {
        Found = "found",
        Absent = "absent",
        Failed = "failed",
        Skipped = "skipped",
        Malformed = "malformed",
        OtherVariant = "other-variant",
    }
}

words! {
    /// What a value or a deletion for the server came to.
    Write {
        Written = "written",
        Deleted = "deleted",
        Refused = "refused",
        Lost = "lost",
        Full = "full",
        Failing = "failing",
        TooLarge = "too-large",
        Unconfirmed = "unconfirmed",
    }
}

/// The counters of one server.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    lookups: [AtomicU64; Result::WORDS.len()],
    writes: [AtomicU64; Write::WORDS.len()],
    late: AtomicU64,
    /// Held for two adds.
    took: Mutex<HistogramSnapshot>,
}

impl Counters {
    pub(crate) fn looked_up(&self, result: Result) {
        bump(self.lookups.get(result as usize));
    }

    /// A look-up that reached the server, or tried to, took so long.
    pub(crate) fn took(&self, took: Duration) {
        self.took.lock().observe(took);
    }

    pub(crate) fn wrote(&self, write: Write) {
        bump(self.writes.get(write as usize));
    }

    pub(crate) fn late(&self) {
        bump(Some(&self.late));
    }

    /// How often look-ups came to what.
    pub(crate) fn lookups(&self) -> impl Iterator<Item = (&'static str, u64)> {
        read(Result::WORDS, &self.lookups)
    }

    /// The same of values and deletions.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        read(Write::WORDS, &self.writes)
    }

    /// Adds all samples. `queued_bytes` wait to be written.
    pub(crate) fn expose(
        &self,
        store: &str,
        server: &str,
        breaker: &Breaker,
        queued_bytes: usize,
        out: &mut Exposition,
    ) {
        let both = [("store", store), ("server", server)];
        let with = |result| [("store", store), ("server", server), ("result", result)];
        for (word, count) in self.lookups() {
            out.family(&family::REMOTE_LOOKUPS).value(&with(word), count);
        }
        // A copy, so that no look-up waits while text is made.
        let took = self.took.lock().clone();
        out.family(&family::REMOTE_LOOKUP_SECONDS).histogram(&both, &took);
        for (word, count) in self.writes() {
            out.family(&family::REMOTE_WRITES).value(&with(word), count);
        }
        out.family(&family::REMOTE_QUEUE_BYTES).value(&both, queued_bytes);
        out.family(&family::REMOTE_SERVER_UP).value(&both, u64::from(breaker.may_ask()));
        out.family(&family::REMOTE_BREAKER_OPENS).value(&both, breaker.opened());
        out.family(&family::REMOTE_REPLIES_LATE).value(&both, self.late.load(Ordering::Relaxed));
    }
}

fn read(words: &'static [&'static str], counters: &[AtomicU64]) -> impl Iterator<Item = (&'static str, u64)> {
    words.iter().zip(counters).map(|(word, count)| (*word, count.load(Ordering::Relaxed)))
}

fn bump(counter: Option<&AtomicU64>) {
    if let Some(counter) = counter {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_one_sample_with_its_own_word() {
        let (counters, breaker) = (Counters::default(), Breaker::default());
        counters.looked_up(Result::OtherVariant);
        counters.wrote(Write::Unconfirmed);
        counters.took(Duration::from_millis(3));
        counters.late();
        let mut out = Exposition::default();
        counters.expose("fragments", "m:11211", &breaker, 7, &mut out);
        let text = out.finish();
        let labels = "store=\"fragments\",server=\"m:11211\"";
        for sample in [
            format!("larder_remote_lookups_total{{{labels},result=\"other-variant\"}} 1"),
            format!("larder_remote_lookups_total{{{labels},result=\"found\"}} 0"),
            format!("larder_remote_lookup_seconds_count{{{labels}}} 1"),
            format!("larder_remote_writes_total{{{labels},result=\"unconfirmed\"}} 1"),
            format!("larder_remote_queue_bytes{{{labels}}} 7"),
            format!("larder_remote_server_up{{{labels}}} 1"),
            format!("larder_remote_breaker_opens_total{{{labels}}} 0"),
            format!("larder_remote_replies_late_total{{{labels}}} 1"),
        ] {
            assert!(text.contains(&format!("{sample}\n")), "{sample}:\n{text}");
        }
    }
}
