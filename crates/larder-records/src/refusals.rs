//! Records that were found and not used, and responses of which there is no record.
//!
//! In: why. Out: how often, by reason, and for people in a sentence.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use larder_tier::HeldBack;

/// Why a record is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is cut, or its checksum is wrong, or it is not of larder's making.
    Damaged,
    /// It has a format that this version does not read.
    Format,
    /// Another key has the same name.
    OtherKey,
    /// It is of another log, or of a time of which this larder has not read the log.
    Position,
    /// Its URL was removed here after it was fetched.
    Invalidated,
    /// A piece of its body is gone.
    Incomplete,
    /// The server's clock is not known yet.
    Clock,
    /// Too much is read at once.
    Busy,
}

impl Refusal {
    const ALL: [Self; 8] = [
        Self::Damaged,
        Self::Format,
        Self::OtherKey,
        Self::Position,
        Self::Invalidated,
        Self::Incomplete,
        Self::Clock,
        Self::Busy,
    ];

    pub(crate) const fn token(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Format => "format",
            Self::OtherKey => "other-key",
            Self::Position => "position",
            Self::Invalidated => "invalidated",
            Self::Incomplete => "incomplete",
            Self::Clock => "clock",
            Self::Busy => "busy",
        }
    }
}

impl Refusal {
    /// The same for people.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::Damaged => "It is cut, or its checksum is wrong, or no larder has written it.",
            Self::Format => "It has a format that this version of larder does not read.",
            Self::OtherKey => "It is of another URL: both have the same name there.",
            Self::Position => {
                "It is of another log of purges, or of a time of which this larder has not read the log."
            }
            Self::Invalidated => {
                "A purge or an unsafe request has named it since it was fetched, or it has ended."
            }
            Self::Incomplete => "A piece of its body is not there any more.",
            Self::Clock => "The clock of the server is not known yet, or was set back.",
            Self::Busy => "As much is read from Redis at once as may be.",
        }
    }
}

/// Why a response is not shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotShared {
    /// It is a part.
    Part,
    /// It is fresh for less than a second, or has to be validated before each use.
    Lifetime,
    /// It is longer than a record may be, or not all of it is in memory; or its head or its key is too long.
    Length,
    /// It is not known what its fetch may have missed.
    Position,
    /// There is no room for it in the queue, or the server fails.
    Queue,
}

impl NotShared {
    const ALL: [Self; 5] = [Self::Part, Self::Lifetime, Self::Length, Self::Position, Self::Queue];

    const fn token(self) -> &'static str {
        match self {
            Self::Part => "part",
            Self::Lifetime => "lifetime",
            Self::Length => "length",
            Self::Position => "position",
            Self::Queue => "queue",
        }
    }

    pub(crate) const fn held_back(self) -> HeldBack {
        let sentence = match self {
            Self::Part => "It is a part of a response: it is not shared with other larders.",
            Self::Lifetime => {
                "It is fresh for less than a second, or has to be validated before each use: it is not shared with other larders."
            }
            Self::Length => "It is longer than a record may be: it is not shared with other larders.",
            Self::Position => "This larder has no lease in its fleet: it is not shared with other larders.",
            Self::Queue => "The server takes no more at the moment: it is not shared with other larders.",
        };
        HeldBack { token: self.token(), sentence: Cow::Borrowed(sentence) }
    }
}

/// How often, by reason.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    refused: [AtomicU64; Refusal::ALL.len()],
    not_shared: [AtomicU64; NotShared::ALL.len()],
}

impl Refusals {
    pub(crate) fn note(&self, refusal: Refusal) {
        count(self.refused.get(refusal as usize));
    }

    pub(crate) fn note_not_shared(&self, why: NotShared) {
        count(self.not_shared.get(why as usize));
    }

    pub(crate) fn each(&self, mut visit: impl FnMut(&'static str, u64)) {
        for (refusal, counter) in Refusal::ALL.iter().zip(&self.refused) {
            visit(refusal.token(), counter.load(Ordering::Relaxed));
        }
    }

    pub(crate) fn each_not_shared(&self, mut visit: impl FnMut(&'static str, u64)) {
        for (why, counter) in NotShared::ALL.iter().zip(&self.not_shared) {
            visit(why.token(), counter.load(Ordering::Relaxed));
        }
    }
}

fn count(counter: Option<&AtomicU64>) {
    counter.into_iter().for_each(|counter| _ = counter.fetch_add(1, Ordering::Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_counter_of_its_own() {
        for (index, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal as usize, index);
        }
        for (index, why) in NotShared::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, index);
        }
    }
}
