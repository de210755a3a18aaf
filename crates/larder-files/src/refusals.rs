//! Why responses are not plain files: every reason, and a counter for each.
//!
//! In: decisions, each once per response. Out: the figures, by the words that stand in logs too. Two kinds stand side by
//! side: what a file cannot stand for is kept in memory; what could not be written was served and not stored.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why a response did not become a file, in one word: the reasons of [`NotAFile`](super::NotAFile) and of
/// [`Refused`](super::Refused). A name that is not possible is one of either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotFiled {
    /// A file is served as 200.
    Status,
    /// It is a template.
    Template,
    /// It answers other requests differently.
    Varies,
    /// Its key has parts that a name does not show.
    KeyParts,
    /// It has a content coding.
    Encoded,
    /// It has to be validated before every use.
    NotShareable,
    /// Its fields are more than fits beside a file.
    LargeHead,
    /// Its URI has no name.
    Name,
    /// The body is too large.
    TooLarge,
    /// No room can be made.
    NoRoom,
    /// The files that are there have not been counted yet.
    Counting,
    /// As much waits as may.
    QueueFull,
    /// The name is taken by what people put there.
    InTheWay,
    /// An invalidation came meanwhile.
    Invalidated,
    /// The file is another one by now.
    Changed,
    /// The body broke off.
    Incomplete,
    /// The file system fails.
    Failing,
    /// The directory is not there.
    Absent,
    /// The store is closing.
    Closed,
}

impl NotFiled {
    /// Every reason, in the order in which they are shown: each at its own number.
    pub const ALL: [Self; 19] = [
        Self::Status,
        Self::Template,
        Self::Varies,
        Self::KeyParts,
        Self::Encoded,
        Self::NotShareable,
        Self::LargeHead,
        Self::Name,
        Self::TooLarge,
        Self::NoRoom,
        Self::Counting,
        Self::QueueFull,
        Self::InTheWay,
        Self::Invalidated,
        Self::Changed,
        Self::Incomplete,
        Self::Failing,
        Self::Absent,
        Self::Closed,
    ];

    /// The fixed word for logs and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Template => "template",
            Self::Varies => "varies",
            Self::KeyParts => "key-parts",
            Self::Encoded => "encoded",
            Self::NotShareable => "not-shareable",
            Self::LargeHead => "large-head",
            Self::Name => "name",
            Self::TooLarge => "too-large",
            Self::NoRoom => "no-room",
            Self::Counting => "counting",
            Self::QueueFull => "queue-full",
            Self::InTheWay => "in-the-way",
            Self::Invalidated => "invalidated",
            Self::Changed => "changed",
            Self::Incomplete => "incomplete",
            Self::Failing => "failing",
            Self::Absent => "absent",
            Self::Closed => "closed",
        }
    }

    /// Whether memory keeps the response instead: no file can stand for it.
    pub const fn is_kept_in_memory(self) -> bool {
        matches!(
            self,
            Self::Status
                | Self::Template
                | Self::Varies
                | Self::KeyParts
                | Self::Encoded
                | Self::NotShareable
                | Self::LargeHead
                | Self::Name
        )
    }
}

#[derive(Debug, Default)]
pub(super) struct Refusals([AtomicU64; NotFiled::ALL.len()]);

impl Refusals {
    /// Counts one.
    pub(super) fn note(&self, reason: NotFiled) {
        if let Some(count) = self.0.get(reason as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All of them, in the order of [`NotFiled::ALL`].
    pub(super) fn counts(&self) -> [u64; NotFiled::ALL.len()] {
        std::array::from_fn(|reason| self.0.get(reason).map_or(0, |count| count.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word_and_a_counter_of_its_own() {
        let refusals = Refusals::default();
        let mut words: Vec<&str> = NotFiled::ALL.iter().map(|reason| reason.token()).collect();
        for (number, reason) in NotFiled::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number, "{reason:?}");
            (0..=number).for_each(|_| refusals.note(reason));
        }
        let expected: [u64; NotFiled::ALL.len()] = std::array::from_fn(|number| number as u64 + 1);
        assert_eq!(refusals.counts(), expected);
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), NotFiled::ALL.len());
    }
}
