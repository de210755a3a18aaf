//! What a member asks of the shared log, and what it is answered.
//!
//! In and out: values. Each call is one atomic step at the server: a script in Redis. Reading may wait for entries before that step.
//! The caller sees to it that the server is the one that all members agree on, at the time of the answer or later: a majority
//! of Sentinels or of a cluster says so. An answer of any other server is a failure of the call.

use std::sync::Arc;
use std::time::Duration;

/// One life of the log. Drawn at random: two lives never have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u128);

/// One run of a member. Drawn at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u128);

/// The name of a purge. Drawn at random by the member that appends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u128);

/// How far a log was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Which log.
    pub epoch: Epoch,
    /// The number of the last entry that was applied; 0 before the first.
    pub sequence: u64,
}

/// The last entry that a member has applied. The name tells whether the server has the same entry there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its number; 0 before the first.
    pub sequence: u64,
    /// Its name; none before the first, and where the log was entered in its middle.
    pub id: Option<EntryId>,
}

/// A purge in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<W> {
    /// Counted from 1 in each epoch, without gaps.
    pub sequence: u64,
    /// Its name.
    pub id: EntryId,
    /// Who has appended it.
    pub by: Incarnation,
    /// What it purges.
    pub what: W,
}

/// A member, as the server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which run of it.
    pub incarnation: Incarnation,
    /// What its operator calls it.
    pub name: Arc<str>,
    /// How often it has renewed its lease.
    pub beat: u64,
    /// How long it uses what it has without hearing from the server. `None`: for ever.
    pub lease: Option<Duration>,
    /// The number of the last entry that it has applied.
    pub applied: u64,
}

/// What is asked of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogCall<W> {
    /// Makes the caller a member, and takes the place of a former run with the same name. Begins the epoch `fresh` where there is
    /// none, where the server is another one than the epoch's, or where it has lost the entry that the caller stands at.
    Attach {
        /// The epoch that begins, if one does.
        fresh: Epoch,
        /// The caller's name.
        name: Arc<str>,
        /// The caller.
        incarnation: Incarnation,
        /// The caller's lease.
        lease: Option<Duration>,
        /// Where the caller stands, if it was a member before.
        from: Option<(Epoch, Place)>,
    },
    /// Renews the caller's lease, and says how far it has applied the log.
    Renew {
        /// The epoch that the caller belongs to.
        epoch: Epoch,
        /// The caller.
        incarnation: Incarnation,
        /// How far it has applied the log.
        applied: Place,
        /// The epoch is old enough: nobody has a lease still from before it.
        settles: bool,
    },
    /// Appends purges.
    Append {
        /// The epoch that the caller belongs to.
        epoch: Epoch,
        /// The caller.
        incarnation: Incarnation,
        /// How far it has applied the log.
        applied: Place,
        /// The purges.
        purges: Vec<(EntryId, W)>,
    },
    /// Reads what follows an entry.
    Read {
        /// The epoch that the caller belongs to.
        epoch: Epoch,
        /// The number of the last entry that it has.
        after: u64,
    },
    /// Takes away a member that has not renewed its lease since this beat, and cannot have it any more.
    Expire {
        /// The epoch that the caller belongs to.
        epoch: Epoch,
        /// Who is taken away.
        incarnation: Incarnation,
        /// Its last beat that the caller has seen. Another one: it stays.
        beat: u64,
    },
    /// Takes the caller away.
    Leave {
        /// The epoch that the caller belongs to.
        epoch: Epoch,
        /// The caller.
        incarnation: Incarnation,
    },
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogReply<W> {
    /// To [`LogCall::Attach`].
    Attached {
        /// The epoch, which may be the fresh one.
        epoch: Epoch,
        /// The number of the last entry.
        last: u64,
        /// The number of the last entry that is not kept any more.
        floor: u64,
        /// A member has said that nobody has a lease still from before this epoch.
        is_settled: bool,
        /// All members, the caller among them.
        rows: Vec<Row>,
    },
    /// To [`LogCall::Renew`] and [`LogCall::Expire`].
    Rows {
        /// The number of the last entry.
        last: u64,
        /// All members.
        rows: Vec<Row>,
    },
    /// To [`LogCall::Append`].
    Appended {
        /// The number of the first of them; the others follow.
        first: u64,
        /// All members.
        rows: Vec<Row>,
    },
    /// To [`LogCall::Read`].
    Entries {
        /// The number of the last entry that is not kept any more.
        floor: u64,
        /// What follows, in order; none where nothing does.
        entries: Vec<Entry<W>>,
    },
    /// To [`LogCall::Leave`].
    Left,
    /// To any call but [`LogCall::Attach`].
    Lost(Lost),
}

/// Why a call came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The epoch is another one, or none, or belongs to another server.
    Epoch,
    /// The server does not have the entry at which the caller stands.
    Entry,
    /// The caller is no member any more.
    Member,
}
