//! What a URL was before: why a request for it found nothing.
//!
//! In: what the [fates](larder_store::Fates) know of the URL. Out: a word for the log, the metrics and `larder explain`, with the reason
//! where its last response was not stored.

use std::time::Duration;

use larder_observe::Label;
use larder_store::{CacheKey, Fate, Fates};

use crate::not_stored::NotStored;

/// What became of the URL that is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nothing is known of it: it was not asked for lately.
    New,
    /// Its response left memory for want of room.
    Evicted,
    /// Its response left memory because it was not asked for.
    Idle,
    /// It was purged.
    Purged,
    /// An unsafe request invalidated it.
    Invalidated,
    /// Its last response was not stored.
    NotStored(NotStored),
    /// It was stored, and what became of that is not known.
    Unknown,
}

impl Before {
    /// One of each word, in the order of [`Label::TOKENS`].
    pub(crate) const EACH: [Self; 7] = [
        Self::New,
        Self::Evicted,
        Self::Idle,
        Self::Purged,
        Self::Invalidated,
        Self::NotStored(NotStored::NoRoom),
        Self::Unknown,
    ];

    /// What is known of a URL at `now`, which is monotonic, and how long ago it happened, to the minute.
    pub(crate) fn of(fates: &Fates, key: &CacheKey, now: Duration) -> (Self, Option<Duration>) {
        fates.tell_time(now);
        match fates.of(key.hash(), now) {
            None => (Self::New, None),
            Some((fate, ago)) => (Self::from(fate), Some(ago)),
        }
    }

    /// Why its last response was not stored.
    pub(crate) fn not_stored(self) -> Option<NotStored> {
        match self {
            Self::NotStored(why) => Some(why),
            _ => None,
        }
    }

    /// In one sentence, for people.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::New => "it was not asked for lately",
            Self::Evicted => "a response was stored, and left memory for others: a larger store keeps it",
            Self::Idle => "a response was stored, and left memory because nothing asked for it",
            Self::Purged => "a purge took out what was stored",
            Self::Invalidated => "an unsafe request, such as a POST, took out what was stored",
            Self::NotStored(_) => "its last response was not stored",
            Self::Unknown => "a response was stored, and it is not known what became of it",
        }
    }
}

impl From<Fate> for Before {
    fn from(fate: Fate) -> Self {
        match fate {
            Fate::Stored => Self::Unknown,
            Fate::Evicted => Self::Evicted,
            Fate::Idle => Self::Idle,
            Fate::Purged => Self::Purged,
            Fate::Invalidated => Self::Invalidated,
            Fate::NotStored(reason) => match NotStored::ALL.get(usize::from(reason)) {
                Some(why) => Self::NotStored(*why),
                None => Self::Unknown,
            },
        }
    }
}

impl Label for Before {
    const NAME: &'static str = "before";
    const TOKENS: &'static [&'static str] =
        &["new", "evicted", "idle", "purged", "invalidated", "not-stored", "unknown"];

    fn index(&self) -> usize {
        match self {
            Self::New => 0,
            Self::Evicted => 1,
            Self::Idle => 2,
            Self::Purged => 3,
            Self::Invalidated => 4,
            Self::NotStored(_) => 5,
            Self::Unknown => 6,
        }
    }
}

impl NotStored {
    /// What becomes of a URL whose response is not stored.
    pub(crate) fn fate(self) -> Fate {
        const { assert!(Self::ALL.len() < 250) };
        Fate::NotStored(u8::try_from(self.index()).unwrap_or(u8::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_comes_back_and_each_word_is_its_own() {
        for why in NotStored::ALL {
            assert_eq!(Before::from(why.fate()), Before::NotStored(why));
        }
        let fates = [Fate::Stored, Fate::Evicted, Fate::Idle, Fate::Purged, Fate::Invalidated];
        let mut words: Vec<_> = fates.map(|fate| Before::from(fate).token()).to_vec();
        words.extend([Before::New.token(), Before::NotStored(NotStored::NoRoom).token()]);
        words.sort_unstable();
        let mut all = Before::TOKENS.to_vec();
        all.sort_unstable();
        assert_eq!(words, all);
    }
}
