//! Room on a disk: the cap as it is now, and the right to allocate under it.
//!
//! The cap is a [`Budget`] in bytes that every file holds its share of. It is looked at again before each new segment
//! where it depends on what others leave free. What a file takes is counted in whole blocks of the file system.

use std::fs::File;
use std::sync::Arc;

use super::settings::DiskSize;
use super::sys::{self, BLOCK_BYTES, file_system_room};
use larder_tier::budget::{Budget, Reservation};

/// What the folder itself and the superblock take, in bytes.
const FOLDER_BYTES: u64 = 4 * BLOCK_BYTES;
/// A table takes at most this part of its segment.
const TOC_SHARE: u64 = 8;

/// The cap and what is used of it.
#[derive(Debug)]
pub(super) struct Space {
    size: DiskSize,
    folder: File,
    budget: Arc<Budget>,
    _folder_room: Option<Reservation>,
}

/// What a file of so many bytes takes, in whole blocks.
pub(super) fn blocks(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES)
}

/// The room that a new segment of so many bytes needs, with that of the table it may get.
pub(super) fn segment_room(segment_bytes: u64) -> u64 {
    segment_bytes + segment_bytes / TOC_SHARE
}

/// The most bytes a segment's table may have.
pub(super) fn toc_bytes_max(segment_bytes: u64) -> u64 {
    segment_bytes / TOC_SHARE
}

/// The cap that `size` means on a file system where larder itself takes `own_bytes`.
pub(super) fn cap(size: DiskSize, folder: &File, own_bytes: u64) -> std::io::Result<u64> {
    Ok(match size {
        DiskSize::Bytes(bytes) => bytes,
        DiskSize::Percent(percent) => {
            let (all, _) = file_system_room(folder)?;
            all / 100 * u64::from(percent.min(100))
        }
        DiskSize::LeaveFree(left) => {
            let (_, free) = file_system_room(folder)?;
            own_bytes.saturating_add(free).saturating_sub(left)
        }
    })
}

impl Space {
    pub(super) fn new(size: DiskSize, folder: File, cap: u64) -> Self {
        let budget = Budget::new(cap);
        let _folder_room = budget.reserve(FOLDER_BYTES);
        Self { size, folder, budget, _folder_room }
    }

    /// Room for `bytes`, in whole blocks; `None` where the cap does not allow it.
    pub(super) fn reserve(&self, bytes: u64) -> Option<Reservation> {
        self.budget.reserve(blocks(bytes))
    }

    /// Room for what is on the disk already, even above the cap: it is given up afterwards.
    pub(super) fn take_over(&self, bytes: u64) -> Option<Reservation> {
        Some(self.budget.take(blocks(bytes)))
    }

    /// Looks at the file system again, where the cap depends on it.
    pub(super) fn look_again(&self) {
        if let DiskSize::Bytes(_) = self.size {
            return;
        }
        if let Ok(cap) = cap(self.size, &self.folder, self.budget.used()) {
            self.budget.resize(cap);
        }
    }

    /// Bytes used above the cap, which may have gone down.
    pub(super) fn excess(&self) -> u64 {
        self.budget.used().saturating_sub(self.budget.cap())
    }

    /// Bytes free under the cap.
    pub(super) fn free(&self) -> u64 {
        self.budget.cap().saturating_sub(self.budget.used())
    }

    /// Used, cap and high water, in bytes.
    pub(super) fn figures(&self) -> (u64, u64, u64) {
        (self.budget.used(), self.budget.cap(), self.budget.high_water())
    }

    /// Makes the folder's entries durable.
    pub(super) fn sync_folder(&self) -> std::io::Result<()> {
        sys::sync_all(&self.folder)
    }
}
