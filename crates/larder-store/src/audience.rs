//! The clients that wait for a response or read its body: one count, and a notification when it changes.
//!
//! In: clients that come and leave. Out: how many are there, and a future each for "nobody is there" and "somebody is
//! there". A client that has waited and then reads joins as a reader before it leaves as a waiter, so the count does not
//! reach zero in between. Both numbers are halves of one word: whoever sees it empty has seen both.
//! Deliberately absent: who the clients are, and what their absence means.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Waiting clients count in the lower half of the word.
const WAITER: u64 = 1;
/// Readers count in the upper half.
const READER: u64 = 1 << 32;

/// The clients of one response.
#[derive(Debug, Default)]
pub struct Audience {
    counts: AtomicU64,
    /// Notified when the audience begins or ceases to be empty, and when somebody begins to read.
    changed: Notify,
}

/// A member of an [`Audience`]. It leaves when it is dropped.
#[derive(Debug)]
pub struct Member {
    audience: Arc<Audience>,
    unit: u64,
}

impl Audience {
    /// A client that waits for the response.
    pub fn wait(self: &Arc<Self>) -> Member {
        self.join(WAITER)
    }

    /// A client that reads the body.
    pub fn read(self: &Arc<Self>) -> Member {
        self.join(READER)
    }

    fn join(self: &Arc<Self>, unit: u64) -> Member {
        let before = self.counts.fetch_add(unit, Ordering::AcqRel);
        if before == 0 || (before < READER && unit == READER) {
            self.changed.notify_waiters();
        }
        Member { audience: Arc::clone(self), unit }
    }

    /// How many wait.
    pub fn waiters(&self) -> usize {
        (self.counts.load(Ordering::Acquire) % READER) as usize
    }

    /// How many read.
    pub fn readers(&self) -> usize {
        (self.counts.load(Ordering::Acquire) / READER) as usize
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.counts.load(Ordering::Acquire) == 0
    }

    /// Resolves when nobody is there.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn empty(&self) {
        self.until(|audience| audience.is_empty()).await;
    }

    /// Resolves when somebody is there.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn present(&self) {
        self.until(|audience| !audience.is_empty()).await;
    }

    /// Resolves when somebody reads: true; or when nobody is there to do so: false.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn reads(&self) -> bool {
        self.until(|audience| audience.readers() > 0 || audience.is_empty()).await;
        !self.is_empty()
    }

    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let mut changed = pin!(self.changed.notified());
        loop {
            // Registered before the look: a change behind it is not missed.
            changed.as_mut().enable();
            if holds(self) {
                return;
            }
            changed.as_mut().await;
            changed.set(self.changed.notified());
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.audience.counts.fetch_sub(self.unit, Ordering::AcqRel) == self.unit {
            self.audience.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_ready(future: Pin<&mut impl Future>) -> bool {
        future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn waiters_and_readers_are_told_apart_and_counted_together() {
        let audience = Arc::<Audience>::default();
        let waiters = [audience.wait(), audience.wait()];
        let reader = audience.read();
        assert_eq!((audience.waiters(), audience.readers()), (2, 1));
        drop(waiters);
        assert!(!audience.is_empty() && audience.waiters() == 0);
        drop(reader);
        assert!(audience.is_empty());
    }

    #[test]
    fn a_change_wakes_those_who_wait_for_it() {
        let audience = Arc::<Audience>::default();
        assert!(is_ready(pin!(audience.empty())));
        let mut present = pin!(audience.present());
        assert!(!is_ready(present.as_mut()));
        let member = audience.wait();
        assert!(is_ready(present));
        let mut empty = pin!(audience.empty());
        assert!(!is_ready(empty.as_mut()));
        let reader = audience.read();
        drop(member);
        assert!(!is_ready(empty.as_mut()), "a reader is left");
        drop(reader);
        assert!(is_ready(empty));
    }

    #[test]
    fn a_waiter_that_reads_is_waited_for_and_one_that_leaves_is_not() {
        let audience = Arc::<Audience>::default();
        let waiter = audience.wait();
        let mut reads = pin!(audience.reads());
        assert!(!is_ready(reads.as_mut()));
        let reader = audience.read();
        assert_eq!(reads.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(true));
        drop(reader);
        let mut reads = pin!(audience.reads());
        assert!(!is_ready(reads.as_mut()));
        drop(waiter);
        assert_eq!(reads.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(false));
    }
}
