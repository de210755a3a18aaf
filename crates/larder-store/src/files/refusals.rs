//! Why responses are not plain files: a counter for each reason.
//!
//! In: decisions, each once per response. Out: the figures, by the words that the reasons have elsewhere. Two kinds stand side
//! by side: what a file cannot stand for is kept in memory; what could not be written was served and not stored.

use std::sync::atomic::{AtomicU64, Ordering};

/// The reasons of [`NotAFile`](super::NotAFile) and of [`Refused`](super::Refused); a name that is not possible is the same in both.
pub(super) const REASONS: [&str; 17] = [
    "status",
    "varies",
    "key-parts",
    "encoded",
    "not-shareable",
    "name",
    "too-large",
    "no-room",
    "counting",
    "queue-full",
    "in-the-way",
    "invalidated",
    "changed",
    "incomplete",
    "failing",
    "absent",
    "closed",
];

#[derive(Debug, Default)]
pub(super) struct Refusals([AtomicU64; REASONS.len()]);

impl Refusals {
    /// Counts one.
    pub(super) fn note(&self, token: &str) {
        let reasons = REASONS.iter().zip(&self.0);
        for (_, count) in reasons.filter(|(reason, _)| **reason == token) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All of them, in the order of [`REASONS`].
    pub(super) fn counts(&self) -> [u64; REASONS.len()] {
        std::array::from_fn(|reason| self.0.get(reason).map_or(0, |count| count.load(Ordering::Relaxed)))
    }
}
