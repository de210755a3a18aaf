//! What a store of plain files is made from.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use larder_tier::descriptors::Wanted;

/// What a store of files is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesSettings {
    /// The directory; made where it is missing.
    pub path: PathBuf,
    /// The cap, in bytes, on what all files take on the disk.
    pub size: u64,
    /// The cap on files and directories.
    pub inodes: u64,
    /// The permissions of files, 0o644 for instance; directories get what goes with that. No umask is applied.
    pub mode: u32,
    /// The type of a file that somebody put there and whose name shows none.
    pub default_type: Option<HeaderValue>,
    /// The largest body taken, in bytes.
    pub max_object: u64,
    /// How many files may be open: those that are kept so that a look-up costs one question to the file system, and those that
    /// are being written. See [`FilesSettings::WANTED`].
    pub open_files: usize,
    /// How many bytes of their content are kept, in memory.
    pub memory: u64,
    /// How often the directory is counted anew, for what others write into it.
    pub recount: Duration,
}

/// Files that are kept open where there are enough.
const KEPT_MAX: usize = 1024;
/// Bodies on their way into files at once, each with one open.
const FILLS_MAX: usize = 1024;
/// The directory, its lock, what a walk has open.
const OWN_FILES: usize = 16;

/// What of `files` are bodies on their way, and what is kept.
pub(super) fn shares(files: usize) -> (usize, usize) {
    let files = files.clamp(FilesSettings::WANTED.least, FilesSettings::WANTED.most) - OWN_FILES;
    let fills = (files / 2).min(FILLS_MAX);
    (fills, (files - fills).min(KEPT_MAX))
}

impl FilesSettings {
    /// How many files a store may have use for.
    pub const WANTED: Wanted = Wanted { least: OWN_FILES + 32, most: OWN_FILES + KEPT_MAX + FILLS_MAX };

    /// The usual settings for a directory and a cap in bytes.
    pub fn new(path: impl Into<PathBuf>, size: u64) -> Self {
        Self {
            path: path.into(),
            size,
            inodes: 1_000_000,
            mode: 0o644,
            default_type: None,
            max_object: size / 4,
            open_files: Self::WANTED.most,
            memory: 16 * 1024 * 1024,
            recount: Duration::from_secs(60),
        }
    }
}
