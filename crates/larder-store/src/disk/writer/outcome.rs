//! What comes of a part of a batch: it was written, or it is lost.
//!
//! In: who waits to hear of it. Out: the index and the pieces know places, or forget. Between being put together and being
//! written an object may have been taken out: then what was written is dead, and the journal says so.

use std::sync::Arc;

use crate::disk::Shared;
use crate::disk::address::Place;
use crate::disk::error::Refused;
use crate::disk::piece::{Piece, PieceRef};
use crate::disk::queue::RecordJob;
use crate::disk::segment::Segment;

/// Who has to hear that a part of the batch was written.
pub(super) enum Staged {
    Record { job: Box<RecordJob>, at: Place },
    Piece { piece: Piece, at: PieceRef, cost: u64 },
    Rescued { base: u64, old: Place, at: Place },
}

impl Shared {
    /// A part of a batch was written to `segment`.
    pub(super) fn settle(&self, staged: Staged, segment: &Arc<Segment>) {
        match staged {
            Staged::Record { job, at } => {
                self.segments.count_in(at.segment(), 1);
                if self.index.settle(job.base, job.pending, at) {
                    self.counts.written_objects.add(1);
                } else {
                    // Taken out while it was being written: it lies there dead, and has to stay so.
                    self.remove_for_good(at);
                }
                if job.replaces {
                    self.replaced.take(job.pending);
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
            }
        }
    }

    pub(super) fn lose_staged(&self, staged: Staged) {
        match staged {
            Staged::Record { job, .. } => self.lose(&job, Refused::Failing),
            Staged::Piece { piece, cost, .. } => {
                self.counts.refuse(Refused::Failing);
                self.queue.release(cost);
                piece.settle(None);
            }
            // Still in the index where it was.
            Staged::Rescued { .. } => {}
        }
    }
}
