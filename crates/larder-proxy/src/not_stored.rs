//! Why a response was not stored: one reason for `Cache-Status`, the log, the metric and `larder explain`.

use larder_cache::NotStorable;
use larder_observe::Label;
use larder_store::Loss;

/// Why a response was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotStored {
    /// A rule of caching forbids it.
    Rule(NotStorable),
    /// No room could be made.
    NoRoom,
    /// It was invalidated while it was fetched.
    Invalidated,
    /// A later one was stored while its body arrived.
    Superseded,
    /// It outgrew its room, or nobody was left, or it broke.
    Incomplete,
    /// Its URL has not been asked for often enough yet.
    MinUses,
    /// A HEAD caused the fetch, and nobody asked for so much content.
    Unread,
    /// What it was written to did not keep up.
    QueueFull,
    /// What it was written to failed.
    Failing,
}

/// How many reasons are rules of caching.
const RULES: usize = NotStorable::ALL.len();

impl NotStored {
    /// The reasons that are no rules, in the order in which they are shown.
    const OWN: [Self; 8] = [
        Self::NoRoom,
        Self::Invalidated,
        Self::Superseded,
        Self::Incomplete,
        Self::MinUses,
        Self::Unread,
        Self::QueueFull,
        Self::Failing,
    ];

    /// Every reason, each at its own number: the rules come first.
    pub(crate) const ALL: [Self; RULES + Self::OWN.len()] = {
        let mut all = [Self::NoRoom; RULES + Self::OWN.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = match index < RULES {
                true => Self::Rule(NotStorable::ALL[index]),
                false => Self::OWN[index - RULES],
            };
            index += 1;
        }
        all
    };

    /// For what its body was lost.
    pub(crate) fn of(loss: Loss) -> Self {
        match loss {
            Loss::NoRoom => Self::NoRoom,
            Loss::QueueFull => Self::QueueFull,
            Loss::Failing => Self::Failing,
        }
    }

    /// What a store's operator has to know of it; nothing where it is no store's doing.
    pub(crate) fn says_of_store(self) -> Option<&'static str> {
        match self {
            Self::QueueFull => Some(
                "what it is written to does not keep up, and nobody waits for that; larder_disk_refused_total counts \
                 the pieces, and what is there of it is completed by later requests where the origin answers ranges",
            ),
            Self::NoRoom => {
                Some("there is no room for it in the store's memory, or its body is larger than max_object")
            }
            Self::Failing => Some("what it is written to failed, or lost some of it"),
            Self::Rule(_)
            | Self::Invalidated
            | Self::Superseded
            | Self::Incomplete
            | Self::MinUses
            | Self::Unread => None,
        }
    }

    /// What is told of the last attempt.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::QueueFull => {
                "What it was written to did not keep up with the client: it was served, and not stored whole."
            }
            Self::NoRoom => "There was no room for it in the store, or it was larger than max_object.",
            Self::Failing => "What it was written to failed, or lost some of it.",
            Self::Invalidated => "It was invalidated while it was fetched.",
            Self::Superseded => "A later one was stored while its body arrived.",
            Self::Incomplete => "Its body did not come to its end, or nobody was left to read it.",
            Self::MinUses => "Its URL had not been asked for often enough.",
            Self::Unread => "A HEAD caused its fetch, and no client asked for so much content.",
            Self::Rule(_) => "A rule of caching forbade it.",
        }
    }

    /// The fixed word for Cache-Status, log and metric.
    pub(crate) const fn token(self) -> &'static str {
        match self {
            Self::Rule(reason) => reason.token(),
            Self::NoRoom => "no-room",
            Self::Invalidated => "invalidated",
            Self::Superseded => "superseded",
            Self::Incomplete => "incomplete",
            Self::MinUses => "min-uses",
            Self::Unread => "unread",
            Self::QueueFull => "queue-full",
            Self::Failing => "failing",
        }
    }
}

impl Label for NotStored {
    const NAME: &'static str = "reason";
    const TOKENS: &'static [&'static str] = &{
        let mut tokens = [""; NotStored::ALL.len()];
        let mut index = 0;
        while index < tokens.len() {
            tokens[index] = NotStored::ALL[index].token();
            index += 1;
        }
        tokens
    };

    fn index(&self) -> usize {
        match self {
            Self::Rule(reason) => *reason as usize,
            own => RULES + Self::OWN.iter().position(|known| known == own).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word_and_a_place_of_its_own() {
        for (number, reason) in NotStored::ALL.into_iter().enumerate() {
            assert_eq!((reason.index(), NotStored::TOKENS[number]), (number, reason.token()), "{reason:?}");
        }
        let mut words = NotStored::TOKENS.to_vec();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), NotStored::ALL.len());
    }
}
