//! What was found on a disk that was not as it should be.

use std::path::PathBuf;

/// Something that was not as it should be, and what was done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A file that larder did not write; left alone.
    Foreign(PathBuf),
    /// The file that says who the disk is was damaged or missing: everything in the folder was given up.
    NewIdentity,
    /// A segment of another disk, or of this one's earlier life; removed.
    OtherDisk(PathBuf),
    /// A table that cannot be read; the segment was walked through instead.
    DamagedTable(PathBuf),
    /// A segment in which something is damaged.
    DamagedSegment {
        /// Its file.
        path: PathBuf,
        /// Records and pieces that were skipped.
        places: usize,
    },
    /// The journal was damaged: what is older than what it lost was given up.
    DamagedJournal(PathBuf),
    /// The journal was missing: everything stored was given up.
    NoJournal,
    /// A file that could not be opened or read.
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Foreign(path) => write!(f, "{} is not larder's; left alone", path.display()),
            Self::NewIdentity => write!(f, "the disk's identity was damaged or missing; it begins empty"),
            Self::OtherDisk(path) => write!(f, "{} belongs to another disk; removed", path.display()),
            Self::DamagedTable(path) => write!(f, "{} is damaged; its segment was read", path.display()),
            Self::DamagedSegment { path, places } => {
                let places = if *places == 1 { "1 place".to_owned() } else { format!("{places} places") };
                write!(f, "{} is damaged at {places}; skipped", path.display())
            }
            Self::DamagedJournal(path) => {
                write!(f, "{} is damaged; what it may have invalidated was given up", path.display())
            }
            Self::NoJournal => write!(f, "the journal is missing; everything stored was given up"),
            Self::Unreadable { path, why } => write!(f, "cannot read {}: {why}", path.display()),
        }
    }
}
