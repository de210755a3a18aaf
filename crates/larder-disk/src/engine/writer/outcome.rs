//! What comes of a part of a batch: it was written, or it is lost.
//!
//! In: who waits to hear of it. Out: the index and the pieces know places, or forget. Between being put together and being
//! written an object may have been taken out: then what was written is dead, and the journal says so.

use std::sync::Arc;

use crate::engine::address::Location;
use crate::engine::error::Refused;
use crate::engine::format::journal::JournalEntry;
use crate::engine::format::record::PieceRef;
use crate::engine::object::RecordContent;
use crate::engine::piece::{Piece, PieceState};
use crate::engine::queue::RecordJob;
use crate::engine::segment::Segment;
use crate::engine::state::DiskState;

/// Who has to hear that a part of the batch was written.
pub(super) enum Staged {
    Record { job: Box<RecordJob>, at: Location },
    Piece { piece: Piece, at: PieceRef, cost: u64 },
    Rescued { base: u64, old: Location, at: Location },
}

impl DiskState {
    /// A part of a batch was written to `segment`.
    pub(super) fn settle(&self, staged: Staged, segment: &Arc<Segment>) {
        match staged {
            Staged::Record { job, at } => {
                self.segments.count_in(at.segment(), 1);
                let is_settled = match job.again {
                    None => self.index.settle(job.base, job.pending, at),
                    Some(_) => self.index.settle_part(job.base, job.pending, at),
                };
                match (is_settled, &job.again) {
                    (true, None) => self.counts.written_objects.add(1),
                    (true, Some(_)) => {
                        self.segments.count_out(job.pending.segment(), false);
                        self.counts.rescued_objects.add(1);
                    }
                    // Taken out while it was being written: it lies there dead, and has to stay so.
                    (false, _) => self.remove_for_good(at),
                }
                // A disk that gives up what holds one of them has looked for its record either before this one was found, or
                // after that.
                if is_settled && !self.has_pieces_of(&job) && self.index.remove(job.base, at) {
                    self.remove_for_good(at);
                }
                self.in_flight.end(job.pending);
                if job.replaces {
                    self.replaced.forget(job.pending);
                }
                self.queue.release(job.cost);
            }
            Staged::Piece { piece, at, cost } => {
                self.queue.release(cost);
                piece.settle(Some((at, segment)));
            }
            Staged::Rescued { base, old, at } => {
                self.segments.count_in(at.segment(), 1);
                if self.index.settle(base, old, at) {
                    self.segments.count_out(old.segment(), false);
                    self.counts.rescued_objects.add(1);
                } else {
                    self.remove_for_good(at);
                }
                self.in_flight.end(old);
            }
        }
        self.write_journal();
    }

    /// Whether what the record lists on other disks is there.
    fn has_pieces_of(&self, job: &RecordJob) -> bool {
        let RecordContent::Pieces(pieces) = &job.object.content else { return true };
        let written = |piece: &Piece| match piece.state() {
            PieceState::Written(at) => Some(at),
            PieceState::Pending(_) | PieceState::Lost | PieceState::Kept(_) => None,
        };
        self.has_others_pieces(&pieces.iter().filter_map(written).collect::<Vec<_>>())
    }

    pub(super) fn lose_staged(&self, staged: Staged) {
        match staged {
            // What reached the file all the same must not count once nothing but the file is left to tell.
            Staged::Record { job, at } => {
                self.journal.collect(&[JournalEntry::Removed { place: at.0 }]);
                self.lose(&job, Refused::Failing);
                self.in_flight.end(job.pending);
            }
            Staged::Piece { piece, cost, .. } => {
                self.counts.refuse(Refused::Failing);
                self.queue.release(cost);
                piece.settle(None);
            }
            // Still in the index where it was.
            Staged::Rescued { old, at, .. } => {
                self.journal.collect(&[JournalEntry::Removed { place: at.0 }]);
                self.in_flight.end(old);
            }
        }
        self.write_journal();
    }
}
