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

impl NotStored {
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
    pub(crate) fn token(self) -> &'static str {
        NotStoredLabel(self).token()
    }
}

pub(crate) struct NotStoredLabel(pub(crate) NotStored);

impl Label for NotStoredLabel {
    const NAME: &'static str = "reason";
    const TOKENS: &'static [&'static str] = &{
        let mut tokens = ["no-room"; NotStorable::ALL.len() + 8];
        let mut index = 0;
        while index < NotStorable::ALL.len() {
            tokens[index] = NotStorable::ALL[index].token();
            index += 1;
        }
        tokens[index + 1] = "invalidated";
        tokens[index + 2] = "superseded";
        tokens[index + 3] = "incomplete";
        tokens[index + 4] = "min-uses";
        tokens[index + 5] = "unread";
        tokens[index + 6] = "queue-full";
        tokens[index + 7] = "failing";
        tokens
    };

    fn index(&self) -> usize {
        let rules = NotStorable::ALL.len();
        match self.0 {
            NotStored::Rule(reason) => reason as usize,
            NotStored::NoRoom => rules,
            NotStored::Invalidated => rules + 1,
            NotStored::Superseded => rules + 2,
            NotStored::Incomplete => rules + 3,
            NotStored::MinUses => rules + 4,
            NotStored::Unread => rules + 5,
            NotStored::QueueFull => rules + 6,
            NotStored::Failing => rules + 7,
        }
    }
}
