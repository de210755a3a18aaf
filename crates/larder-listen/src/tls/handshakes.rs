//! How many handshakes a worker has under way, and whose turn it is to compute.
//!
//! In: handshakes that begin and end. Out: a place for each, bounded, and the turn, which one has at a time. Public-key work is the longest that a worker ever does at a stretch: many
//! times a hit. So the holder of the turn gives way to everything else that is ready before it lets go of it, and a hit waits for one handshake at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// The handshakes of one worker.
#[derive(Debug)]
pub struct Handshakes {
    open: AtomicUsize,
    ended: Notify,
    turn: Semaphore,
}

impl Default for Handshakes {
    fn default() -> Self {
        Self { open: AtomicUsize::new(0), ended: Notify::new(), turn: Semaphore::new(1) }
    }
}

impl Handshakes {
    /// So many are under way.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Waits until fewer than `max` are under way, and begins one more. Only to be called on the worker's thread.
    pub(crate) async fn begin(self: &Arc<Self>, max: usize) -> OpenHandshake {
        while self.open() >= max.max(1) {
            self.ended.notified().await;
        }
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenHandshake(Arc::clone(self))
    }

    /// Waits for the turn, in the order of asking.
    pub(crate) async fn turn(&self) -> Option<Turn<'_>> {
        // It is never closed.
        self.turn.acquire().await.ok().map(|permit| Turn { _permit: permit })
    }
}

/// The right to compute.
pub(crate) struct Turn<'a> {
    _permit: SemaphorePermit<'a>,
}

impl Turn<'_> {
    /// Lets everything run that is ready, then lets go.
    pub(crate) async fn give_way(self) {
        tokio::task::yield_now().await;
    }
}

/// A handshake that is under way. To drop it is to end it.
#[derive(Debug)]
pub(crate) struct OpenHandshake(Arc<Handshakes>);

impl OpenHandshake {
    pub(crate) fn all(&self) -> &Handshakes {
        &self.0
    }
}

impl Drop for OpenHandshake {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn a_handshake_too_many_waits_for_the_end_of_another() {
        let handshakes = Arc::new(Handshakes::default());
        let mut context = Context::from_waker(Waker::noop());
        let mut begin = |max| pin!(handshakes.begin(max)).poll(&mut context);
        let (Poll::Ready(one), Poll::Ready(two)) = (begin(2), begin(2)) else { panic!("there is room") };
        assert!(begin(2).is_pending());
        let Poll::Ready(_three) = begin(3) else { panic!("a reload has raised the bound") };
        drop(one);
        assert!(begin(2).is_pending());
        drop(two);
        assert!(begin(2).is_ready());
        assert_eq!(handshakes.open(), 1);
    }

    #[tokio::test]
    async fn what_is_ready_runs_between_two_turns() {
        let handshakes = Arc::new(Handshakes::default());
        let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let handshake = |name: &'static str| {
            let (handshakes, order) = (Arc::clone(&handshakes), Arc::clone(&order));
            async move {
                let turn = handshakes.turn().await.expect("open");
                order.lock().push(name);
                turn.give_way().await;
            }
        };
        let hit = {
            let order = Arc::clone(&order);
            async move {
                for _ in 0..2 {
                    order.lock().push("hit");
                    tokio::task::yield_now().await;
                }
            }
        };
        let all = [tokio::spawn(handshake("a")), tokio::spawn(handshake("b")), tokio::spawn(hit)];
        for task in all {
            task.await.expect("ended");
        }
        assert_eq!(*order.lock(), ["a", "hit", "hit", "b"]);
    }
}
