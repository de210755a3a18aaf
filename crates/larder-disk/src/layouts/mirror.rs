//! Which of two versions of a response counts, where the disks of a mirror do not have the same.
//!
//! In: a key. Out: nothing; afterwards no two disks have different versions of what lies under it. That they have is the work
//! of a crash: one had the newer version already, the other had not. Both are what the origin once said, but who has seen
//! the newer must not see the older again. So at the first look for it after a start the records are compared, and the older
//! one goes. What was written since the start went to all disks at once, and needs no look: the indexes know which is which.

use std::sync::Arc;

use bytes::Bytes;

use super::{DiskCandidate, Disks, Layout};
use crate::engine::{FoundContent, FoundRecord, ReadError};
use larder_tier::CacheKey;

/// What tells versions apart, the newest last. Where two came within a millisecond it is all the same which of them stays, as
/// long as it is always the same one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    number: u64,
    stored_at_ms: u64,
    head: Bytes,
    content_bytes: u64,
    content: Bytes,
}

impl Version {
    fn of(found: FoundRecord) -> Self {
        let (number, stored_at_ms, content_bytes) = (found.number, found.stored_at.0, found.content_bytes());
        let content = match found.content {
            FoundContent::Inline(content) => content,
            FoundContent::Pieces(_) => Bytes::new(),
        };
        Self { number, stored_at_ms, head: found.head, content_bytes, content }
    }
}

impl Disks {
    /// Of what lies under `key` the newest version of each response stays. Where a disk is too busy to tell, that is left to the
    /// next look.
    ///
    /// # Cancel safety
    /// Dropped, nothing has gone that had to stay.
    pub(crate) async fn settle_versions(self: &Arc<Self>, key: &CacheKey) {
        if self.layout != Layout::Mirror {
            return;
        }
        let candidates = self.candidates(key);
        let disk = |candidate: &DiskCandidate| self.disk(candidate.disk);
        let is_compared =
            |one: &DiskCandidate| disk(one).is_none_or(|disk| disk.is_compared(&one.at, one.place));
        if candidates.iter().all(is_compared) {
            return;
        }
        let mut versions = Vec::new();
        for candidate in &candidates {
            match self.read(candidate).await {
                Ok(found) if found.is_of(key) => {
                    versions.push((candidate, found.identity, Version::of(found)));
                }
                Err(ReadError::Busy) => return,
                // Of another key, or one that whoever reads it will do away with.
                Ok(_) | Err(_) => {}
            }
        }
        for (candidate, identity, version) in &versions {
            let is_newer = |(_, other, newer): &(_, u64, Version)| other == identity && newer > version;
            match disk(candidate) {
                Some(disk) if versions.iter().any(is_newer) => disk.remove(&candidate.at, candidate.place),
                Some(disk) => disk.note_compared(&candidate.at, candidate.place),
                None => {}
            }
        }
    }
}
