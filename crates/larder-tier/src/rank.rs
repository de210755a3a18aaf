//! Locks with a place in one order, so that no two threads wait for each other, and no thread waits for the system while
//! others wait for it.
//!
//! In: a lock's [`Rank`]. Out: the same lock. A debug build panics where a thread takes a lock of the same rank as one that it
//! holds, or of one above it. It also panics where a thread calls [`forbid_under_lock`] while it holds any but a journal. A
//! release build checks nothing, and a lock is as large there as one without a rank.
//! The order as a list is in ARCHITECTURE.md, under "Locks".
//! Deliberately absent: locks that are never held together with one of these.

use std::ops::{Deref, DerefMut};

use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

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
    /// What waits for the thread that writes plain files.
    FilesQueue,
    /// A shard of the index in memory.
    Shard,
    /// A shard of the table of invalidations.
    Predicates,
    /// Where the records of a disk will be that are being written.
    InFlight,
    /// A shard of the index of a disk.
    DiskIndex,
    /// A shard of the index of plain files.
    FilesIndex,
    /// The files of a disk's journal. The only rank under which the file system is called: for one `write`.
    Journal,
    /// A lock under which no other is taken.
    Leaf,
}

#[cfg(debug_assertions)]
thread_local! {
    /// The ranks that this thread holds, a bit each.
    static HELD: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// The rank of a lock; nothing in a release build.
#[derive(Clone, Copy, Debug)]
struct Place {
    #[cfg(debug_assertions)]
    rank: Rank,
}

impl Place {
    const fn of(rank: Rank) -> Self {
        #[cfg(not(debug_assertions))]
        let _ = rank;
        Self {
            #[cfg(debug_assertions)]
            rank,
        }
    }
}

/// A rank that this thread holds, for as long as this is there.
#[derive(Debug)]
struct Held {
    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "looked at in debug builds"))]
    place: Place,
    /// Guards stay on their thread.
    _here: std::marker::PhantomData<*const ()>,
}

impl Held {
    #[inline]
    fn take(place: Place) -> Self {
        #[cfg(debug_assertions)]
        HELD.with(|held| {
            let above = held.get() >> place.rank as u8;
            assert!(
                above == 0,
                "{:?} is locked while a lock of the same rank or below it is held",
                place.rank
            );
            held.set(held.get() | 1 << place.rank as u8);
        });
        Self { place, _here: std::marker::PhantomData }
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        HELD.with(|held| held.set(held.get() & !(1 << self.place.rank as u8)));
    }
}

/// To be called before the file system is called.
///
/// # Panics
/// In a debug build, where this thread holds a lock of any rank but [`Rank::Journal`].
#[inline]
pub fn forbid_under_lock() {
    #[cfg(debug_assertions)]
    HELD.with(|held| {
        let held = held.get() & !(1 << Rank::Journal as u8);
        assert!(
            held == 0,
            "the system is called under a lock of memory, of a flight, of a body or of an index"
        );
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

impl<T> Guard<MutexGuard<'_, T>> {
    /// Waits until `woken` is notified. The lock is free meanwhile; this thread takes no other.
    pub fn wait(&mut self, woken: &Condvar) {
        woken.wait(&mut self.guard);
    }

    /// The same, at most for so long.
    pub fn wait_for(&mut self, woken: &Condvar, patience: Duration) {
        woken.wait_for(&mut self.guard, patience);
    }
}

/// A mutex with a rank.
#[derive(Debug)]
pub struct RankedMutex<T> {
    place: Place,
    lock: Mutex<T>,
}

impl<T> RankedMutex<T> {
    /// One that holds `value`.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self { place: Place::of(rank), lock: Mutex::new(value) }
    }

    /// What it holds.
    pub fn into_inner(self) -> T {
        self.lock.into_inner()
    }

    /// The same where nobody else can have it.
    pub fn exclusive(&mut self) -> &mut T {
        self.lock.get_mut()
    }

    /// Waits for it.
    #[inline]
    pub fn lock(&self) -> Guard<MutexGuard<'_, T>> {
        let held = Held::take(self.place);
        Guard { guard: self.lock.lock(), _held: held }
    }
}

impl<T: Default> Default for RankedMutex<T> {
    /// A leaf.
    fn default() -> Self {
        Self::new(Rank::Leaf, T::default())
    }
}

/// A lock for many readers or one writer, with a rank.
#[derive(Debug)]
pub struct RankedRwLock<T> {
    place: Place,
    lock: RwLock<T>,
}

impl<T> RankedRwLock<T> {
    /// One that holds `value`.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self { place: Place::of(rank), lock: RwLock::new(value) }
    }

    /// Waits until nobody writes.
    #[inline]
    pub fn read(&self) -> Guard<RwLockReadGuard<'_, T>> {
        let held = Held::take(self.place);
        Guard { guard: self.lock.read(), _held: held }
    }

    /// Waits until nobody reads or writes.
    #[inline]
    pub fn write(&self) -> Guard<RwLockWriteGuard<'_, T>> {
        let held = Held::take(self.place);
        Guard { guard: self.lock.write(), _held: held }
    }
}

impl<T: Default> Default for RankedRwLock<T> {
    /// A leaf.
    fn default() -> Self {
        Self::new(Rank::Leaf, T::default())
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
    #[test]
    #[should_panic(expected = "Leaf is locked")]
    fn no_lock_is_taken_under_a_leaf() {
        let (leaf, other) = (RankedMutex::<()>::default(), RankedRwLock::<()>::default());
        let _held = leaf.lock();
        let _other = other.read();
    }

    #[test]
    fn a_journal_is_written_under_its_lock() {
        let journal = RankedMutex::new(Rank::Journal, ());
        let _held = journal.lock();
        forbid_under_lock();
    }

    #[test]
    #[should_panic(expected = "the system is called")]
    fn a_journal_is_not_written_under_another_lock_as_well() {
        let (index, journal) = (RankedRwLock::new(Rank::DiskIndex, ()), RankedMutex::new(Rank::Journal, ()));
        let _held = (index.read(), journal.lock());
        forbid_under_lock();
    }

    #[test]
    fn a_wait_ends_with_the_lock_held_again() {
        let (lock, woken) = (RankedMutex::<bool>::default(), Condvar::new());
        std::thread::scope(|scope| {
            let mut is_set = lock.lock();
            scope.spawn(|| {
                *lock.lock() = true;
                woken.notify_one();
            });
            is_set.wait_for(&woken, Duration::ZERO);
            while !*is_set {
                is_set.wait(&woken);
            }
        });
        forbid_under_lock();
    }
}
