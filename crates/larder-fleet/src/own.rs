//! The purges of one member that are not complete: how many there may be, and where they stand.
//!
//! In: purges as they are made, and their places in the log. Out: the purges to append next, and those that are forgotten. The list has a bound in
//! purges and in bytes.
//! Deliberately absent: when a purge is complete.

use std::collections::VecDeque;
use std::time::Duration;

use crate::call::EntryId;

/// Purges of one member that are not complete.
const PURGES_MAX: usize = 65_536;
/// Bytes of what they say.
pub(crate) const BYTES_MAX: usize = 8 << 20;
/// Purges in one call, and bytes of what they say, if there is more than one.
const APPENDED_MAX: usize = 64;
const APPENDED_BYTES_MAX: usize = 256 << 10;

/// A purge of this member that is not complete.
#[derive(Debug)]
pub(crate) struct OwnPurge<W> {
    id: EntryId,
    what: W,
    bytes: usize,
    /// Nobody asks for its receipt: it is forgotten when it was read in its place.
    is_quiet: bool,
    /// Its number in the log of now, and when that was known.
    pub(crate) placed: Option<(u64, Duration)>,
}

impl<W> OwnPurge<W> {
    pub(crate) fn new(id: EntryId, what: W, bytes: usize) -> Self {
        Self { id, what, bytes, is_quiet: false, placed: None }
    }
}

/// The list, oldest first.
#[derive(Debug)]
pub(crate) struct OwnPurges<W> {
    all: VecDeque<OwnPurge<W>>,
    bytes: usize,
}

impl<W> Default for OwnPurges<W> {
    fn default() -> Self {
        Self { all: VecDeque::new(), bytes: 0 }
    }
}

impl<W: Clone> OwnPurges<W> {
    /// False where there is no room. A quiet one has half of it.
    pub(crate) fn take_in(&mut self, purge: OwnPurge<W>, is_quiet: bool) -> bool {
        let part = if is_quiet { 2 } else { 1 };
        let has_room = self.all.len() < PURGES_MAX / part && self.bytes + purge.bytes <= BYTES_MAX / part;
        if has_room {
            self.bytes += purge.bytes;
            self.all.push_back(OwnPurge { is_quiet, ..purge });
        }
        has_room
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn find(&self, id: EntryId) -> Option<&OwnPurge<W>> {
        self.all.iter().find(|purge| purge.id == id)
    }

    pub(crate) fn has_unplaced(&self) -> bool {
        self.all.iter().any(|purge| purge.placed.is_none())
    }

    /// When the newest one was placed whose receipt is asked for; `None` where it is not.
    pub(crate) fn newest_placed_at(&self) -> Option<Duration> {
        self.all.iter().rfind(|purge| !purge.is_quiet)?.placed.map(|(_, at)| at)
    }

    /// What one call appends: those that have no place, within its bounds.
    pub(crate) fn next_batch(&self) -> Vec<(EntryId, W)> {
        let mut bytes = 0;
        let fits = |purge: &&OwnPurge<W>| {
            let is_first = bytes == 0;
            bytes += purge.bytes;
            is_first || bytes <= APPENDED_BYTES_MAX
        };
        let unplaced = self.all.iter().filter(|purge| purge.placed.is_none());
        let batch = unplaced.take(APPENDED_MAX).take_while(fits);
        batch.map(|purge| (purge.id, purge.what.clone())).collect()
    }

    /// One of them has a number, which was so at this moment. True where it had none.
    pub(crate) fn place(&mut self, id: EntryId, sequence: u64, at: Duration) -> bool {
        let unplaced = self.all.iter_mut().find(|purge| purge.placed.is_none() && purge.id == id);
        match unplaced {
            Some(purge) => purge.placed = Some((sequence, at)),
            None => return false,
        }
        true
    }

    /// The log was read up to this number, or the rest of it up to there is not read any more: quiet ones are forgotten.
    pub(crate) fn pass(&mut self, sequence: u64) {
        self.all.retain(|purge| {
            let is_over = purge.is_quiet && purge.placed.is_some_and(|(number, _)| number <= sequence);
            if is_over {
                self.bytes -= purge.bytes;
            }
            !is_over
        });
    }

    /// Takes all places back, since the log has begun anew; the names of those that had one.
    pub(crate) fn displace(&mut self) -> impl Iterator<Item = EntryId> {
        self.all.iter_mut().filter_map(|purge| purge.placed.take().map(|_| purge.id))
    }

    /// Forgets those that have a place and are complete, by their name, number, and when it was known.
    pub(crate) fn end(&mut self, mut is_complete: impl FnMut(EntryId, u64, Duration) -> bool) {
        self.all.retain(|purge| {
            let placed = purge.placed.filter(|_| !purge.is_quiet);
            let is_over = placed.is_some_and(|(sequence, at)| is_complete(purge.id, sequence, at));
            if is_over {
                self.bytes -= purge.bytes;
            }
            !is_over
        });
    }
}
