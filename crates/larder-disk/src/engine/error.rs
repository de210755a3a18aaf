//! What can go wrong with a disk, told apart by who has to hear of it.
//!
//! [`DiskError`] is for the operator: a disk that cannot be opened, a purge that could not be made durable. [`Refused`] and
//! [`ReadError`] are for the one who stores or looks up: an outcome with its reason, of which a client never hears.

use std::io;
use std::path::PathBuf;

/// A disk that cannot be used as asked.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// A system call failed.
    #[error("{what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Another larder, or another store of this one, has it open.
    #[error("{} is in use by another larder", .0.display())]
    InUse(PathBuf),
    /// The folder holds a file called `larder` that is none.
    #[error("{} was not written by larder", .0.display())]
    NotOurs(PathBuf),
    /// Less than a disk needs.
    #[error("{} would hold {bytes} bytes; a disk needs {needed}", path.display())]
    TooSmall {
        /// The folder.
        path: PathBuf,
        /// What it was given, or what is free there.
        bytes: u64,
        /// The least.
        needed: u64,
    },
    /// The journal could not take what had to go into it.
    #[error("the journal of {} lacks entries", .0.display())]
    JournalLacks(PathBuf),
    /// The disk was closed meanwhile.
    #[error("{} was closed", .0.display())]
    Closed(PathBuf),
    /// The disk could not be opened so far.
    #[error("{} is absent", .0.display())]
    Absent(PathBuf),
}

impl DiskError {
    /// For `map_err`: the failure of `what` on `path`.
    pub(crate) fn io(what: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// Why something is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The disk does not keep up.
    QueueFull,
    /// There is no room, and none can be made.
    NoRoom,
    /// The disk fails, and is left alone for a while.
    Failing,
    /// Larger than what the disk takes as one record.
    TooLarge,
    /// A piece of it was lost.
    PieceLost,
    /// The disk is being closed.
    Closed,
}

impl Refused {
    /// The fixed word for logs and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::NoRoom => "no-room",
            Self::Failing => "failing",
            Self::TooLarge => "too-large",
            Self::PieceLost => "piece-lost",
            Self::Closed => "closed",
        }
    }
}

/// Why something cannot be read. The entry is worth nothing then: whoever meets this takes it out ([`Disk::remove`]).
///
/// [`Disk::remove`]: super::Disk::remove
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It was given up meanwhile.
    #[error("no longer on the disk")]
    Gone,
    /// What lies there is not what was written.
    #[error("damaged on the disk")]
    Damaged,
    /// The disk failed.
    #[error("the disk failed: {0}")]
    Failed(io::ErrorKind),
    /// Too many reads wait already; the entry may be good.
    #[error("too many reads are waiting")]
    Busy,
}

impl ReadError {
    /// Whether the entry is of no use any more.
    pub fn is_lasting(self) -> bool {
        self != Self::Busy
    }
}
