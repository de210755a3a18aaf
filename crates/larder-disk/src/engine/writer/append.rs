//! The end of the log: records and pieces are put together in memory and written at once, a megabyte or so at a time.
//!
//! In: what to write. Out: when the write went well, the index and the pieces know their places; when it did not, all of
//! the batch is lost and the segment is not written to any more. A segment's room is allocated before its first byte is
//! written; when it is full it gets its table, and what it did not need goes back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::Writer;
use super::batch::{Open, Parts};
use super::outcome::Staged;
use crate::engine::address::Owner;
use crate::engine::address::{ALIGN, Location, SEGMENT_MAX};
use crate::engine::error::Refused;
use crate::engine::files::segment_path;
use crate::engine::format::crc;
use crate::engine::format::record::PieceRef;
use crate::engine::format::record::{Header, Kind, write_pieces};
use crate::engine::format::segment::{SEGMENT_HEAD_BYTES, SegmentHead};
use crate::engine::format::toc::toc_bytes;
use crate::engine::object::{Object, RecordContent};
use crate::engine::piece::{Piece, PieceState};
use crate::engine::queue::{RecordJob, WriteJob};
use crate::engine::segment::Segment;
use crate::engine::space::{segment_room, toc_bytes_max};
use crate::engine::sys::{self, Allocated, Existing};
use crate::engine::walk;

/// Written at once.
const WRITE_BYTES: usize = 1 << 20;
/// Written before what was written before it has to be on the disk.
const SYNC_EVERY_BYTES: u64 = 8 << 20;
/// Attempts at a new segment, each after giving up the oldest.
const ATTEMPTS: usize = 4;

impl Writer {
    pub(super) fn stage_job(&mut self, job: WriteJob) {
        match job {
            WriteJob::Record(job) => self.stage_record(job),
            WriteJob::Piece { owner, piece, cost } => self.stage_piece(owner, piece, cost),
        }
    }

    fn stage_record(&mut self, job: Box<RecordJob>) {
        if !self.shared.index.holds(job.base, job.pending) {
            // Taken out or replaced meanwhile; what it replaced itself is gone for good as well.
            return self.shared.let_go(&job);
        }
        let shared = Arc::clone(&self.shared);
        let claim =
            |at| shared.in_flight.claim(job.pending, at, || shared.index.holds(job.base, job.pending));
        let object = &job.object;
        let staged = match &object.content {
            RecordContent::Inline(parts) => {
                let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
                let length: usize = parts.iter().map(|part| part.len()).sum();
                self.stage(&parts_of(&job, Kind::Inline, &parts, length as u64), claim)
            }
            RecordContent::Pieces(pieces) => match self.references(pieces) {
                Some(references) => {
                    let own = self.own_bytes(&references);
                    let list = write_pieces(&references);
                    self.stage(&parts_of(&job, Kind::Listing, &[&list], own), claim)
                }
                None => Err(Refused::PieceLost),
            },
        };
        match staged {
            Ok(Some(at)) => self.batch.staged.push(Staged::Record { job, at }),
            // Gone in this moment; or another record of it is in the batch already, and this one comes too late.
            Ok(None) => self.shared.let_go(&job),
            Err(why) => self.shared.lose(&job, why),
        }
    }

    /// Where the pieces of a record are, if all of them still are anywhere.
    fn references(&self, pieces: &[Piece]) -> Option<Vec<PieceRef>> {
        let written = pieces.iter().map(|piece| match piece.state() {
            PieceState::Written(at) => Some(at),
            PieceState::Pending(_) | PieceState::Lost | PieceState::Kept(_) => None,
        });
        let references: Vec<PieceRef> = written.collect::<Option<_>>()?;
        let are_there = self.shared.has_own_pieces(&references) && self.shared.has_others_pieces(&references);
        are_there.then_some(references)
    }

    /// What of these pieces lies on this disk.
    pub(super) fn own_bytes(&self, pieces: &[PieceRef]) -> u64 {
        let own = pieces.iter().filter(|piece| piece.disk == self.shared.superblock.disk);
        own.map(|piece| u64::from(piece.length)).sum()
    }

    fn stage_piece(&mut self, owner: Owner, piece: Piece, cost: u64) {
        let bytes = match piece.state() {
            PieceState::Pending(bytes) if !piece.is_abandoned() => bytes,
            _ => {
                self.shared.queue.release(cost);
                return piece.settle(None);
            }
        };
        match self.stage_piece_bytes(owner, &bytes) {
            Ok(at) => self.batch.staged.push(Staged::Piece { piece, at, cost }),
            Err(why) => {
                self.shared.counts.refuse(why);
                self.shared.queue.release(cost);
                piece.settle(None);
            }
        }
    }

    /// Puts the bytes of a piece into the batch.
    pub(super) fn stage_piece_bytes(&mut self, owner: Owner, bytes: &Bytes) -> Result<PieceRef, Refused> {
        let object_bytes = if owner.disk == self.shared.superblock.disk { 0 } else { owner.disk };
        let header = Header { object_bytes, ..blank(Kind::Piece, owner.base) };
        let parts = Parts { header, key: [&[], &[]], head: &[], content: &[bytes] };
        let at = self.stage(&parts, |_| true)?.ok_or(Refused::PieceLost)?;
        let (length, crc) = (bytes.len() as u32, self.batch.last_content_crc);
        let (segment, offset) = (at.segment(), at.offset() as u32);
        Ok(PieceRef { disk: self.shared.superblock.disk, segment, offset, length, crc })
    }

    /// Puts a record that is on the disk already into the batch once more; `None` where it is not wanted any more.
    pub(super) fn stage_rescued(&mut self, parts: &Parts<'_>, old: Location) -> Option<()> {
        let (shared, base) = (Arc::clone(&self.shared), parts.header.base);
        let claim = |at| shared.in_flight.claim(old, at, || shared.index.holds(base, old));
        let at = self.stage(parts, claim).ok()??;
        self.batch.staged.push(Staged::Rescued { base, old, at });
        Some(())
    }

    /// Puts header and parts to the end of the batch, writing the batch where it is full and going on to the next segment
    /// where the open one is. `claim` hears where that will be, and says whether it is wanted. Says where it will be.
    fn stage(
        &mut self,
        parts: &Parts<'_>,
        claim: impl FnOnce(Location) -> bool,
    ) -> Result<Option<Location>, Refused> {
        let content: usize = parts.content.iter().map(|part| part.len()).sum();
        let [base, variant] = parts.key;
        let mut header = Header {
            disk: self.shared.superblock.disk,
            base_bytes: base.len() as u32,
            variant_bytes: variant.len() as u32,
            head_bytes: parts.head.len() as u32,
            content_bytes: content as u32,
            ..parts.header
        };
        let step = header.step_bytes();
        self.make_way(step)?;
        let Some(open) = &mut self.open else { return Err(Refused::NoRoom) };
        let sums = |parts: &[&[u8]]| {
            let mut hasher = crc32fast::Hasher::new();
            parts.iter().for_each(|part| hasher.update(part));
            hasher.finalize()
        };
        header.segment = open.segment.id;
        header.key_crc = sums(&[base, variant]);
        header.head_crc = crc(parts.head);
        header.content_crc = sums(parts.content);
        let local = header.object_bytes;
        header.object_bytes = match header.kind {
            Kind::Piece => local,
            Kind::Inline => header.total_bytes(),
            Kind::Listing => header.total_bytes() + local,
        };
        let batch = &mut self.batch;
        let offset = open.at + batch.bytes.len() as u64;
        let at = Location::written(open.segment.id, offset, header.object_bytes);
        if !claim(at) {
            return Ok(None);
        }
        header.write(&mut batch.bytes);
        for part in [base, variant, parts.head].iter().chain(parts.content) {
            batch.bytes.extend_from_slice(part);
        }
        let padded = batch.bytes.len().next_multiple_of(ALIGN as usize);
        batch.bytes.resize(padded, 0);
        batch.last_content_crc = header.content_crc;
        batch.entries += 1;
        open.entries.push(walk::entry(&header, offset));
        if header.kind == Kind::Piece {
            open.segment.note_piece(header.object_bytes != 0);
        }
        Ok(Some(at))
    }

    /// Makes sure that `step` bytes fit behind the batch.
    fn make_way(&mut self, step: u64) -> Result<(), Refused> {
        if self.batch.bytes.len() as u64 + step > WRITE_BYTES as u64 {
            self.flush();
        }
        let segment_bytes = self.shared.segment_bytes;
        let fits = self.open.as_ref().is_some_and(|open| {
            open.at + self.batch.bytes.len() as u64 + step <= segment_bytes
                && toc_bytes(open.entries.len() + 1) <= toc_bytes_max(segment_bytes)
        });
        if !fits {
            self.flush();
            self.seal();
            self.open_segment()?;
        }
        Ok(())
    }

    /// Writes the batch, and tells everybody.
    pub(in crate::engine) fn flush(&mut self) {
        if self.batch.bytes.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        let Some(open) = &mut self.open else {
            return batch.staged.into_iter().for_each(|staged| self.shared.lose_staged(staged));
        };
        let length = batch.bytes.len() as u64;
        match open.segment.file.get().and_then(|file| sys::write_at(&file, &batch.bytes, open.at)) {
            Ok(()) => {
                open.at += length;
                open.unsynced += length;
                open.segment.end.store(open.at, Ordering::Release);
                self.shared.counts.written_bytes.add(length);
                let segment = Arc::clone(&open.segment);
                batch.staged.into_iter().for_each(|staged| self.shared.settle(staged, &segment));
                // The buffer is used again.
                self.batch.bytes = batch.bytes;
                self.batch.bytes.clear();
                self.shared.health.worked();
                if self.open.as_ref().is_some_and(|open| open.unsynced >= SYNC_EVERY_BYTES) {
                    self.sync_behind();
                }
            }
            Err(error) => {
                open.entries.truncate(open.entries.len().saturating_sub(batch.entries));
                // What the file holds behind the last good write nobody knows: its table says what counts.
                open.segment.note_death();
                batch.staged.into_iter().for_each(|staged| self.shared.lose_staged(staged));
                self.write_failed("cannot write", &error);
                self.seal();
            }
        }
    }

    fn write_failed(&mut self, what: &'static str, error: &io::Error) {
        self.failures += 1;
        self.shared.counts.write_errors.add(1);
        self.shared.health.failed(what, error);
    }

    /// Sees to it that what was written comes to the disk while more is written.
    fn sync_behind(&mut self) {
        let Some(open) = &mut self.open else { return };
        open.unsynced = 0;
        let begun = open.segment.file.get().and_then(|file| self.syncing.begin(file));
        if let Err(error) = begun {
            open.is_in_doubt = true;
            self.write_failed("cannot sync", &error);
        }
    }

    /// Waits until what was written is on the disk.
    pub(super) fn sync_open(&mut self) {
        let before = self.syncing.wait();
        let open = self.open.as_mut().filter(|open| open.unsynced > 0);
        let now = open.map_or(Ok(()), |open| {
            open.unsynced = 0;
            open.segment.file.get().and_then(|file| sys::sync(&file))
        });
        for error in [before, now].into_iter().filter_map(Result::err) {
            self.open.iter_mut().for_each(|open| open.is_in_doubt = true);
            self.write_failed("cannot sync", &error);
        }
    }

    /// Ends the open segment: its table is written, and room it does not need goes back.
    pub(in crate::engine) fn seal(&mut self) {
        self.sync_open();
        let Some(open) = self.open.take() else { return };
        let (segment, end) = (open.segment, open.at);
        if open.entries.is_empty() {
            // Nothing came of it.
            segment.is_sealed.store(true, Ordering::Relaxed);
            self.give_up(&segment, &[]);
            return;
        }
        if let Err(error) = self.shared.finish_segment(&segment, open.entries, end) {
            self.write_failed("cannot write the table of a segment", &error);
        }
        segment.is_sealed.store(true, Ordering::Relaxed);
        segment.file.hold(false);
    }

    /// Begins a new segment, giving up the oldest where there is no room.
    pub(super) fn open_segment(&mut self) -> Result<(), Refused> {
        self.shared.space.look_again();
        for _ in 0..ATTEMPTS {
            let wanted = segment_room(self.shared.segment_bytes);
            let Some(room) = self.shared.space.reserve(wanted) else {
                // Room that readers still hold comes back when they are done; giving up more would not make it come sooner.
                if self.graves.bytes() >= wanted || !self.give_up_oldest() {
                    break;
                }
                self.graves.clear();
                continue;
            };
            match self.shared.make_segment(room) {
                Ok(segment) => {
                    let at = SEGMENT_HEAD_BYTES as u64;
                    self.open =
                        Some(Open { segment, at, entries: Vec::new(), unsynced: 0, is_in_doubt: false });
                    self.shared.health.note_room(true);
                    self.begin_reclaim();
                    return Ok(());
                }
                Err(error) if is_full(&error) => {
                    if !self.give_up_oldest() {
                        break;
                    }
                    self.graves.clear();
                }
                Err(error) => {
                    self.write_failed("cannot make a segment", &error);
                    return Err(Refused::Failing);
                }
            }
        }
        self.shared.health.note_room(false);
        Err(Refused::NoRoom)
    }
}

/// Whether the file system is what lacks room.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// A header without place and checksums.
fn blank(kind: Kind, base: u64) -> Header {
    Header {
        kind,
        disk: 0,
        segment: 0,
        tag: 0,
        base,
        number: 0,
        stored_at_ms: 0,
        identity: 0,
        base_bytes: 0,
        variant_bytes: 0,
        head_bytes: 0,
        content_bytes: 0,
        object_bytes: 0,
        key_crc: 0,
        head_crc: 0,
        content_crc: 0,
    }
}

/// What is written of an object. `own_bytes` are those of its pieces that lie on this disk.
fn parts_of<'a>(job: &'a RecordJob, kind: Kind, content: &'a [&'a [u8]], own_bytes: u64) -> Parts<'a> {
    let object: &Object = &job.object;
    let header = Header {
        tag: job.tag,
        number: object.number,
        stored_at_ms: object.stored_at.0,
        identity: object.identity,
        object_bytes: own_bytes,
        ..blank(kind, job.base)
    };
    Parts { header, key: [object.key.base(), object.key.variant()], head: &object.head, content }
}

impl crate::engine::state::DiskState {
    /// Makes the file of a new segment, with all its room.
    fn make_segment(&self, room: larder_tier::budget::Reservation) -> io::Result<Arc<Segment>> {
        let id = self.last_segment.fetch_add(1, Ordering::Relaxed) + 1;
        if id > SEGMENT_MAX {
            return Err(io::Error::other("there are no more numbers for segments"));
        }
        let path = segment_path(&self.settings.path, id);
        let create = || sys::make(&path, Existing::Refused);
        let file = self.handles.open_with(create)?;
        let filled = sys::allocate(&file, self.segment_bytes).and_then(|allocated| {
            self.is_zeroing.fetch_or(allocated == Allocated::Zeroed, Ordering::Relaxed);
            let head = SegmentHead { disk: self.superblock.disk, segment: id };
            sys::write_at(&file, &head.write(), 0)
        });
        if let Err(error) = filled {
            // What was allocated of it goes back at once.
            let _ = sys::remove(&path);
            return Err(error);
        }
        let file = self.handles.adopt(id, file);
        file.hold(true);
        let segment = Segment::new(id, file, room, (SEGMENT_HEAD_BYTES as u64, self.seconds()));
        self.segments.insert(Arc::clone(&segment));
        Ok(segment)
    }
}
