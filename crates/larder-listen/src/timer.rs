//! Time limits that cost nothing while nobody waits.
//!
//! A connection has one [`Timer`]. It is armed only when the connection really waits, and left armed for an earlier
//! deadline than the one asked for: when that fires too early it is armed again. So a busy keep-alive connection
//! touches the runtime's timer wheel about once a minute, not once a request; between, not even the timer is asked, since it
//! will wake the task in any case. [`Pace`] is the limit on slow peers.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::task::coop;
use tokio::time::{Instant, Sleep, sleep_until};

/// One reusable timer.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    /// Who will be woken, where the runtime's timer is known to hold the deadline.
    armed_for: Option<Waker>,
}

impl Timer {
    /// Ready once `deadline` has passed; until then the task will be woken no later than at `deadline`.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        let is_armed = self.armed_for.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if is_armed && sleep.deadline() <= deadline && !sleep.is_elapsed() {
            return Poll::Pending;
        }
        loop {
            if sleep.deadline() > deadline {
                sleep.as_mut().reset(deadline);
            }
            // A task that has used up its budget is told to come again, and nothing is armed then.
            let has_budget = coop::has_budget_remaining();
            if sleep.as_mut().poll(cx).is_pending() {
                if !has_budget {
                    self.armed_for = None;
                } else if !is_armed {
                    self.armed_for = Some(cx.waker().clone());
                }
                return Poll::Pending;
            }
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
    }
}

/// The least that a peer must move while it is waited for: something within `idle`, and `rate_min` bytes a second
/// over each `window`. Only time that is spent waiting for the peer counts: a slow origin is not the client's fault.
#[derive(Debug)]
pub(crate) struct Pace {
    idle: Duration,
    window: Duration,
    window_bytes_min: u64,
    waiting_since: Option<Instant>,
    /// The same, or where in this wait the window began.
    window_since: Option<Instant>,
    window_waited: Duration,
    window_bytes: u64,
}

impl Pace {
    pub(crate) fn new(idle: Duration, window: Duration, rate_min: u64) -> Self {
        let window_bytes_min = rate_min.saturating_mul(window.as_secs());
        Self {
            idle,
            window,
            window_bytes_min,
            waiting_since: None,
            window_since: None,
            window_waited: Duration::ZERO,
            window_bytes: 0,
        }
    }

    /// Notes that `bytes` moved, which ends a wait.
    pub(crate) fn moved(&mut self, bytes: u64) {
        if let Some(since) = self.window_since.take() {
            self.window_waited += since.elapsed();
        }
        self.waiting_since = None;
        self.window_bytes = self.window_bytes.saturating_add(bytes);
    }

    /// Forgets all that it has noted, as if the peer had never been waited for.
    pub(crate) fn restart(&mut self) {
        self.waiting_since = None;
        self.window_since = None;
        self.window_waited = Duration::ZERO;
        self.window_bytes = 0;
    }

    /// To be polled while the peer is waited for. Ready once it is too slow.
    pub(crate) fn poll_stalled(&mut self, cx: &mut Context<'_>, timer: &mut Timer) -> Poll<()> {
        loop {
            let idle_end = *self.waiting_since.get_or_insert_with(Instant::now) + self.idle;
            let window_left = self.window.saturating_sub(self.window_waited);
            let window_end = *self.window_since.get_or_insert_with(Instant::now) + window_left;
            ready!(timer.poll(cx, idle_end.min(window_end)));
            let now = Instant::now();
            if now >= idle_end || self.window_bytes < self.window_bytes_min {
                return Poll::Ready(());
            }
            self.window_since = Some(now);
            self.window_waited = Duration::ZERO;
            self.window_bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_timer_armed_too_early_waits_for_the_later_deadline() {
        let mut timer = Timer::default();
        let start = Instant::now();
        let early = start + Duration::from_secs(1);
        assert!(poll_fn(|cx| Poll::Ready(timer.poll(cx, early))).await.is_pending());
        let late = start + Duration::from_secs(5);
        poll_fn(|cx| timer.poll(cx, late)).await;
        assert!(start.elapsed() >= Duration::from_secs(5));
        poll_fn(|cx| timer.poll(cx, early)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_is_first_asked_without_budget_is_armed_by_the_next_turn() {
        let mut timer = Timer::default();
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut turns = 0;
        let ends = poll_fn(|cx| {
            turns += 1;
            if turns == 1 {
                // All that a task may do in one turn.
                while let Poll::Ready(budget) = coop::poll_proceed(cx) {
                    budget.made_progress();
                }
            }
            timer.poll(cx, deadline)
        });
        tokio::time::timeout(Duration::from_secs(5), ends).await.expect("it is armed");
        assert!(turns >= 3, "one without budget, one that arms, one that ends: {turns}");
    }

    /// Seconds until a peer counts as stalled that moves `bytes` each second for `moves` seconds.
    async fn stalled_after(bytes: u64, moves: u64) -> u64 {
        let second = Duration::from_secs(1);
        let mut timer = Timer::default();
        let mut pace = Pace::new(second * 30, second * 30, 256);
        let start = Instant::now();
        let mut done = 0;
        while tokio::time::timeout(second, poll_fn(|cx| pace.poll_stalled(cx, &mut timer))).await.is_err() {
            if done < moves {
                pace.moved(bytes);
                done += 1;
            }
        }
        start.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_trickles_is_as_slow_as_one_that_stops() {
        assert_eq!(stalled_after(0, 0).await, 30);
        assert_eq!(stalled_after(255, 1000).await, 30);
        // The first window passes; in the second the peer stops after 40 s in all.
        assert_eq!(stalled_after(1000, 40).await, 70);
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_is_not_spent_waiting_does_not_count() {
        let second = Duration::from_secs(1);
        let mut timer = Timer::default();
        let mut pace = Pace::new(second * 30, second * 30, 256);
        for _ in 0..10 {
            let wait = tokio::time::timeout(second, poll_fn(|cx| pace.poll_stalled(cx, &mut timer)));
            assert!(wait.await.is_err());
            pace.moved(1);
            tokio::time::sleep(second * 100).await;
        }
    }
}
