//! What the journal says, read once when a disk is opened.
//!
//! In: the files of all generations. Out: who is dead by it, the notes, and a journal to go on with. A tail that was torn is
//! cut off: nobody was told that it is durable. An entry that is missing in the middle may have named anything with a
//! smaller number, so all that is given up; a missing journal, everything.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::folder::Folder;
use crate::engine::address::Location;
use crate::engine::finding::Finding;
use crate::engine::format::Whose;
use crate::engine::format::journal::{
    JOURNAL_BYTES_MAX, JOURNAL_HEAD_BYTES, JournalEntry, JournalHead, read_entries,
};
use crate::engine::journal::{Generation, Journal, create, path};
use crate::engine::space::Space;
use crate::engine::sys;
use larder_tier::note::{self, Note};

/// What the journal says.
pub(in crate::engine) struct Replay {
    pub(in crate::engine) journal: Journal,
    /// By base: records with smaller numbers are dead.
    invalidated: HashMap<u64, u64>,
    pub(in crate::engine) removed: HashSet<Location>,
    pub(in crate::engine) needs_toc: HashSet<u32>,
    pub(in crate::engine) notes: Vec<Note>,
    pub(in crate::engine) highest: u64,
    pub(in crate::engine) last_segment: u32,
    /// Records with smaller numbers are not believed.
    floor: u64,
    /// No record is believed.
    pub(in crate::engine) forget_all: bool,
}

/// One generation that could be read.
struct Readable {
    number: u32,
    file: File,
    length: u64,
    entries: Vec<JournalEntry>,
    lost_up_to: Option<u64>,
}

impl Replay {
    /// Whether a record is dead by the journal.
    pub(in crate::engine) fn kills(&self, base: u64, number: u64) -> bool {
        let is_older = |newer: &u64| number < *newer;
        number < self.floor
            || (!self.invalidated.is_empty() && self.invalidated.get(&base).is_some_and(is_older))
    }

    /// Whether the record at a place was taken out.
    pub(in crate::engine) fn removes(&self, place: Location) -> bool {
        !self.removed.is_empty() && self.removed.contains(&place)
    }

    /// Reads all generations in `folder`; those of another disk, or of an earlier life of this one, go.
    pub(in crate::engine) fn read(
        folder: &Path,
        disk: u64,
        files: &Folder,
        space: &Space,
        is_new: bool,
        findings: &mut Vec<Finding>,
    ) -> io::Result<Self> {
        let (mut read, mut is_damaged) = (Vec::new(), false);
        for number in files.journals.keys() {
            match read_generation(folder, disk, *number, is_new)? {
                One::Readable(one) => read.push(one),
                One::Nothing => sys::remove(&path(folder, *number))?,
                One::Damaged => {
                    findings.push(Finding::DamagedJournal(path(folder, *number)));
                    sys::remove(&path(folder, *number))?;
                    is_damaged = true;
                }
            }
        }
        if read.is_empty() && !is_damaged && !is_new && !files.segments.is_empty() {
            findings.push(Finding::NoJournal);
        }
        let mut replay = Self {
            journal: Journal::new(
                folder,
                disk,
                create_or_take(folder, disk, &mut read, files, space)?,
                space,
            ),
            invalidated: HashMap::new(),
            removed: HashSet::new(),
            needs_toc: HashSet::new(),
            notes: Vec::new(),
            highest: 0,
            last_segment: 0,
            floor: 0,
            forget_all: is_damaged || is_new || read.is_empty(),
        };
        let mut has_holes = false;
        for one in read {
            if let Some(lost_up_to) = one.lost_up_to {
                findings.push(Finding::DamagedJournal(path(folder, one.number)));
                replay.floor = replay.floor.max(lost_up_to);
                has_holes = true;
            }
            one.entries.into_iter().for_each(|entry| replay.note(entry));
        }
        if has_holes {
            replay.floor = replay.floor.max(replay.highest);
            replay.journal.note_lost();
        }
        replay.notes = note::needed(std::mem::take(&mut replay.notes));
        Ok(replay)
    }

    fn note(&mut self, entry: JournalEntry) {
        self.highest = self.highest.max(entry.number());
        match entry {
            JournalEntry::Invalidated { base, number } => {
                let newest = self.invalidated.entry(base).or_insert(number);
                *newest = number.max(*newest);
            }
            JournalEntry::Removed { place } => {
                let place = Location(place);
                self.last_segment = self.last_segment.max(place.segment());
                self.removed.insert(place);
            }
            JournalEntry::Note(note) => self.notes.push(note),
            JournalEntry::NeedsToc { segment } => {
                self.last_segment = self.last_segment.max(segment);
                self.needs_toc.insert(segment);
            }
            JournalEntry::Reached { segment, .. } => self.last_segment = self.last_segment.max(segment),
        }
    }
}

enum One {
    Readable(Readable),
    /// Never finished, or of an earlier life.
    Nothing,
    Damaged,
}

fn read_generation(folder: &Path, disk: u64, number: u32, is_new: bool) -> io::Result<One> {
    if is_new {
        return Ok(One::Nothing);
    }
    let file = sys::open_to_change(&path(folder, number))?;
    let length = sys::metadata(&file)?.len().min(JOURNAL_BYTES_MAX);
    let bytes = sys::read_up_to(&file, usize::try_from(length).unwrap_or(usize::MAX), 0)?;
    match JournalHead::judge(&bytes, Some(disk), number) {
        Whose::Ours => {}
        Whose::Unwritten => return Ok(One::Nothing),
        Whose::OtherDisk | Whose::Damaged | Whose::Foreign => return Ok(One::Damaged),
    }
    let read = read_entries(bytes.get(JOURNAL_HEAD_BYTES..).unwrap_or_default());
    let end = (JOURNAL_HEAD_BYTES + read.end) as u64;
    sys::set_length(&file, end)?;
    Ok(One::Readable(Readable {
        number,
        file,
        length: end,
        entries: read.entries,
        lost_up_to: read.lost_up_to,
    }))
}

/// The generation to go on in, and those before it.
fn create_or_take(
    folder: &Path,
    disk: u64,
    read: &mut [Readable],
    files: &Folder,
    space: &Space,
) -> io::Result<(Generation, Vec<Generation>)> {
    let mut generations = Vec::new();
    for one in read.iter() {
        let room = space.take_over(one.length).ok_or(io::ErrorKind::StorageFull)?;
        let file = Arc::new(one.file.try_clone()?);
        generations.push(Generation { number: one.number, file, room, length: one.length, is_synced: false });
    }
    match generations.pop() {
        Some(now) => Ok((now, generations)),
        None => {
            let number = files.journals.keys().last().map_or(1, |last| last.saturating_add(1));
            Ok((create(folder, disk, number, space)?, generations))
        }
    }
}
