//! Why a store of files cannot be opened, and why it does not take a response.

use std::path::PathBuf;

use super::name::Unnameable;
use super::refusals::NotFiled;

/// Why a directory cannot be a store.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The directory cannot be made, opened or written to.
    #[error("{}: {step}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another larder has it open.
    #[error("{}: in use by another larder", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The file system does not tell upper from lower case, so that two URIs would share a file.
    #[error("{}: the file system does not tell upper from lower case", path.display())]
    CaseInsensitive {
        /// The directory.
        path: PathBuf,
    },
    /// No such URI can have a file.
    #[error("no file can stand for this URI")]
    Unnameable(#[from] Unnameable),
    /// It is not there, or cannot be used, and is looked for.
    #[error("{}: the directory is absent", path.display())]
    Absent {
        /// The directory.
        path: PathBuf,
    },
    /// Its journal cannot be written at the moment; larder tries on.
    #[error("{}: the journal cannot be written", path.display())]
    NotWritten {
        /// The directory.
        path: PathBuf,
    },
    /// The writing thread did not get to it in time.
    #[error("the disk is too slow")]
    TooSlow,
}

/// Why a plain file cannot stand for a response. A decision, not a failure: it is served and not stored here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotAFile {
    /// A file is served as 200.
    Status,
    /// Other servers would show its markup.
    Template,
    /// It answers other requests differently.
    Varies,
    /// Its key has parts that a name does not show: cookies, fields, the content of a QUERY.
    KeyParts,
    /// What lies in the file would not be what its type says.
    Encoded,
    /// It has to be validated before every use, or lives no time at all, and nothing in a file says so.
    NotShareable,
    /// Its fields are more than fits beside a file.
    LargeHead,
    /// Its URI has no name.
    Unnameable(Unnameable),
}

impl NotAFile {
    /// What it is counted as.
    pub const fn reason(self) -> NotFiled {
        match self {
            Self::Status => NotFiled::Status,
            Self::Template => NotFiled::Template,
            Self::Varies => NotFiled::Varies,
            Self::KeyParts => NotFiled::KeyParts,
            Self::Encoded => NotFiled::Encoded,
            Self::NotShareable => NotFiled::NotShareable,
            Self::LargeHead => NotFiled::LargeHead,
            Self::Unnameable(_) => NotFiled::Name,
        }
    }

    /// The fixed word for logs and metrics.
    pub const fn token(self) -> &'static str {
        self.reason().token()
    }
}

/// Why a response was not stored after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// Its URI has no name.
    Unnameable(Unnameable),
    /// The body is larger than `max_object`, or than was declared.
    TooLarge,
    /// No room can be made under the caps.
    NoRoom,
    /// The files that are there have not been counted yet.
    Counting,
    /// What waits to be written is as much as may wait.
    QueueFull,
    /// A file that somebody put there has the name, or stands where a directory would be.
    InTheWay,
    /// An invalidation came meanwhile.
    Invalidated,
    /// The file that was to get new meta is not there any more, or somebody has changed it; or what has the name came later.
    Changed,
    /// The body broke off, or was shorter than declared.
    Incomplete,
    /// The file system fails, or has failed a moment ago.
    Failing,
    /// The directory is not there, or cannot be used.
    Absent,
    /// The store is closing.
    Closed,
}

impl Refused {
    /// What it is counted as.
    pub const fn reason(self) -> NotFiled {
        match self {
            Self::Unnameable(_) => NotFiled::Name,
            Self::TooLarge => NotFiled::TooLarge,
            Self::NoRoom => NotFiled::NoRoom,
            Self::Counting => NotFiled::Counting,
            Self::QueueFull => NotFiled::QueueFull,
            Self::InTheWay => NotFiled::InTheWay,
            Self::Invalidated => NotFiled::Invalidated,
            Self::Changed => NotFiled::Changed,
            Self::Incomplete => NotFiled::Incomplete,
            Self::Failing => NotFiled::Failing,
            Self::Absent => NotFiled::Absent,
            Self::Closed => NotFiled::Closed,
        }
    }

    /// The fixed word for logs and metrics.
    pub const fn token(self) -> &'static str {
        self.reason().token()
    }
}
