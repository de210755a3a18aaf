//! Room on the disk: bytes and inodes, both reserved before they are used.
//!
//! In: two caps. Out: claims, which give back on drop what they took. A file's claim is held by the index and by
//! everybody who has the file open, as the disk itself gives its blocks back only when the last of them lets go. What others
//! have written is claimed as well, whether it fits or not: then there is no room for anything else.

use std::sync::Arc;

use super::sys::Status;
use larder_tier::budget::{Budget, Reservation};

/// What a directory takes, in bytes, beside its names.
pub(super) const DIRECTORY_BYTES: u64 = 4096;
/// What an attribute or a file of its own with the meta takes at most, usually, in bytes.
pub(super) const META_BYTES: u64 = 4096;
/// What a name takes in its directory beside its own length, in bytes.
const NAME_BYTES: u64 = 64;

/// The caps of one store.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) bytes: Arc<Budget>,
    pub(super) inodes: Arc<Budget>,
}

/// The right to some bytes and inodes; to none by default.
#[derive(Debug, Default)]
pub(super) struct Claim(Option<(Reservation, Reservation)>);

impl Room {
    pub(super) fn new(bytes: u64, inodes: u64) -> Self {
        Self { bytes: Budget::new(bytes), inodes: Budget::new(inodes) }
    }

    /// Room for both, or for neither.
    pub(super) fn reserve(&self, bytes: u64, inodes: u64) -> Option<Claim> {
        Some(Claim(Some((self.bytes.reserve(bytes)?, self.inodes.reserve(inodes)?))))
    }

    /// A claim on what is there already.
    pub(super) fn take(&self, bytes: u64, inodes: u64) -> Claim {
        Claim(Some((self.bytes.take(bytes), self.inodes.take(inodes))))
    }
}

impl Claim {
    pub(super) fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |(bytes, _)| bytes.bytes())
    }

    pub(super) fn absorb(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Some((bytes, inodes)), Some((more_bytes, more_inodes))) => {
                bytes.absorb(more_bytes);
                inodes.absorb(more_inodes);
            }
            (mine @ None, other) => *mine = other,
            (Some(_), None) => {}
        }
    }

    pub(super) fn shrink_to(&mut self, to_bytes: u64, to_inodes: u64) {
        if let Some((bytes, inodes)) = &mut self.0 {
            bytes.shrink_to(to_bytes);
            inodes.shrink_to(to_inodes);
        }
    }
}

/// What a body of `length` bytes is expected to take under a name of so many bytes, with its meta.
pub(super) fn expected(length: u64, name_len: usize) -> u64 {
    length.next_multiple_of(4096) + META_BYTES + name_bytes(name_len)
}

/// What meta of so many bytes takes in a file of its own.
pub(super) fn beside_bytes(lines: usize) -> u64 {
    (lines as u64).next_multiple_of(META_BYTES)
}

/// What a file takes that is there.
pub(super) fn taken(status: &Status, name_len: usize) -> u64 {
    status.allocated + name_bytes(name_len)
}

pub(super) fn name_bytes(name_len: usize) -> u64 {
    name_len as u64 + NAME_BYTES
}
