//! What has become of a purge.

use std::sync::Arc;
use std::time::Duration;

use crate::EntryId;

/// How a member stands to a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It has applied the purge.
    Applied,
    /// It has left, or its lease is over: it uses nothing that it has not asked for.
    Away,
    /// It is not known to have applied the purge, and may use old copies for so long. `None`: without an end.
    Silent {
        /// Until its lease is over at the latest.
        left: Option<Duration>,
    },
}

/// What has become of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPurge {
    /// The purge.
    pub id: EntryId,
    /// It stands in the log, and the others were looked at since. Else it is known here alone, and any member may use old copies.
    pub is_shared: bool,
    /// Whether all members are known that may have copies. Not for the time of a lease after the log began anew: a member of a log
    /// that this one never saw may hang meanwhile. Until then no purge is complete.
    pub knows_all: bool,
    /// The other members by name, in its order.
    pub members: Vec<(Arc<str>, MemberState)>,
}
