//! Tables of segments, and journal compaction: the journal is made short by writing what it says into the tables.
//!
//! The index knows what is alive. A table is written when its segment is full; what dies afterwards is in the journal
//! until the journal is compacted. Then the tables of all segments in which something died are written anew. The
//! journal keeps only the names of those segments, the notes that are needed, and the highest number. The names are
//! needed because the dead in a segment without its table would be alive again. Which notes are needed is for those who made them to
//! say ([`larder_tier::note::Needed`]). Where notes were lost, one takes their place that stands for everything before them.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Writer;
use super::batch::Open;
use crate::engine::address::Location;
use crate::engine::address::Owner;
use crate::engine::files::toc_path;
use crate::engine::format::journal::JournalEntry;
use crate::engine::format::record::Kind;
use crate::engine::format::toc::{Toc, TocEntry, toc_bytes};
use crate::engine::journal::{Journal, JournalFiles};
use crate::engine::segment::{Segment, read_toc};
use crate::engine::space::blocks;
use crate::engine::state::DiskState;
use crate::engine::sys::{self, Existing};
use crate::engine::walk;

/// Until the journal is compacted again where it went wrong.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Notes may take one of so many parts of a disk.
const NOTES_SHARE: u64 = 16;
/// And this much in any case.
const NOTES_BYTES_MIN: u64 = 8 << 20;

impl TocEntry {
    /// Where the record is.
    pub(in crate::engine) fn place(&self, segment: u32) -> Location {
        Location::written(segment, self.offset.into(), self.object_bytes)
    }

    /// Whose it is, if it is a piece on the disk `own`.
    pub(in crate::engine) fn owner(&self, own: u64) -> Owner {
        let disk = if self.object_bytes == 0 { own } else { self.object_bytes };
        Owner { disk, base: self.base }
    }

    pub(in crate::engine) fn is_record(&self) -> bool {
        self.kind != Kind::Piece
    }
}

impl Writer {
    /// Makes the journal short.
    pub(in crate::engine) fn compact(&mut self) {
        self.flush();
        // The journal will name the dead of the open segment in place of what it says now, and they cover what lies before them. After
        // a crash of the machine they do so only where they are there.
        self.sync_open();
        if self.open.as_ref().is_some_and(|open| open.is_in_doubt) {
            // Its table says from now on what it had, and is synced apart.
            self.seal();
            self.compaction_after = Instant::now() + AGAIN_AFTER;
            return;
        }
        if let Err(error) = self.shared.compact(self.open.as_ref()) {
            self.compaction_after = Instant::now() + AGAIN_AFTER;
            match error.kind() {
                io::ErrorKind::StorageFull => {
                    self.give_up_oldest();
                    self.graves.clear();
                }
                _ => self.shared.health.failed("cannot take stock of the journal", &error),
            }
        }
    }
}

impl DiskState {
    fn compact(&self, open: Option<&Open>) -> io::Result<()> {
        let (old, had_lost) = self.journal.turn(&self.space, &self.health)?;
        self.compact_from(old, open, had_lost)
    }

    fn compact_from(&self, old: JournalFiles, open: Option<&Open>, had_lost: bool) -> io::Result<()> {
        let mut keep = Vec::new();
        // The open segment has no table yet: its dead are named one by one.
        if let Some(open) = open {
            let places = open.entries.iter().filter(|entry| entry.is_record());
            let places = places.map(|entry| (entry.base, entry.place(open.segment.id)));
            let dead = places.filter(|(base, place)| !self.index.holds(*base, *place));
            keep.extend(dead.map(|(_, place)| JournalEntry::Removed { place: place.0 }));
        }
        let all = self.segments.all();
        for segment in all.iter().filter(|segment| segment.is_sealed.load(Ordering::Relaxed)) {
            if segment.is_toc_stale.load(Ordering::Acquire) {
                match self.entries_of(segment) {
                    Ok(entries) => self.write_toc(segment, entries, segment.end.load(Ordering::Acquire))?,
                    Err(_) => self.disown(segment)?,
                }
            }
            if segment.needs_toc.load(Ordering::Acquire) {
                keep.push(JournalEntry::NeedsToc { segment: segment.id });
            }
        }
        let (mut noted, mut has_lost) = (Vec::new(), had_lost);
        for (file, length) in old {
            let (entries, is_short) = Journal::read(&file, length)?;
            has_lost |= is_short;
            noted.extend(entries.into_iter().filter_map(|entry| match entry {
                JournalEntry::Note(note) => Some(note),
                _ => None,
            }));
        }
        let lost = if has_lost { self.highest.load(Ordering::Acquire) } else { 0 };
        let notes_bytes = (self.space.figures().1 / NOTES_SHARE).max(NOTES_BYTES_MIN);
        let needed = self.stock.needed(noted, lost, usize::try_from(notes_bytes).unwrap_or(usize::MAX));
        keep.extend(needed.into_iter().map(JournalEntry::Note));
        keep.push(JournalEntry::Reached {
            number: self.highest.load(Ordering::Relaxed),
            segment: self.last_segment.load(Ordering::Relaxed),
        });
        self.journal.drop_old(keep, &self.space, &self.health)
    }

    /// Removes the table of a segment that cannot be read: which of it are dead cannot be written down, so nothing in it is
    /// believed at the next start.
    fn disown(&self, segment: &Segment) -> io::Result<()> {
        let removed = sys::remove(&toc_path(&self.settings.path, segment.id));
        removed.or_else(|error| (error.kind() == io::ErrorKind::NotFound).then_some(()).ok_or(error))?;
        segment.has_toc.store(false, Ordering::Relaxed);
        segment.note_death();
        Ok(())
    }

    /// What lies in a segment: by its table, else by walking through it.
    pub(in crate::engine) fn entries_of(&self, segment: &Segment) -> io::Result<Vec<TocEntry>> {
        if segment.has_toc.load(Ordering::Relaxed)
            && let Ok(Some(toc)) = read_toc(&self.settings.path, self.superblock.disk, segment.id)
        {
            return Ok(toc.entries);
        }
        let walked = walk::walk(&*segment.file.get()?, self.superblock.disk, segment.id, false)?;
        Ok(walked.entries)
    }

    /// Writes the table of a segment that is full, and gives back what it did not need.
    pub(in crate::engine) fn finish_segment(
        &self,
        segment: &Segment,
        entries: Vec<TocEntry>,
        end: u64,
    ) -> io::Result<()> {
        segment.end.store(end, Ordering::Release);
        sys::set_length(&*segment.file.get()?, blocks(end))?;
        let needed = blocks(end) + blocks(toc_bytes(entries.len()));
        let mut room = segment.room.lock();
        if let Some(missing) = needed.checked_sub(room.bytes()).filter(|missing| *missing > 0) {
            // One that was open at a crash has room for itself, and none for a table.
            room.absorb(self.space.reserve(missing).ok_or(io::ErrorKind::StorageFull)?);
        }
        room.shrink_to(needed);
        drop(room);
        self.put_toc(segment, entries, end)
    }

    /// The same for one that has a table: for a moment there are two.
    fn write_toc(&self, segment: &Segment, entries: Vec<TocEntry>, end: u64) -> io::Result<()> {
        let room = self.space.reserve(toc_bytes(entries.len())).ok_or(io::ErrorKind::StorageFull)?;
        let had_toc = segment.has_toc.load(Ordering::Relaxed);
        self.put_toc(segment, entries, end)?;
        if !had_toc {
            // A segment from before a crash, which held room for itself only.
            segment.room.lock().absorb(room);
        }
        Ok(())
    }

    fn put_toc(&self, segment: &Segment, mut entries: Vec<TocEntry>, end: u64) -> io::Result<()> {
        // Before the index is asked: what dies meanwhile makes the table out of date again.
        segment.is_toc_stale.store(false, Ordering::SeqCst);
        for entry in entries.iter_mut().filter(|entry| entry.is_record()) {
            entry.is_dead |= !self.index.holds(entry.base, entry.place(segment.id));
        }
        let toc = Toc { disk: self.superblock.disk, segment: segment.id, end, entries };
        let written = self.replace_toc(segment.id, &toc.write());
        match &written {
            Ok(()) => segment.has_toc.store(true, Ordering::Relaxed),
            Err(_) => segment.is_toc_stale.store(true, Ordering::SeqCst),
        }
        written
    }

    /// Puts a table into the place of another at once: there is always a whole one.
    fn replace_toc(&self, segment: u32, bytes: &[u8]) -> io::Result<()> {
        let path = toc_path(&self.settings.path, segment);
        let fresh: PathBuf = path.with_extension("toc.new");
        let result = sys::make(&fresh, Existing::Emptied).and_then(|file| {
            sys::write_at(&file, bytes, 0)?;
            sys::sync(&file)?;
            sys::rename(&fresh, &path)
        });
        if result.is_err() {
            // Half a table would take room that nobody counts.
            let _ = sys::remove(&fresh);
        }
        result
    }
}
