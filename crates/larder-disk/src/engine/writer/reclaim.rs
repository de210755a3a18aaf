//! Making room: the oldest segment is given up, and what was in use since it was written is written again.
//!
//! Begun when fewer than two more segments would fit, and done a little after each batch, so that storing goes on meanwhile.
//! At most half of a segment's bytes get another life; where room is needed at once, nothing does. A large object
//! lies in several segments and lives or goes as a whole, when the first of them is given up; one that lies on several
//! disks moves disk by disk ([`super::moves`]).
//!
//! Always the oldest: of two records of one identity the later counts, and as the later is never given up before the earlier,
//! what was replaced cannot come back.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Writer;
use super::batch::Parts;
use super::giving_up::{Moves, Reclaim};
use crate::engine::address::Location;
use crate::engine::address::Owner;
use crate::engine::files::remove_files;
use crate::engine::format::record::PieceRef;
use crate::engine::format::record::{HEADER_BYTES, Header, Kind, Record, read_pieces, write_pieces};
use crate::engine::format::toc::TocEntry;
use crate::engine::object::INLINE_BYTES_MAX;
use crate::engine::reads::Waiting;
use crate::engine::segment::Segment;
use crate::engine::space::segment_room;
use crate::engine::state::DiskState;
use crate::engine::sys;

/// Segments that should fit beside the open one.
const FREE_SEGMENTS: u64 = 2;
/// Bytes of the segment that are gone through after each batch. Twice what a batch writes: so it is done in time.
const STEP_BYTES: u64 = 4 << 20;
/// Of all segments, the part that may be empty before the oldest goes although something in it is alive.
const EMPTY_SHARE: usize = 4;

impl Writer {
    /// Begins to give up the oldest segment if little room is left.
    pub(super) fn begin_reclaim(&mut self) {
        let wanted = FREE_SEGMENTS * segment_room(self.shared.segment_bytes);
        if self.reclaim.is_none() && self.shared.space.free() + self.graves.bytes() < wanted {
            self.reclaim_oldest();
        }
    }

    fn reclaim_oldest(&mut self) {
        let Some(segment) = self.shared.segments.oldest() else { return };
        if segment.has_others_pieces.load(Ordering::Relaxed) && !self.shared.has_neighbours() {
            // The other disks are still being opened.
            return;
        }
        match self.shared.entries_of(&segment) {
            Ok(entries) => {
                let (allowance, met) = (self.shared.segment_bytes / 2, HashSet::new());
                let moves = Moves::default();
                self.reclaim = Some(Reclaim { segment, entries, next: 0, allowance, met, moves });
            }
            Err(error) => {
                self.give_up_unread(&segment, &error);
            }
        }
    }

    /// Goes on with giving up a segment.
    pub(super) fn reclaim_a_little(&mut self) {
        self.graves.clear();
        let Some(mut reclaim) = self.reclaim.take() else { return self.begin_reclaim() };
        let (mut seen, failures) = (0, self.failures);
        let shared = Arc::clone(&self.shared);
        let own = shared.superblock.disk;
        while let Some(entry) = reclaim.entries.get(reclaim.next).copied() {
            if seen >= STEP_BYTES {
                self.flush();
                self.list_moved(&mut reclaim.moves, failures);
                self.reclaim = Some(reclaim);
                return;
            }
            reclaim.next += 1;
            seen += u64::from(entry.length);
            if entry.is_record() {
                let place = entry.place(reclaim.segment.id);
                self.rescue(&mut reclaim, &shared, entry.base, place);
            } else if reclaim.met.insert(entry.owner(own))
                && let Some(home) = shared.disk(entry.owner(own).disk)
            {
                for place in home.owners_of(entry.base, (own, reclaim.segment.id)) {
                    self.rescue(&mut reclaim, &home, entry.base, place);
                }
            }
        }
        self.flush();
        self.list_moved(&mut reclaim.moves, failures);
        if self.await_moves(&mut reclaim) {
            self.reclaim = Some(reclaim);
            return;
        }
        self.give_up(&reclaim.segment, &reclaim.entries);
        drop(reclaim);
        self.graves.clear();
        self.begin_reclaim();
    }

    /// Writes an object, whose record lies on `home`, again if it was in use, and there is room for that.
    fn rescue(&mut self, reclaim: &mut Reclaim, home: &Arc<DiskState>, base: u64, place: Location) {
        let has_room =
            self.open.is_some() && self.shared.space.free() >= segment_room(self.shared.segment_bytes);
        if !has_room || home.index.was_used(base, place) != Some(true) {
            return;
        }
        let bytes = place.size_at_most();
        let across = is_large(place).then(|| home.across(place)).flatten();
        if let Some(pieces) = across {
            self.move_part(reclaim, (home, base, place), &pieces);
        } else if bytes <= reclaim.allowance
            && Arc::ptr_eq(home, &self.shared)
            && self.write_again(place).is_some()
        {
            reclaim.allowance -= bytes;
        }
    }

    pub(in crate::engine) fn write_again(&mut self, place: Location) -> Option<()> {
        let shared = Arc::clone(&self.shared);
        let bytes = shared.read_whole(place)?;
        let record = Record::read(&bytes)?;
        let key = [record.base, record.variant];
        let again = |content: &[&[u8]], own_bytes: u64, writer: &mut Self| {
            let header = Header { object_bytes: own_bytes, ..record.header };
            writer.stage_rescued(&Parts { header, key, head: record.head, content }, place)
        };
        if record.header.kind == Kind::Inline {
            return again(&[record.content], 0, self);
        }
        let failures = self.failures;
        let mut pieces = read_pieces(record.content)?;
        if shared.lie_elsewhere(&pieces) {
            return None;
        }
        let owner = Owner { disk: shared.superblock.disk, base: record.header.base };
        for piece in &mut pieces {
            let segment = shared.segments.find(piece.segment)?;
            let bytes = shared.read_piece_of(&segment, piece, Waiting::Yes)?.ok()?;
            *piece = self.stage_piece_bytes(owner, &bytes).ok()?;
        }
        // A batch that failed in between took some of the pieces with it.
        let list = write_pieces(&pieces);
        let own_bytes = self.own_bytes(&pieces);
        (failures == self.failures).then(|| again(&[&list], own_bytes, self))?
    }

    /// Gives up the oldest segment as it is; says whether there was one.
    pub(super) fn give_up_oldest(&mut self) -> bool {
        // If it was being gone through, there is no time for the rest of it.
        self.reclaim = None;
        let Some(segment) = self.shared.segments.oldest() else { return false };
        match self.shared.entries_of(&segment) {
            Ok(entries) => self.give_up(&segment, &entries),
            Err(error) => self.give_up_unread(&segment, &error),
        }
    }

    /// Removes a segment of which nobody can say what was in it: all would wait behind it, as it is the oldest. An object of which only
    /// a piece lay there is found to be gone when that is read.
    fn give_up_unread(&mut self, segment: &Arc<Segment>, why: &io::Error) -> bool {
        self.shared.counts.read_errors.add(1);
        self.shared.health.failed("cannot read a table", why);
        let is_gone = self.remove_segment(segment);
        if is_gone {
            let dropped = self.shared.index.remove_segment(segment.id);
            self.shared.counts.dropped_objects.add(dropped);
        }
        is_gone
    }

    /// Removes a segment, and from the index what was in it. Its room is free when its last reader is gone.
    pub(super) fn give_up(&mut self, segment: &Arc<Segment>, entries: &[TocEntry]) -> bool {
        let is_gone = self.remove_segment(segment);
        if is_gone {
            self.drop_entries(segment.id, entries);
        }
        is_gone
    }

    /// Removes the files of a segment, and takes it out of the table.
    fn remove_segment(&mut self, segment: &Arc<Segment>) -> bool {
        let shared = Arc::clone(&self.shared);
        if !shared.segments.has(segment.id) {
            return false;
        }
        // Who has pinned a part of it may read it for as long as it takes, and without a name it is not opened again.
        segment.file.hold(true);
        let _ = segment.file.get();
        if let Err(error) = remove_files(&shared.settings.path, segment.id) {
            segment.file.hold(false);
            shared.health.failed("cannot remove a segment", &error);
            return false;
        }
        shared.segments.take_out(segment.id);
        self.graves.add(Arc::clone(segment));
        shared.counts.reclaimed_segments.add(1);
        true
    }

    /// Takes out of the index what lay in a segment that is gone.
    fn drop_entries(&self, segment: u32, entries: &[TocEntry]) {
        let shared = &self.shared;
        let records = entries.iter().filter(|entry| entry.is_record());
        let records = records.map(|entry| (entry.base, entry.place(segment)));
        let dropped = records.filter(|(base, place)| shared.index.remove(*base, *place)).count();
        // Looked for when it is out of the table: a record that lists pieces of it and is written from now on sees that itself.
        let own = shared.superblock.disk;
        let owners: HashSet<Owner> =
            entries.iter().filter(|entry| !entry.is_record()).map(|entry| entry.owner(own)).collect();
        for owner in owners {
            let Some(home) = shared.disk(owner.disk) else { continue };
            for place in home.owners_of(owner.base, (own, segment)) {
                if home.index.remove(owner.base, place) {
                    home.remove_for_good(place);
                    shared.counts.dropped_objects.add(1);
                }
            }
            home.write_journal();
        }
        shared.counts.dropped_objects.add(dropped as u64);
    }

    /// Gives up segments of which nothing is in use: the oldest ones, and where many others wait behind one that is,
    /// that one too. One that is pinned stays: its room would not come back, and it may hold the pieces of a body that still
    /// arrives, which no record lists yet.
    pub(super) fn give_up_empty(&mut self) {
        if self.reclaim.is_some() {
            return;
        }
        while let Some(segment) = self.shared.segments.oldest()
            && !segment.is_pinned()
            && segment.live.load(Ordering::Relaxed) == 0
            && segment.id != self.shared.last_segment.load(Ordering::Relaxed)
        {
            let entries = match self.shared.entries_of(&segment) {
                Ok(entries) => entries,
                // Pieces in it may be of use to somebody yet, until the room is needed.
                Err(_) if segment.has_pieces.load(Ordering::Relaxed) => break,
                Err(error) => match self.give_up_unread(&segment, &error) {
                    true => continue,
                    false => break,
                },
            };
            let has_owner = entries.iter().filter(|entry| !entry.is_record()).any(|entry| {
                let owner = entry.owner(self.shared.superblock.disk);
                match self.shared.disk(owner.disk) {
                    Some(home) => !home.index.of_base(owner.base).is_empty(),
                    None => !self.shared.has_neighbours(),
                }
            });
            if has_owner || !self.give_up(&segment, &entries) {
                break;
            }
        }
        self.graves.clear();
        let (empty, all) = (self.shared.segments.empty(), self.shared.segments.count());
        let is_pinned = self.shared.segments.oldest().is_none_or(|segment| segment.is_pinned());
        if empty > 1 && empty * EMPTY_SHARE > all && !is_pinned {
            self.reclaim_oldest();
        }
    }
}

/// Whether the object may lie in pieces.
fn is_large(place: Location) -> bool {
    place.size_at_most() >= INLINE_BYTES_MAX as u64 / 2
}

impl DiskState {
    /// Objects of a base with a piece in a segment, of this disk or another, whose records are written here, and not in that
    /// segment.
    pub(super) fn owners_of(&self, base: u64, (disk, segment): (u64, u32)) -> Vec<Location> {
        let elsewhere = |place: &Location| {
            let is_there = disk == self.superblock.disk && place.segment() == segment;
            !place.is_pending() && !is_there && is_large(*place)
        };
        let lists = |place: &Location| {
            let is_here = |piece: &PieceRef| (piece.disk, piece.segment) == (disk, segment);
            // One that cannot be read is of no use to anybody.
            self.read_whole(*place).is_none_or(|bytes| {
                Record::read(&bytes).is_none_or(|record| {
                    record.header.kind == Kind::Listing
                        && read_pieces(record.content).is_none_or(|pieces| pieces.iter().any(is_here))
                })
            })
        };
        self.index.of_base(base).into_iter().filter(elsewhere).filter(lists).collect()
    }

    /// All bytes of a record, unchecked.
    pub(super) fn read_whole(&self, place: Location) -> Option<Vec<u8>> {
        let segment = self.segments.find(place.segment())?;
        let file = segment.file.get().ok()?;
        let header = sys::read_up_to(&file, HEADER_BYTES, place.offset()).ok()?;
        let header = Header::read(&header)?;
        let is_it = header.segment == place.segment() && header.total_bytes() <= self.record_bytes_max;
        is_it.then(|| sys::read_up_to(&file, header.total_bytes() as usize, place.offset()).ok())?
    }
}
