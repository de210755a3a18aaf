//! Locks with a place in one order, so that no two threads wait for each other, and no thread waits for the system while
//! others wait for it.
//!
//! In: a lock's [`Rank`]. Out: the same lock; a debug build panics where a thread takes one of a lower or the same rank than it
//! holds, and where it calls [`forbid_under_lock`] while it holds any. A release build does neither and costs nothing.
//! The order as a list is in ARCHITECTURE.md, under "Locks".
//! Deliberately absent: locks that are never held together with another, and never while the system is called.

use std::ops::{Deref, DerefMut};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Which locks may be taken while this one is held: those that stand below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Rank {
    /// A shard of the table of fetches under way.
    Flights,
    /// The outcome of a fetch, for those who wait for it.
    Outcome,
    /// Where a body that arrives goes to.
    Spill,
    /// A body that arrives, and its readers.
    Body,
    /// A shard of the index in memory.
    Shard,
    /// A shard of the table of invalidations.
    Predicates,
}

#[cfg(debug_assertions)]
thread_local! {
    /// The ranks that this thread holds, a bit each.
    static HELD: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// A rank that this thread holds, for as long as this is there.
#[derive(Debug)]
struct Held {
    #[cfg(debug_assertions)]
    rank: Rank,
    /// Guards stay on their thread.
    _here: std::marker::PhantomData<*const ()>,
}

impl Held {
    #[inline]
    fn take(rank: Rank) -> Self {
        #[cfg(debug_assertions)]
        HELD.with(|held| {
            let above = held.get() >> rank as u8;
            assert!(above == 0, "{rank:?} is locked while a lock of the same rank or below it is held");
            held.set(held.get() | 1 << rank as u8);
        });
        #[cfg(not(debug_assertions))]
        let _ = rank;
        Self {
            #[cfg(debug_assertions)]
            rank,
            _here: std::marker::PhantomData,
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        HELD.with(|held| held.set(held.get() & !(1 << self.rank as u8)));
    }
}

/// To be called before the system is asked for anything that may wait for a disk.
///
/// # Panics
/// In a debug build, where this thread holds a lock with a rank.
#[inline]
pub fn forbid_under_lock() {
    #[cfg(debug_assertions)]
    HELD.with(|held| {
        assert!(held.get() == 0, "the system is called under a lock of memory, of a flight or of a body")
    });
}

/// What a lock gives while it is held.
#[derive(Debug)]
pub struct Guard<G> {
    // Released first.
    guard: G,
    _held: Held,
}

impl<G: Deref> Deref for Guard<G> {
    type Target = G::Target;

    #[inline]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Guard<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

/// A mutex with a rank.
#[derive(Debug)]
pub struct RankedMutex<T> {
    rank: Rank,
    lock: Mutex<T>,
}

impl<T> RankedMutex<T> {
    /// One that holds `value`.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self { rank, lock: Mutex::new(value) }
    }

    /// Waits for it.
    #[inline]
    pub fn lock(&self) -> Guard<MutexGuard<'_, T>> {
        let held = Held::take(self.rank);
        Guard { guard: self.lock.lock(), _held: held }
    }
}

/// A lock for many readers or one writer, with a rank.
#[derive(Debug)]
pub struct RankedRwLock<T> {
    rank: Rank,
    lock: RwLock<T>,
}

impl<T> RankedRwLock<T> {
    /// One that holds `value`.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self { rank, lock: RwLock::new(value) }
    }

    /// Waits until nobody writes.
    #[inline]
    pub fn read(&self) -> Guard<RwLockReadGuard<'_, T>> {
        let held = Held::take(self.rank);
        Guard { guard: self.lock.read(), _held: held }
    }

    /// Waits until nobody reads or writes.
    #[inline]
    pub fn write(&self) -> Guard<RwLockWriteGuard<'_, T>> {
        let held = Held::take(self.rank);
        Guard { guard: self.lock.write(), _held: held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_taken_downwards_and_given_back_in_any_order() {
        let (spill, shard) = (RankedMutex::new(Rank::Spill, 1), RankedRwLock::new(Rank::Shard, 2));
        let upper = spill.lock();
        let lower = shard.read();
        assert_eq!((*upper, *lower), (1, 2));
        drop(upper);
        drop(lower);
        *shard.write() += 1;
        assert_eq!(*spill.lock() + *shard.read(), 4);
        forbid_under_lock();
    }

    #[test]
    #[should_panic(expected = "Spill is locked")]
    fn a_lock_is_not_taken_under_one_below_it() {
        let (spill, shard) = (RankedMutex::new(Rank::Spill, ()), RankedRwLock::new(Rank::Shard, ()));
        let _lower = shard.write();
        let _upper = spill.lock();
    }

    #[test]
    #[should_panic(expected = "the system is called")]
    fn the_system_is_not_called_under_a_lock() {
        let body = RankedMutex::new(Rank::Body, ());
        let _held = body.lock();
        forbid_under_lock();
    }
}
