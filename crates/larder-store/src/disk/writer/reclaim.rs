//! Making room: the oldest segment is given up, and what was in use since it was written is written again.
//!
//! Begun when fewer than two more segments would fit, and done a little after each batch, so that storing goes on meanwhile.
//! At most half of a segment's bytes get another life; where room is needed at once, nothing does. A large object
//! lies in several segments and lives or goes as a whole, when the first of them is given up.
//!
//! Always the oldest: of two records of one identity the later counts, and as the later is never given up before the earlier,
//! what was replaced cannot come back.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Writer;
use super::append::Parts;
use crate::disk::Shared;
use crate::disk::address::Place;
use crate::disk::format::record::{HEADER_BYTES, Header, Kind, Record, read_pieces, write_pieces};
use crate::disk::format::toc::Entry;
use crate::disk::object::INLINE_BYTES_MAX;
use crate::disk::piece::PieceRef;
use crate::disk::reads::Waiting;
use crate::disk::segment::{Segment, remove_files};
use crate::disk::space::segment_room;
use crate::disk::sys;

/// Segments that should fit beside the open one.
const FREE_SEGMENTS: u64 = 2;
/// Bytes of the segment that are gone through after each batch. Twice what a batch writes: so it is done in time.
const STEP_BYTES: u64 = 4 << 20;
/// Of all segments, the part that may be empty before the oldest goes although something in it is alive.
const EMPTY_SHARE: usize = 4;

/// A segment that is being given up.
pub(super) struct Reclaim {
    segment: Arc<Segment>,
    entries: Vec<Entry>,
    next: usize,
    /// Bytes that may still be written again.
    allowance: u64,
    /// Bases whose pieces were met.
    met: HashSet<u64>,
}

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
        match self.shared.entries_of(&segment) {
            Ok(entries) => {
                let allowance = self.shared.segment_bytes / 2;
                self.reclaim = Some(Reclaim { segment, entries, next: 0, allowance, met: HashSet::new() });
            }
            Err(error) => {
                self.shared.health.failed("cannot read a table", &error);
            }
        }
    }

    /// Goes on with giving up a segment.
    pub(super) fn reclaim_a_little(&mut self) {
        self.graves.clear();
        let Some(mut reclaim) = self.reclaim.take() else { return self.begin_reclaim() };
        let mut seen = 0;
        while let Some(entry) = reclaim.entries.get(reclaim.next).copied() {
            if seen >= STEP_BYTES {
                self.flush();
                self.reclaim = Some(reclaim);
                return;
            }
            reclaim.next += 1;
            seen += u64::from(entry.length);
            if entry.is_record() {
                let place = entry.place(reclaim.segment.id);
                self.rescue(&mut reclaim, entry.base, place);
            } else if reclaim.met.insert(entry.base) {
                for place in self.shared.owners_of(entry.base, &reclaim.segment) {
                    self.rescue(&mut reclaim, entry.base, place);
                }
            }
        }
        self.flush();
        self.give_up(&reclaim.segment, &reclaim.entries);
        drop(reclaim);
        self.graves.clear();
        self.begin_reclaim();
    }

    /// Writes an object again if it was in use, and there is room for that.
    fn rescue(&mut self, reclaim: &mut Reclaim, base: u64, place: Place) {
        let bytes = place.size_at_most();
        let has_room =
            self.open.is_some() && self.shared.space.free() >= segment_room(self.shared.segment_bytes);
        if bytes > reclaim.allowance || !has_room || self.shared.index.was_used(base, place) != Some(true) {
            return;
        }
        if self.write_again(place).is_some() {
            reclaim.allowance -= bytes;
        }
    }

    fn write_again(&mut self, place: Place) -> Option<()> {
        let shared = Arc::clone(&self.shared);
        let bytes = shared.read_whole(place)?;
        let record = Record::read(&bytes)?;
        let key = [record.base, record.variant];
        let again = |content: &[&[u8]], own_bytes: u64, writer: &mut Self| {
            let header = Header { object_bytes: own_bytes, ..record.header };
            writer.stage_rescued(&Parts { header, key, head: record.head, content }, place).ok()
        };
        if record.header.kind == Kind::Inline {
            return again(&[record.content], 0, self);
        }
        let failures = self.failures;
        let mut pieces = read_pieces(record.content)?;
        for piece in pieces.iter_mut().filter(|piece| piece.disk == shared.superblock.disk) {
            let segment = shared.segments.find(piece.segment)?;
            let bytes = shared.read_piece_of(&segment, piece, Waiting::Yes)?.ok()?;
            *piece = self.stage_piece_bytes(record.header.base, &bytes).ok()?;
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
            Err(error) => {
                self.shared.health.failed("cannot read a table", &error);
                false
            }
        }
    }

    /// Removes a segment, and from the index what was in it. Its room is free when its last reader is gone.
    pub(super) fn give_up(&mut self, segment: &Arc<Segment>, entries: &[Entry]) -> bool {
        let shared = Arc::clone(&self.shared);
        if !shared.segments.has(segment.id) {
            return false;
        }
        // Asked while its pieces can still be told apart from others.
        let bases: HashSet<u64> =
            entries.iter().filter(|entry| !entry.is_record()).map(|entry| entry.base).collect();
        let owners: Vec<(u64, Place)> = bases
            .iter()
            .flat_map(|base| shared.owners_of(*base, segment).into_iter().map(|place| (*base, place)))
            .collect();
        if let Err(error) = remove_files(&shared.settings.path, segment.id) {
            shared.health.failed("cannot remove a segment", &error);
            return false;
        }
        shared.segments.take_out(segment.id);
        self.graves.add(Arc::clone(segment));
        let records = entries.iter().filter(|entry| entry.is_record());
        let own = records.map(|entry| (entry.base, entry.place(segment.id)));
        let dropped = own.filter(|(base, place)| shared.index.remove(*base, *place)).count();
        for (base, place) in owners {
            if shared.index.remove(base, place) {
                shared.remove_for_good(place);
                shared.counts.dropped_objects.add(1);
            }
        }
        shared.counts.dropped_objects.add(dropped as u64);
        shared.counts.reclaimed_segments.add(1);
        true
    }

    /// Gives up segments of which nothing is in use: the oldest ones, and where many others wait behind one that is,
    /// that one too.
    pub(super) fn give_up_empty(&mut self) {
        if self.reclaim.is_some() {
            return;
        }
        while let Some(segment) = self.shared.segments.oldest()
            && segment.live.load(Ordering::Relaxed) == 0
            && segment.id != self.shared.last_segment.load(Ordering::Relaxed)
        {
            let Ok(entries) = self.shared.entries_of(&segment) else { return };
            let has_owner = entries
                .iter()
                .filter(|entry| !entry.is_record())
                .any(|entry| !self.shared.index.of_base(entry.base).is_empty());
            if has_owner || !self.give_up(&segment, &entries) {
                break;
            }
        }
        self.graves.clear();
        let (empty, all) = (self.shared.segments.empty(), self.shared.segments.count());
        if empty > 1 && empty * EMPTY_SHARE > all {
            self.reclaim_oldest();
        }
    }
}

impl Shared {
    /// Objects of a base with a piece in `segment` whose records are written elsewhere.
    fn owners_of(&self, base: u64, segment: &Segment) -> Vec<Place> {
        let elsewhere = |place: &Place| {
            !place.is_pending()
                && place.segment() != segment.id
                && place.size_at_most() >= INLINE_BYTES_MAX as u64 / 2
        };
        let lists = |place: &Place| {
            let is_here =
                |piece: &PieceRef| piece.disk == self.superblock.disk && piece.segment == segment.id;
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
    fn read_whole(&self, place: Place) -> Option<Vec<u8>> {
        let segment = self.segments.find(place.segment())?;
        let header = sys::read_up_to(&segment.file, HEADER_BYTES, place.offset()).ok()?;
        let header = Header::read(&header)?;
        let is_it = header.segment == place.segment() && header.total_bytes() <= self.record_bytes_max;
        is_it.then(|| sys::read_up_to(&segment.file, header.total_bytes() as usize, place.offset()).ok())?
    }
}
