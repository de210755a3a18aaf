//! What a layout over several disks asks of one of them.
//!
//! In: the same addresses and pieces as elsewhere. Out: answers from memory, at once.

use std::sync::Arc;
use std::task::Waker;

use super::address::{Address, Location};
use super::error::Refused;
use super::piece::{Piece, PieceState};
use super::{Disk, DiskSettings};
use larder_tier::backlog::Backlog;
use larder_tier::note::Needed;

impl Address {
    /// The hash of the base under the disk's own seed: what rendezvous hashing draws with.
    pub(crate) fn hash(&self) -> u64 {
        self.base
    }
}

impl Disk {
    /// Whether the disk is left alone at the moment, because it failed. When its pause is over it is written to again: nothing
    /// else tells whether it works.
    pub fn is_left_alone(&self) -> bool {
        self.shared.health.is_failing() && self.shared.health.pause().is_some()
    }

    /// What it was opened with.
    pub(crate) fn settings(&self) -> &DiskSettings {
        &self.shared.settings
    }

    /// Why nothing can be written at this moment, whatever it is; only to be told.
    pub fn refuses(&self) -> Option<Refused> {
        if self.is_left_alone() {
            return Some(Refused::Failing);
        }
        self.shared.health.is_without_room().then_some(Refused::NoRoom)
    }

    /// Whether a response of this identity waits to be written.
    pub fn awaits(&self, at: &Address, identity: u64) -> bool {
        self.shared.index.awaits_tag(at.base, at.tag(identity))
    }

    /// The same of any response under a key.
    pub(crate) fn awaits_any(&self, at: &Address) -> bool {
        self.shared.index.awaits_any(at)
    }

    /// Closes files that are open beyond what the disk may have now.
    pub(crate) fn close_surplus(&self) {
        self.shared.handles.close_surplus(0);
    }

    /// Where to look for a key of these two levels.
    pub(crate) fn address_at(&self, base: &[u8], variant: &[u8]) -> Address {
        self.shared.superblock.seed.address(base, variant)
    }

    /// From now on its queue may borrow of its store's memory.
    pub(crate) fn borrow_from(&self, backlog: &Arc<Backlog>) {
        self.shared.queue.borrow_from(backlog);
    }

    /// From now on this is asked which notes are needed still. After [`Disk::notes`] were taken over.
    pub(crate) fn take_stock_by(&self, needed: &Arc<Needed>) {
        self.shared.stock.ask(needed);
    }

    /// From now on every note is kept.
    pub(crate) fn stop_taking_stock(&self) {
        self.shared.stock.stop();
    }

    /// Has the journal compacted soon.
    pub(crate) fn take_stock(&self) {
        self.shared.journal.ask_for_stock();
        self.shared.queue.call();
    }

    /// Wakes `waker` once the queue may have room again, or never will.
    pub(crate) fn await_room(&self, waker: &Waker) {
        self.shared.queue.await_room(waker);
    }

    /// Whether what waits is no more than one of so many parts of what may.
    pub(crate) fn is_drained(&self, parts: u64) -> bool {
        self.shared.queue.is_drained(parts)
    }

    /// Reads that wait for the disk.
    pub fn reads_waiting(&self) -> usize {
        self.shared.pool.waiting()
    }

    /// Whether a piece of this disk can be read: it is in memory still, or what it lies in has not been given up.
    pub(crate) fn has_piece(&self, piece: &Piece) -> bool {
        match piece.state() {
            PieceState::Pending(_) | PieceState::Kept(_) => true,
            PieceState::Written(at) => {
                at.disk == self.id() && self.shared.segments.find(at.segment).is_some()
            }
            PieceState::Lost => false,
        }
    }

    /// Whether what other disks have of a record's response is known to be the same, or older and gone.
    pub(crate) fn is_compared(&self, at: &Address, place: Location) -> bool {
        self.shared.index.is_compared(at.base, place)
    }

    /// Notes that it is.
    pub(crate) fn note_compared(&self, at: &Address, place: Location) {
        self.shared.index.note_compared(at.base, place);
    }

    /// Takes the response of this identity out, where there is one. For use under a lock: [`Disk::write_journal`] is to be called
    /// behind it.
    pub(crate) fn remove_identity(&self, at: &Address, identity: u64) {
        if let Some(place) = self.shared.index.remove_tag(at.base, at.tag(identity)) {
            self.shared.remove_for_good(place);
        }
    }

    /// As if it had just failed; or as if it worked again.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn leave_alone(&self, is_left: bool) {
        match is_left {
            true => self.shared.health.failed("test", &std::io::Error::other("test")),
            false => self.shared.health.worked(),
        }
    }

    /// Takes nothing more in.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn close_queue(&self) {
        self.shared.queue.close();
    }

    /// Has the writer write nothing; or again.
    #[cfg(any(test, feature = "testing"))]
    #[doc(hidden)]
    pub fn hold_back(&self, is_held: bool) {
        self.shared.queue.hold_back(is_held);
    }

    /// Makes the queue refuse everything, as one that is full does; or no longer.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn crowd_queue(&self, is_full: bool) {
        self.shared.queue.crowd(is_full);
    }
}
