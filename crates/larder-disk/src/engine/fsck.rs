//! Looking at every byte of a disk that no larder has open.
//!
//! In: a folder. Out: what is there and what is damaged, and where. Nothing is changed, but the lock is taken, so that
//! the two cannot meet. Files are judged as opening the disk judges them, so that what is sound here is opened without
//! a finding; what a crash leaves in the middle of making a file is no damage in either. Beyond that, records are read
//! although there is a table, and the table is compared with them.

use std::path::{Path, PathBuf};

use super::error::DiskError;
use super::files::{segment_path, toc_path};
use super::finding::Finding;
use super::format::Whose;
use super::format::journal::{JOURNAL_BYTES_MAX, JOURNAL_HEAD_BYTES, JournalHead, read_entries};
use super::format::record::Kind;
use super::format::segment::{SEGMENT_HEAD_BYTES, SegmentHead};
use super::format::superblock::{SUPERBLOCK_BYTES, Superblock};
use super::format::toc::{Toc, TocEntry};
use super::journal;
use super::recover::folder::Folder;
use super::segment::read_toc;
use super::sys;
use super::walk::{self, Walked};

/// What is on a disk. Objects that were replaced or invalidated count as long as their segment is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The disk's identity; `None` where it cannot be read.
    pub disk: Option<u64>,
    /// Segments that were read.
    pub segments: u64,
    /// Records that are in order.
    pub objects: u64,
    /// Pieces that are in order.
    pub pieces: u64,
    /// Bytes of those records and pieces.
    pub bytes: u64,
    /// Entries of the journal.
    pub journal_entries: u64,
    /// Damaged records and pieces: file and offset.
    pub damaged: Vec<(PathBuf, u64)>,
    /// Everything else that is not as it should be.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing is damaged.
    pub fn is_sound(&self) -> bool {
        let is_harmless = |finding: &Finding| matches!(finding, Finding::Foreign(_));
        self.disk.is_some() && self.damaged.is_empty() && self.findings.iter().all(is_harmless)
    }
}

/// Reads everything in the folder of a disk, calling `progress` with segments done and in all. Waits for the disk; not for
/// an event loop.
///
/// # Errors
/// Where the folder or its identity cannot be opened, or a larder has it open.
pub fn fsck(path: &Path, mut progress: impl FnMut(u64, u64)) -> Result<Report, DiskError> {
    let name = path.join("larder");
    let lock = sys::open(&name).map_err(DiskError::io("cannot open", &name))?;
    if !sys::lock(&lock).map_err(DiskError::io("cannot lock", &name))? {
        return Err(DiskError::InUse(path.to_owned()));
    }
    let mut report = Report::default();
    let bytes =
        sys::read_up_to(&lock, 2 * SUPERBLOCK_BYTES, 0).map_err(DiskError::io("cannot read", &name))?;
    let superblock = Superblock::read(&bytes);
    report.disk = superblock.map(|superblock| superblock.disk);
    if report.disk.is_none() {
        report.findings.push(Finding::NewIdentity);
    }
    let folder = Folder::look(path, &mut report.findings).map_err(DiskError::io("cannot list", path))?;
    let all = folder.segments.len() as u64;
    for (done, id) in (0..).zip(folder.segments.keys()) {
        progress(done, all);
        let file = segment_path(path, *id);
        if let Err(error) = report.read_segment(path, &file, *id) {
            report.findings.push(Finding::Unreadable { path: file, why: error.to_string() });
        }
    }
    progress(all, all);
    let mut has_journal = false;
    for number in folder.journals.keys() {
        let file = journal::path(path, *number);
        match report.read_journal(&file, *number) {
            Ok(is_one) => has_journal |= is_one,
            Err(error) => {
                report.findings.push(Finding::Unreadable { path: file, why: error.to_string() });
                has_journal = true;
            }
        }
    }
    if !has_journal && all > 0 {
        report.findings.push(Finding::NoJournal);
    }
    Ok(report)
}

impl Report {
    fn read_segment(&mut self, folder: &Path, path: &Path, id: u32) -> std::io::Result<()> {
        let file = sys::open(path)?;
        let head = sys::read_up_to(&file, SEGMENT_HEAD_BYTES, 0)?;
        match SegmentHead::judge(&head, self.disk, id) {
            Whose::Ours => {}
            Whose::Unwritten => return Ok(()),
            Whose::Damaged => self.damaged.push((path.to_owned(), 0)),
            Whose::OtherDisk => self.findings.push(Finding::OtherDisk(path.to_owned())),
            Whose::Foreign => self.findings.push(Finding::Foreign(path.to_owned())),
        }
        let own = SegmentHead::read(&head).filter(|head| self.disk.is_none_or(|disk| disk == head.disk));
        let Some(SegmentHead { disk, .. }) = own.filter(|head| head.segment == id) else { return Ok(()) };
        self.segments += 1;
        let walked = walk::walk(&file, disk, id, true)?;
        for entry in &walked.entries {
            match entry.kind {
                Kind::Piece => self.pieces += 1,
                Kind::Inline | Kind::Listing => self.objects += 1,
            }
            self.bytes += u64::from(entry.length);
        }
        self.damaged.extend(walked.damaged.iter().map(|offset| (path.to_owned(), *offset)));
        let is_right = match read_toc(folder, disk, id) {
            Ok(toc) => toc.is_some_and(|toc| names_what_is_there(&toc, &walked)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(error),
        };
        if !is_right {
            self.findings.push(Finding::DamagedTable(toc_path(folder, id)));
        }
        Ok(())
    }

    /// Says whether there is anything that was one.
    fn read_journal(&mut self, path: &Path, number: u32) -> std::io::Result<bool> {
        let file = sys::open(path)?;
        let length = sys::metadata(&file)?.len().min(JOURNAL_BYTES_MAX);
        let bytes = sys::read_up_to(&file, usize::try_from(length).unwrap_or(usize::MAX), 0)?;
        let is_ours = match JournalHead::judge(&bytes, self.disk, number) {
            Whose::Unwritten => return Ok(false),
            whose => whose == Whose::Ours,
        };
        let read = read_entries(bytes.get(JOURNAL_HEAD_BYTES..).unwrap_or_default());
        self.journal_entries += read.entries.len() as u64;
        if !is_ours || read.lost_up_to.is_some() {
            self.findings.push(Finding::DamagedJournal(path.to_owned()));
        }
        Ok(true)
    }
}

/// Whether all that a table names lies in its segment. What is damaged there is told by itself; what lies there and is
/// in no table was never finished.
fn names_what_is_there(toc: &Toc, walked: &Walked) -> bool {
    let is_there = |entry: &TocEntry| {
        let place = walked.entries.binary_search_by_key(&entry.offset, |there| there.offset);
        let there = place.ok().and_then(|place| walked.entries.get(place));
        there == Some(&TocEntry { is_dead: false, ..*entry })
    };
    !walked.damaged.is_empty() || toc.entries.iter().all(is_there)
}
