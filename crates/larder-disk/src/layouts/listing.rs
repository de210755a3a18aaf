//! What lies on the disks a page at a time, and all that lies there under one URL.
//!
//! In: where the last page ended. Out: keys and heads, each response once however many copies it has, and where the next
//! page begins. The order is that of the disks' indexes, which means nothing. Each record's head is read, so everything
//! here waits for the disks; a page reads a bounded number of records, and gives way to clients before each.
//! A disk that fails at the moment, or is absent, is passed over.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use larder_tier::cursor::NoCursor;
use smallvec::SmallVec;

use super::slot::DiskSlot;
use super::{DiskCandidate, Disks};
use crate::engine::{self, Disk, RecordHead};
use larder_tier::CacheKey;

/// Where a listing of disks goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DisksCursor {
    pub(crate) disk: usize,
    pub(crate) from: Option<engine::DiskCursor>,
}

impl DisksCursor {
    /// Stands before its text in a store's listing.
    pub(crate) const LETTER: char = 'd';
}

impl fmt::Display for DisksCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            None => write!(f, "{:x}", self.disk),
            Some(from) => write!(f, "{:x}-{from}", self.disk),
        }
    }
}

impl FromStr for DisksCursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (disk, from) = match text.split_once('-') {
            Some((disk, from)) => (disk, Some(from.parse()?)),
            None => (text, None),
        };
        Ok(Self { disk: usize::from_str_radix(disk, 16).map_err(|_| NoCursor)?, from })
    }
}

/// A response on a disk.
#[derive(Debug)]
pub(crate) struct ListedRecord {
    pub(crate) key: CacheKey,
    pub(crate) record: RecordHead,
    pub(crate) at: DiskCandidate,
}

/// A page of what lies there.
#[derive(Debug, Default)]
pub(crate) struct RecordPage {
    pub(crate) kept: Vec<ListedRecord>,
    /// Records whose head could not be read.
    pub(crate) unreadable: u64,
    /// Disks that are left alone, and records that cannot be read at this moment.
    pub(crate) unseen: u64,
    pub(crate) next: Option<DisksCursor>,
}

impl Disks {
    /// The next responses, out of at most `records_max` records of one disk, whose key's base is `wanted`.
    pub(crate) fn page(
        &self,
        from: DisksCursor,
        records_max: usize,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> RecordPage {
        let mut page = RecordPage::default();
        let working = self.disk(from.disk).filter(|disk| !disk.is_left_alone());
        let listing = working.map(|disk| disk.list(from.from, records_max)).unwrap_or_default();
        for (disk, place) in listing.places.into_iter().filter_map(|place| Some((working?, place))) {
            disk.give_way();
            match disk.read_head(place) {
                Ok(record) if wanted(&record.base) => {
                    let key = CacheKey::of_levels(&record.base, &record.variant);
                    // A copy on a disk that was looked through before.
                    let before = self.slots.iter().take(from.disk).filter_map(DiskSlot::disk);
                    if holders(before, &key, record.identity).all(|disk| disk.is_left_alone()) {
                        let at = DiskCandidate { disk: from.disk, at: disk.address(&key), place };
                        page.kept.push(ListedRecord { key, record, at });
                    }
                }
                Ok(_) | Err(engine::ReadError::Gone) => {}
                Err(_) => page.unreadable += 1,
            }
        }
        page.next = self.behind(from, listing.next);
        page
    }

    /// The next records, at most `records_max`, copies among them; for a walk that must miss nothing.
    pub(crate) fn every_page(&self, from: DisksCursor, records_max: usize) -> RecordPage {
        let mut page = RecordPage::default();
        let working = self.disk(from.disk).filter(|disk| !disk.is_left_alone());
        // One that is absent may come back with its records: they were not met.
        page.unseen += u64::from(working.is_none());
        let listing = working.map(|disk| disk.list_all(from.from, records_max)).unwrap_or_default();
        for (disk, place) in listing.places.into_iter().filter_map(|place| Some((working?, place))) {
            disk.give_way();
            match disk.read_head(place) {
                Ok(record) => {
                    let key = CacheKey::of_levels(&record.base, &record.variant);
                    let at = DiskCandidate { disk: from.disk, at: disk.address(&key), place };
                    page.kept.push(ListedRecord { key, record, at });
                }
                // Where it was written elsewhere, it is met there.
                Err(engine::ReadError::Gone) => {}
                // Of no use to anybody.
                Err(engine::ReadError::Damaged) => page.unreadable += 1,
                Err(engine::ReadError::Failed(_) | engine::ReadError::Busy) => page.unseen += 1,
            }
        }
        page.next = self.behind(from, listing.next);
        page
    }

    /// Where a walk goes on that has come to `next` on a disk.
    fn behind(&self, from: DisksCursor, next: Option<engine::DiskCursor>) -> Option<DisksCursor> {
        let next_disk = (from.disk + 1 < self.slots.len()).then_some(from.disk + 1);
        match next {
            Some(next) => Some(DisksCursor { from: Some(next), ..from }),
            None => next_disk.map(|disk| DisksCursor { disk, from: None }),
        }
    }

    /// Everything under the base of `key`, whatever its variant.
    pub(crate) fn under(&self, key: &CacheKey) -> Vec<ListedRecord> {
        let mut found: Vec<ListedRecord> = Vec::new();
        let present = self.slots.iter().enumerate().filter_map(|(index, slot)| Some((index, slot.disk()?)));
        for (index, disk) in present {
            let at = disk.address(key);
            for place in disk.find_base(&at) {
                let Ok(record) = disk.read_head(place) else { continue };
                let own = CacheKey::of_levels(&record.base, &record.variant);
                let is_copy =
                    |other: &ListedRecord| other.key == own && other.record.identity == record.identity;
                // Another base may hide behind the same hash.
                if own.base() == key.base() && !found.iter().any(is_copy) {
                    let at = DiskCandidate { disk: index, at: disk.address(&own), place };
                    found.push(ListedRecord { key: own, record, at });
                }
            }
        }
        found
    }

    /// Whether a listing of the disks meets the response of this identity.
    pub(crate) fn lists(&self, key: &CacheKey, identity: u64) -> bool {
        holders(self.disks(), key, identity).any(|disk| !disk.is_left_alone())
    }

    /// The disks that have the response of this identity, by their folders.
    pub(crate) fn folders_of(&self, key: &CacheKey, identity: u64) -> SmallVec<[PathBuf; 2]> {
        holders(self.disks(), key, identity).map(|disk| disk.path().to_owned()).collect()
    }
}

fn holders<'a>(
    disks: impl Iterator<Item = &'a std::sync::Arc<Disk>>,
    key: &CacheKey,
    identity: u64,
) -> impl Iterator<Item = &'a std::sync::Arc<Disk>> {
    disks.filter(move |disk| disk.holds_identity(&disk.address(key), identity))
}
