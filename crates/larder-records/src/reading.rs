//! How much is read from Redis at once.
//!
//! In: the lengths of bodies in pieces, before any piece is asked for. Out: room for them, until they are read and go to memory, which has a
//! budget of its own. A body without room is a miss.

use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes of bodies that are read at once, for each store.
pub(crate) const READING_MAX: u64 = 64 << 20;

/// See the head of the file.
#[derive(Debug, Default)]
pub(crate) struct Reading(AtomicU64);

/// Room for a body. Dropped, others have it.
pub(crate) struct ReadRoom<'a> {
    reading: &'a Reading,
    bytes: u64,
}

impl Reading {
    /// Room for so many bytes, if there is any.
    pub(crate) fn room(&self, bytes: u64) -> Option<ReadRoom<'_>> {
        let taken = |now: u64| now.checked_add(bytes).filter(|sum| *sum <= READING_MAX);
        let is_taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, taken).is_ok();
        is_taken.then_some(ReadRoom { reading: self, bytes })
    }
}

impl Drop for ReadRoom<'_> {
    fn drop(&mut self) {
        self.reading.0.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_bounded_and_given_back() {
        let reading = Reading::default();
        let half = reading.room(READING_MAX / 2);
        let other = reading.room(READING_MAX / 2);
        assert!(
            half.is_some()
                && other.is_some()
                && reading.room(1).is_none()
                && reading.room(u64::MAX).is_none()
        );
        drop(half);
        assert!(reading.room(READING_MAX / 2).is_some());
    }
}
