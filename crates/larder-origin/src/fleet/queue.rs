//! The cap on requests in flight, and the queue of those that wait for it.
//!
//! In: requests. Out: a [`Seat`] each, held until the response has ended; or the reason why there is none. Shared by
//! all workers and kept over reloads: a lower cap holds as soon as enough requests have ended, a higher one at once.
//! Who waits is served in the order of arrival; who stops waiting leaves its place to the next, because a dropped
//! future leaves the semaphore's own queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::error::OriginError;
use crate::settings::InFlightLimit;

#[derive(Debug)]
pub(crate) struct Queue {
    seats: Semaphore,
    waiting: AtomicUsize,
    /// Guards itself; held for a few instructions.
    cap: Mutex<Cap>,
}

#[derive(Debug, Default)]
struct Cap {
    /// Seats there are, those in use included.
    seats: usize,
    /// Seats in use that are too many; the next to come back go.
    surplus: usize,
    /// Of the settings that said so; older ones are not heard.
    version: u64,
}

impl Default for Queue {
    fn default() -> Self {
        Self { seats: Semaphore::new(0), waiting: AtomicUsize::new(0), cap: Mutex::default() }
    }
}

impl Queue {
    /// Requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Takes a seat, at the latest at `until` or when the queue's own time is over. `None` where there is no cap.
    /// `version` grows with each change of `limit`.
    ///
    /// # Errors
    /// [`OriginError::QueueFull`], [`OriginError::QueueTimeout`], or [`OriginError::TotalTimeout`] at `until`.
    ///
    /// # Cancel safety
    /// May be dropped at any time; the place in the queue is free at once.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        limit: &InFlightLimit,
        version: u64,
        until: Option<Instant>,
    ) -> Result<Option<Seat>, OriginError> {
        let Some(max) = limit.max else {
            return Ok(None);
        };
        self.resize(max.clamp(1, Semaphore::MAX_PERMITS), version);
        if let Ok(permit) = self.seats.try_acquire() {
            permit.forget();
            return Ok(Some(Seat(self.clone())));
        }
        let _waiting = Waiting::new(&self.waiting, limit.queue)?;
        let patience = Instant::now() + limit.queue_timeout;
        let (patience, error) = match until {
            Some(until) if until < patience => (until, OriginError::TotalTimeout),
            _ => (patience, OriginError::QueueTimeout),
        };
        match tokio::time::timeout_at(patience, self.seats.acquire()).await {
            Ok(Ok(permit)) => {
                permit.forget();
                Ok(Some(Seat(self.clone())))
            }
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(error),
        }
    }

    fn resize(&self, max: usize, version: u64) {
        let mut cap = self.cap.lock();
        if cap.version >= version {
            return;
        }
        cap.version = version;
        // What is given back first pays what is too many.
        let wanted = cap.seats.saturating_sub(cap.surplus);
        if max >= wanted {
            let more = max - wanted;
            let kept = more.min(cap.surplus);
            cap.surplus -= kept;
            self.seats.add_permits(more - kept);
            cap.seats += more - kept;
        } else {
            let fewer = wanted - max;
            let free = self.seats.forget_permits(fewer);
            cap.seats -= free;
            cap.surplus += fewer - free;
        }
    }
}

/// The right to be one of those in flight.
#[derive(Debug)]
pub(crate) struct Seat(Arc<Queue>);

impl Drop for Seat {
    fn drop(&mut self) {
        let mut cap = self.0.cap.lock();
        if cap.surplus > 0 {
            cap.surplus -= 1;
            cap.seats -= 1;
        } else {
            self.0.seats.add_permits(1);
        }
    }
}

/// A place in the queue.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(waiting: &'a AtomicUsize, max: usize) -> Result<Self, OriginError> {
        waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
                (waiting < max).then_some(waiting + 1)
            })
            .map(|_| Self(waiting))
            .map_err(|_| OriginError::QueueFull)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn limit(max: usize, queue: usize) -> InFlightLimit {
        InFlightLimit { max: Some(max), queue, queue_timeout: Duration::from_secs(5) }
    }

    fn token<T: std::fmt::Debug>(outcome: Result<T, OriginError>) -> &'static str {
        outcome.unwrap_err().token()
    }

    /// Takes a seat that must be free.
    async fn seat(queue: &Arc<Queue>, limit: &InFlightLimit, version: u64) -> Seat {
        let full = InFlightLimit { queue: 0, ..*limit };
        queue.enter(&full, version, None).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn without_a_cap_nobody_waits() {
        let queue = Arc::new(Queue::default());
        assert!(queue.enter(&InFlightLimit::default(), 1, None).await.unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_queue_is_bounded_in_number_and_in_time() {
        let queue = Arc::new(Queue::default());
        let limit = limit(1, 1);
        let first = seat(&queue, &limit, 1).await;
        let begun = Instant::now();
        let (second, third) = tokio::join!(queue.enter(&limit, 1, None), async {
            let third = token(queue.enter(&limit, 1, None).await);
            assert_eq!(queue.waiting(), 1);
            third
        });
        assert_eq!((token(second), third), ("queue-timeout", "queue-full"));
        assert_eq!((begun.elapsed(), queue.waiting()), (limit.queue_timeout, 0));
        let until = Instant::now() + Duration::from_secs(1);
        assert_eq!(token(queue.enter(&limit, 1, Some(until)).await), "total-timeout");
        drop(first);
        seat(&queue, &limit, 1).await;
    }

    #[tokio::test]
    async fn who_waits_is_served_in_the_order_of_arrival_and_who_leaves_is_passed_over() {
        let queue = Arc::new(Queue::default());
        let limit = limit(1, 3);
        let held = seat(&queue, &limit, 1).await;
        let mut one = Box::pin(queue.enter(&limit, 1, None));
        let mut two = Box::pin(queue.enter(&limit, 1, None));
        let mut three = Box::pin(queue.enter(&limit, 1, None));
        for waiter in [&mut one, &mut two, &mut three] {
            assert!(
                std::future::poll_fn(|cx| std::task::Poll::Ready(waiter.as_mut().poll(cx)))
                    .await
                    .is_pending()
            );
        }
        assert_eq!(queue.waiting(), 3);
        drop(one);
        drop(held);
        // The seat is the second's already, before it has looked; dropped now, it must not keep it.
        drop(two);
        assert!(three.await.unwrap().is_some());
        assert_eq!(queue.waiting(), 0);
        seat(&queue, &limit, 1).await;
    }

    #[tokio::test]
    async fn a_changed_cap_holds_for_those_in_flight_too() {
        let queue = Arc::new(Queue::default());
        let mut held = vec![seat(&queue, &limit(3, 0), 1).await];
        held.push(seat(&queue, &limit(3, 0), 1).await);
        held.push(seat(&queue, &limit(3, 0), 1).await);
        let full = |limit, version| {
            let queue = queue.clone();
            async move { token(queue.enter(&limit, version, None).await) }
        };
        // Down to one: two must end before a third can begin.
        assert_eq!(full(limit(1, 0), 2).await, "queue-full");
        held.truncate(1);
        assert_eq!(full(limit(1, 0), 2).await, "queue-full");
        // Settings that were in force before are not heard.
        assert_eq!(full(limit(3, 0), 1).await, "queue-full");
        held.clear();
        let one = seat(&queue, &limit(1, 0), 2).await;
        assert_eq!(full(limit(1, 0), 2).await, "queue-full");
        // And up again, at once; also where seats were still owed.
        held.push(seat(&queue, &limit(2, 0), 3).await);
        assert_eq!(full(limit(1, 0), 4).await, "queue-full");
        assert_eq!(full(limit(2, 0), 5).await, "queue-full");
        held.clear();
        held.push(seat(&queue, &limit(2, 0), 5).await);
        assert_eq!(full(limit(2, 0), 5).await, "queue-full");
        drop(one);
    }
}
