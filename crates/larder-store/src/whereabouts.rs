//! Where a stored response lies, and what keeps one from lying on a disk or in a file: for whoever explains.
//!
//! In: a key with a head, or with a response that was found. Out: directories, and reasons, which are the very values by
//! which it is decided elsewhere. Everything is looked up in memory, counts as no use and changes nothing.
//! Deliberately absent: what only the moment of storing tells, such as a full queue.

use std::path::{Path, PathBuf};

use larder_cache::StoredHead;
use smallvec::SmallVec;

use crate::disk;
use crate::disks::Disks;
use crate::files::{self, FileStore, NotAFile, TargetUri, may_hold};
use crate::key::CacheKey;
use crate::store::Store;
use crate::stored::StoredResponse;

/// Why a response is in memory alone although there is more behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// No plain file can stand for it.
    NotAFile(NotAFile),
    /// No file is written at the moment, so that it is not stored at all.
    Files(files::Refused),
    /// No disk that it is for takes anything at the moment.
    Disks(disk::Refused),
    /// It waits to be written.
    Queued,
    /// No disk has it: none took it when it came, or it went with what it lay in.
    NotTaken,
}

impl HeldBack {
    /// The fixed word.
    pub const fn token(self) -> &'static str {
        match self {
            Self::NotAFile(why) => why.token(),
            Self::Files(why) => why.token(),
            Self::Disks(why) => why.token(),
            Self::Queued => "queued",
            Self::NotTaken => "not-taken",
        }
    }
}

impl Store {
    /// The directories behind its memory.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        let disks = self.disks().into_iter().flat_map(|disks| disks.disks());
        disks.map(|disk| disk.path()).chain(self.files().map(|files| files.directory()))
    }

    /// The disks that have a response, by their directories.
    pub fn disks_of(&self, key: &CacheKey, response: &StoredResponse) -> SmallVec<[PathBuf; 2]> {
        self.disks().map(|disks| disks.folders_of(key, response.identity())).unwrap_or_default()
    }

    /// What would keep a response with this head from being written to the disks, or as a file. `None` where nothing would, and
    /// where there is memory only.
    pub fn would_hold_back(&self, key: &CacheKey, head: &StoredHead) -> Option<HeldBack> {
        if let Some(files) = self.files() {
            return not_a_file(key, head)
                .map(HeldBack::NotAFile)
                .or_else(|| FileStore::refuses(files).map(HeldBack::Files));
        }
        self.disks()?.refuses(key).map(HeldBack::Disks)
    }

    /// Why a response that was found in memory is there alone. `None` where it is not, and where there is memory only.
    pub fn holds_back(&self, key: &CacheKey, response: &StoredResponse) -> Option<HeldBack> {
        if self.files().is_some() {
            return Some(not_a_file(key, &response.head).map_or(HeldBack::Queued, HeldBack::NotAFile));
        }
        let disks = self.disks().filter(|_| self.disks_of(key, response).is_empty())?;
        let awaits = |disk: &std::sync::Arc<disk::Disk>| disk.awaits(&disk.address(key), response.identity());
        if disks.disks().any(awaits) {
            return Some(HeldBack::Queued);
        }
        Some(disks.refuses(key).map_or(HeldBack::NotTaken, HeldBack::Disks))
    }
}

fn not_a_file(key: &CacheKey, head: &StoredHead) -> Option<NotAFile> {
    may_hold(&TargetUri::of_key(key)?, head, key.has_more_parts()).err()
}

impl Disks {
    /// Why no disk would take anything under `key` at this moment.
    fn refuses(&self, key: &CacheKey) -> Option<disk::Refused> {
        let homes = self.homes(key);
        let mut why = Some(disk::Refused::Failing);
        for disk in homes.into_iter().filter_map(|home| self.disk(home)) {
            why = Some(disk.refuses()?);
        }
        why
    }
}

#[cfg(test)]
mod tests;
