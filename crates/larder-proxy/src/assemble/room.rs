//! How much of its fragments a page holds at a time.
//!
//! In: fetches that are to begin. Out: a [`FetchPlace`] for each, in the order in which they came. A fetch takes the room of a whole short
//! body, and its body keeps as much of it as it needs until it was sent. So fragments that wait for their turn in the page take
//! room from those that are not fetched yet, and a page with a slow first fragment does not gather all others in memory.
//! A page may need one more fragment before anything of it can be sent. Then that one is called, and comes in beyond the room: the one
//! at the front is sent at once, and all others of this kind together have a limit of their own.
//! Deliberately absent: bodies that a store keeps, which count there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::GOOD_BYTES;

/// The room of one body, in KiB.
const BODY_KIB: usize = GOOD_BYTES / 1024;
/// What may be held beyond the room, in KiB.
const BEYOND_KIB_MAX: usize = 8 * 1024;

/// The room of a page.
#[derive(Clone)]
pub(super) struct PageRoom(Arc<RoomCounts>);

struct RoomCounts {
    fetches: Arc<Semaphore>,
    free_kib: Arc<Semaphore>,
    all_kib: usize,
    /// What bodies hold of it that have come.
    held_kib: AtomicUsize,
    /// What bodies hold that were called.
    beyond_kib: AtomicUsize,
}

impl PageRoom {
    /// For so many fetches at once. There is room for one body more, so that short ones that have come keep no fetch back.
    pub(super) fn new(at_once: usize) -> Self {
        let fetches = Arc::new(Semaphore::new(at_once.min(Semaphore::MAX_PERMITS)));
        let all_kib = at_once.saturating_add(1).saturating_mul(BODY_KIB).min(Semaphore::MAX_PERMITS);
        let free_kib = Arc::new(Semaphore::new(all_kib));
        Self(Arc::new(RoomCounts {
            fetches,
            free_kib,
            all_kib,
            held_kib: AtomicUsize::new(0),
            beyond_kib: AtomicUsize::new(0),
        }))
    }

    /// Waits until there is room and fewer fetches go on than may, or until `called`.
    ///
    /// # Cancel safety
    /// May be dropped at any time; its turn is lost then.
    pub(super) async fn enter(self, called: &Notify) -> FetchPlace {
        let kib = u32::try_from(BODY_KIB).unwrap_or(u32::MAX);
        let taken = tokio::select! {
            biased;
            taken = self.take(kib) => taken,
            () = called.notified() => None,
        };
        FetchPlace { room: self, taken }
    }

    /// A place among the fetches, then room. `None` never comes: both are open as long as there is a page.
    async fn take(&self, kib: u32) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let fetch = Arc::clone(&self.0.fetches).acquire_owned().await.ok()?;
        Some((fetch, Arc::clone(&self.0.free_kib).acquire_many_owned(kib).await.ok()?))
    }

    /// Whether bodies that have come leave no room for another fetch. Then none is on its way, unless it was called.
    pub(super) fn is_full(&self) -> bool {
        self.held_kib() + BODY_KIB > self.0.all_kib
    }

    /// Whether nothing more may come in beyond the room.
    pub(super) fn is_exhausted(&self) -> bool {
        self.0.beyond_kib.load(Ordering::Relaxed) >= BEYOND_KIB_MAX
    }

    /// What bodies hold of the room.
    pub(super) fn held_kib(&self) -> usize {
        self.0.held_kib.load(Ordering::Relaxed)
    }

    fn counter(&self, is_beyond: bool) -> &AtomicUsize {
        if is_beyond { &self.0.beyond_kib } else { &self.0.held_kib }
    }
}

/// Room for a fetch that is on its way.
pub(super) struct FetchPlace {
    room: PageRoom,
    /// A place among the fetches, and room; `None` beyond them.
    taken: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl FetchPlace {
    /// Keeps what a body needs that has come with so many bytes, and gives the rest back.
    pub(super) fn keep(self, bytes: usize) -> TakenRoom {
        let Self { room, taken } = self;
        let mut permit = taken.map(|(_, permit)| permit);
        let kib = bytes.div_ceil(1024).min(BODY_KIB);
        if let Some(permit) = &mut permit {
            drop(permit.split(permit.num_permits().saturating_sub(kib)));
        }
        let is_beyond = permit.is_none();
        room.counter(is_beyond).fetch_add(kib, Ordering::Relaxed);
        TakenRoom { room, kib, is_beyond, _permit: permit }
    }
}

/// What a body holds; given back on drop.
pub(super) struct TakenRoom {
    room: PageRoom,
    kib: usize,
    is_beyond: bool,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Drop for TakenRoom {
    fn drop(&mut self) {
        self.room.counter(self.is_beyond).fetch_sub(self.kib, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_body_keeps_what_it_needs_and_gives_it_back() {
        let (room, called) = (PageRoom::new(2), Notify::new());
        let enter = || room.clone().enter(&called).now_or_never();
        let (first, second) = (enter().unwrap(), enter().unwrap());
        // There is room, but two fetches go on.
        assert!(enter().is_none() && !room.is_full());
        let (first, second) = (first.keep(2000), second.keep(GOOD_BYTES + 1));
        assert_eq!(room.held_kib(), 2 + BODY_KIB);
        let third = enter().unwrap().keep(GOOD_BYTES);
        assert!(enter().is_none() && room.is_full());
        drop(first);
        assert_eq!(enter().unwrap().keep(0).kib, 0);
        drop((second, third));
        assert_eq!((room.held_kib(), room.0.free_kib.available_permits()), (0, 3 * BODY_KIB));
        assert_eq!(room.0.fetches.available_permits(), 2);
    }

    #[test]
    fn what_is_called_comes_in_beyond_the_room() {
        let (room, called) = (PageRoom::new(1), Notify::new());
        let inside = room.clone().enter(&called).now_or_never().unwrap().keep(BODY_KIB * 1024);
        let waiting = room.clone().enter(&called).now_or_never().unwrap();
        called.notify_one();
        let beyond = room.clone().enter(&called).now_or_never().unwrap().keep(GOOD_BYTES);
        assert_eq!((room.held_kib(), room.0.beyond_kib.load(Ordering::Relaxed)), (BODY_KIB, BODY_KIB));
        assert!(!room.is_exhausted());
        drop((inside, beyond, waiting));
        assert_eq!((room.held_kib(), room.0.beyond_kib.load(Ordering::Relaxed)), (0, 0));
    }
}
