//! How long a server may take to reply, and when its connection is given up.
//!
//! In: the time limit of a look-up. Out: two moments for each request. At the first one its caller goes on without a reply. The
//! connection stays, because its replies are told apart by their order and a late one is read and dropped. At the second one the
//! connection is closed: a reply that is as late as this is not expected any more.
//! Deliberately absent: reading a clock.

use std::time::Duration;

use tokio::time::Instant;

/// A connection is closed when a reply takes so many times as long as its caller waits.
const CLOSED_AFTER: u32 = 5;

/// Time limits of the requests on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    answer: Duration,
    close: Duration,
}

impl Limits {
    /// For requests with a caller who waits at most `timeout`.
    pub fn waited_for(timeout: Duration) -> Self {
        Self { answer: timeout, close: timeout.saturating_mul(CLOSED_AFTER) }
    }

    /// For requests for which nobody waits: they have the time in which the others' connection is closed.
    pub fn unattended(timeout: Duration) -> Self {
        let close = timeout.saturating_mul(CLOSED_AFTER);
        Self { answer: close, close }
    }

    /// The time limit of one request, connecting included.
    pub fn answer(&self) -> Duration {
        self.answer
    }

    /// The two moments of a request that is made at `now`.
    pub fn from(&self, now: Instant) -> Deadline {
        Deadline { answer_by: now + self.answer, close_at: now + self.close }
    }
}

/// The two moments of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// Its caller goes on without a reply.
    pub answer_by: Instant,
    /// Its connection is closed.
    pub close_at: Instant,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_given_five_times_the_time_of_its_callers() {
        let now = Instant::now();
        let ms = Duration::from_millis;
        let waited = Limits::waited_for(ms(200)).from(now);
        assert_eq!((waited.answer_by - now, waited.close_at - now), (ms(200), ms(1000)));
        let unattended = Limits::unattended(ms(200)).from(now);
        assert_eq!((unattended.answer_by - now, unattended.close_at - now), (ms(1000), ms(1000)));
    }
}
