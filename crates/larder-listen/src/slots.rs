//! How many connections may be open at once, and descriptors that are kept for when there are no others.
//!
//! In: a number, which may change while connections are open. Out: a permit for each connection. Where the number falls below
//! what is open nothing is cut: permits that come back are withheld until it fits. [`Spare`] is for the few connections that have
//! to be accepted also where the process has no descriptor left.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Slots for connections, shared by all accept loops that count together.
#[derive(Debug)]
pub struct Slots {
    free: Arc<Semaphore>,
    max: AtomicUsize,
    /// To be withheld as permits come back. Held for the length of a change.
    owed: Mutex<usize>,
    is_owed: AtomicBool,
    spare: Option<Spare>,
}

impl Slots {
    /// `max` of them; at least one.
    pub fn new(max: usize) -> Arc<Self> {
        Self::of(max, None)
    }

    /// The same, with `spare` descriptors kept for them.
    pub fn with_spare(max: usize, spare: usize) -> Arc<Self> {
        Self::of(max, Some(Spare::new(spare)))
    }

    fn of(max: usize, spare: Option<Spare>) -> Arc<Self> {
        let max = max.clamp(1, Semaphore::MAX_PERMITS);
        let free = Arc::new(Semaphore::new(max));
        Arc::new(Self {
            free,
            max: AtomicUsize::new(max),
            owed: Mutex::new(0),
            is_owed: AtomicBool::new(false),
            spare,
        })
    }

    /// The most connections at once.
    pub fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// From now on `max` of them.
    pub fn resize(&self, max: usize) {
        let max = max.clamp(1, Semaphore::MAX_PERMITS);
        let mut owed = self.owed.lock();
        let before = self.max.swap(max, Ordering::Relaxed);
        match max.checked_sub(before) {
            Some(more) => {
                let kept = more.min(*owed);
                *owed -= kept;
                self.free.add_permits(more - kept);
            }
            None => {
                *owed += before - max;
                *owed -= self.free.forget_permits(*owed);
            }
        }
        self.is_owed.store(*owed > 0, Ordering::Relaxed);
    }

    /// A free slot now, if there is one.
    pub(crate) fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.settle();
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Waits for a free slot.
    pub(crate) async fn wait(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            let slot = Arc::clone(&self.free).acquire_owned().await.ok()?;
            let mut owed = self.owed.lock();
            if *owed == 0 {
                return Some(slot);
            }
            *owed -= 1;
            self.is_owed.store(*owed > 0, Ordering::Relaxed);
            slot.forget();
        }
    }

    /// Withholds what has come back since the number fell.
    fn settle(&self) {
        if self.is_owed.load(Ordering::Relaxed) {
            let mut owed = self.owed.lock();
            *owed -= self.free.forget_permits(*owed);
            self.is_owed.store(*owed > 0, Ordering::Relaxed);
        }
    }

    /// Frees a descriptor that was kept, for a connection that waits to be accepted.
    pub(crate) fn release_spare(&self) -> bool {
        self.spare.as_ref().is_some_and(Spare::release)
    }

    /// Has as many kept as before, as far as there are any.
    pub(crate) fn refill_spare(&self) {
        self.spare.iter().for_each(Spare::refill);
    }
}

/// Descriptors of nothing.
#[derive(Debug)]
struct Spare {
    files: Mutex<Vec<File>>,
    count: usize,
}

impl Spare {
    fn new(count: usize) -> Self {
        let spare = Self { files: Mutex::new(Vec::with_capacity(count)), count };
        spare.refill();
        spare
    }

    fn release(&self) -> bool {
        self.files.lock().pop().is_some()
    }

    fn refill(&self) {
        let mut files = self.files.lock();
        while files.len() < self.count
            && let Ok(file) = File::open("/dev/null")
        {
            files.push(file);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn fewer_slots_cut_nothing_and_are_withheld_as_they_come_back() {
        let slots = Slots::new(4);
        let mut held: Vec<_> = (0..3).map(|_| slots.take().unwrap()).collect();
        slots.resize(2);
        assert!(slots.take().is_none());
        held.truncate(2);
        assert!(slots.take().is_none(), "the one that came back is withheld");
        held.truncate(1);
        held.push(slots.take().unwrap());
        assert!(slots.take().is_none());
        // More again, of which some are owed to nobody any more.
        slots.resize(1);
        slots.resize(3);
        held.push(slots.take().unwrap());
        assert!(slots.take().is_none());
        slots.resize(1);
        held.truncate(1);
        let waiting = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.wait().await }
        });
        held.clear();
        assert!(waiting.await.unwrap().is_some());
        assert_eq!(slots.max(), 1);
    }
}
