//! What a disk is opened with, and what follows from its size alone.
//!
//! In: a folder and how much of its file system larder may take. Out: the size of a segment. Segments of a
//! sixty-fourth of the disk lose little when the oldest is given up. Below 4 MiB there would be more files than use
//! in them. Above 64 MiB giving one up would take too long, unless the disk is so large that there would be thousands
//! of open files.

use std::path::PathBuf;
use std::time::Duration;

use super::handles::{FilesMax, OTHERS};
use super::sys;
use larder_tier::descriptors::Wanted;

/// The smallest segment.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;
/// The smallest segment where the disk is not a tiny one.
const SEGMENT_BYTES_USUAL_MIN: u64 = 4 << 20;
/// The largest segment, up to so many of them.
const SEGMENT_BYTES_USUAL_MAX: u64 = 64 << 20;
/// Segments that are held open; a disk that would have more of them gets larger ones.
const SEGMENTS_MAX: u64 = 1024;
/// A place has 27 bits for an eighth of an offset.
pub(super) const SEGMENT_BYTES_MAX: u64 = 1 << 30;
/// A log that reuses its oldest part needs a few parts.
const SEGMENTS_MIN: u64 = 8;
/// The smallest size a disk can be given, in bytes: eight segments of 1 MiB, their tables, and a journal.
pub const DISK_BYTES_MIN: u64 = 10 << 20;

/// One disk: a folder, and how much may lie in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSettings {
    /// The folder; made where it is not there.
    pub path: PathBuf,
    /// The cap on everything in it.
    pub size: DiskSize,
    /// What nobody asked for during this time goes; counted from the start of larder where it was used before that.
    pub idle: Option<Duration>,
    /// How many files it may have open.
    pub files: FilesMax,
}

/// How much of a file system larder may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskSize {
    /// So many bytes.
    Bytes(u64),
    /// So many percent of all that the file system has.
    Percent(u8),
    /// All but so many bytes of what is free; looked at again before each new segment, since others write there too.
    LeaveFree(u64),
}

impl DiskSettings {
    /// Whether a disk was made in the folder before. May wait for it.
    pub(crate) fn is_made(&self) -> bool {
        sys::exists(&self.path.join("larder"))
    }

    /// How many files the disk has open where it may have as many as it likes: all its segments. As far as that is known before
    /// it is opened.
    pub fn files_wanted(&self) -> Wanted {
        let segments = match self.size {
            DiskSize::Bytes(bytes) => bytes / segment_bytes(bytes).unwrap_or(SEGMENT_BYTES_MIN).max(1),
            DiskSize::Percent(_) | DiskSize::LeaveFree(_) => SEGMENTS_MAX,
        };
        let most = usize::try_from(segments).unwrap_or(usize::MAX).saturating_add(OTHERS);
        Wanted { least: FilesMax::LEAST, most: most.max(FilesMax::LEAST) }
    }
}

/// The size of segments of a disk that may hold `size_bytes`; `None` where that is too little.
pub(super) fn segment_bytes(size_bytes: u64) -> Option<u64> {
    if size_bytes < DISK_BYTES_MIN {
        return None;
    }
    let floor = |bytes: u64| 1 << bytes.max(1).ilog2();
    let usual = floor(size_bytes / 64).clamp(SEGMENT_BYTES_USUAL_MIN, SEGMENT_BYTES_USUAL_MAX);
    let at_least = (size_bytes / SEGMENTS_MAX).next_power_of_two().min(SEGMENT_BYTES_MAX);
    // A table may take an eighth of its segment while that is open.
    let at_most = floor(size_bytes / SEGMENTS_MIN * 8 / 10);
    Some(usual.max(at_least).min(at_most).max(SEGMENT_BYTES_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_a_sixty_fourth_within_bounds_and_eight_of_them_fit() {
        const MIB: u64 = 1 << 20;
        let cases = [
            (10 * MIB, Some(MIB)),
            (16 * MIB, Some(MIB)),
            (64 * MIB, Some(4 * MIB)),
            (1024 * MIB, Some(16 * MIB)),
            (40 * 1024 * MIB, Some(64 * MIB)),
            (1024 * 1024 * MIB, Some(1024 * MIB)),
            (u64::MAX, Some(1024 * MIB)),
            (10 * MIB - 1, None),
        ];
        for (size, segment) in cases {
            assert_eq!(segment_bytes(size), segment, "{size}");
        }
    }
}
