//! What files are in a disk's folder.
//!
//! Only names and sizes. Names that larder would not give are somebody else's, and stay; temporary files are left over from
//! a crash, and go.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::engine::address::SEGMENT_MAX;
use crate::engine::files::{remove_files, toc_path};
use crate::engine::finding::Finding;
use crate::engine::format::journal::JOURNAL_BYTES_MAX;
use crate::engine::format::toc::ENTRY_BYTES;
use crate::engine::settings::SEGMENT_BYTES_MAX;
use crate::engine::space::{Space, blocks, toc_bytes_max};
use crate::engine::sys;

/// What a segment takes, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct SegmentFiles {
    /// Allocated, not its length.
    pub(in crate::engine) segment_bytes: u64,
    /// Its table's length.
    pub(in crate::engine) toc_bytes: u64,
    /// Entries that its table may have: no more than there are bytes for on the disk, however long the file is.
    pub(in crate::engine) objects_likely: usize,
}

/// Segments and journals by their numbers.
#[derive(Debug, Default)]
pub(in crate::engine) struct Folder {
    pub(in crate::engine) segments: BTreeMap<u32, SegmentFiles>,
    pub(in crate::engine) journals: BTreeMap<u32, u64>,
    /// The highest number of any file with a segment's name.
    pub(in crate::engine) last_segment: u32,
    /// Everything, in bytes.
    pub(in crate::engine) own_bytes: u64,
    /// What a crash left over.
    left_over: Vec<PathBuf>,
}

impl Folder {
    /// Lists a folder that is being opened, and removes what a crash left over.
    pub(in crate::engine) fn list(path: &Path, findings: &mut Vec<Finding>) -> io::Result<Self> {
        let folder = Self::look(path, findings)?;
        folder.left_over.iter().try_for_each(|path| sys::remove(path))?;
        Ok(folder)
    }

    /// Lists a folder.
    pub(in crate::engine) fn look(path: &Path, findings: &mut Vec<Finding>) -> io::Result<Self> {
        let mut folder = Self::default();
        let mut tables = BTreeMap::new();
        for entry in sys::entries(path)? {
            let (entry, metadata) = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name == "larder" {
                continue;
            }
            let parts = name.split_once('.');
            let number = parts.and_then(|(number, _)| number_of(number));
            match (number, parts.map(|(_, kind)| kind), metadata.is_file()) {
                (Some(id), Some("seg"), true) => {
                    let segment_bytes = metadata.blocks().saturating_mul(512);
                    folder.segments.insert(id, SegmentFiles { segment_bytes, ..SegmentFiles::default() });
                    folder.last_segment = folder.last_segment.max(id);
                }
                (Some(id), Some("toc"), true) => {
                    let length = metadata.len().min(toc_bytes_max(SEGMENT_BYTES_MAX));
                    tables.insert(id, (length, length.min(metadata.blocks().saturating_mul(512))));
                }
                (Some(id), Some("journal"), true) => {
                    folder.journals.insert(id, metadata.len().min(JOURNAL_BYTES_MAX));
                }
                (Some(_), Some("toc.new" | "journal.new"), true) => folder.left_over.push(entry.path()),
                _ => findings.push(Finding::Foreign(entry.path())),
            }
        }
        for (id, (toc_bytes, allocated)) in tables {
            match folder.segments.get_mut(&id) {
                Some(files) => {
                    files.toc_bytes = toc_bytes;
                    files.objects_likely = usize::try_from(allocated).unwrap_or(0) / ENTRY_BYTES;
                }
                // Of a segment that is gone.
                None => folder.left_over.push(toc_path(path, id)),
            }
        }
        let segments = folder.segments.values().map(|files| files.segment_bytes + blocks(files.toc_bytes));
        let journals = folder.journals.values().map(|length| blocks(*length));
        folder.own_bytes = segments.chain(journals).sum();
        Ok(folder)
    }

    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.journals.is_empty()
    }

    /// Gives everything stored up. What cannot be removed is not read either.
    pub(in crate::engine) fn remove_segments(&mut self, path: &Path) {
        for id in std::mem::take(&mut self.segments).into_keys() {
            let _ = remove_files(path, id);
        }
    }

    /// Gives up the oldest segments until the rest fits under the cap.
    pub(in crate::engine) fn fit(&mut self, path: &Path, space: &Space) {
        let wanted = |folder: &Self| -> u64 { folder.segments.values().map(SegmentFiles::own_bytes).sum() };
        while wanted(self) > space.free()
            && let Some((id, _)) = self.segments.pop_first()
        {
            let _ = remove_files(path, id);
        }
    }
}

/// The number that larder writes like this; others are not its files.
fn number_of(name: &str) -> Option<u32> {
    let number = u32::from_str_radix(name, 16).ok()?;
    (number <= SEGMENT_MAX && format!("{number:08x}") == name).then_some(number)
}
