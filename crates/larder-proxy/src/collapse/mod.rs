//! One forward request for many: who asks the origin, and who waits for whom.
//!
//! In: a key and a request that needs the origin. Out: a [`Role`]: lead (start the fetch), follow (wait for the one
//! that flies), or neither. A fetch is a [`Flight`]; it is a task of its own, tied to no client.
//!
//! A flight announces interim responses, and once a [`FlightOutcome`], to all who wait on one channel. If the fetch task
//! ends without an outcome, the first follower that looks again leads.
//!
//! Locks: a shard of the table, held for a look, never across a wait or a system call.

mod flight;
mod flight_request;
mod guard;
mod outcome;
mod storing;
mod table;

use std::sync::Arc;

use http::Method;
use larder_store::CacheKey;

use crate::decision::Boarding;
use crate::invalidation::How;
pub(crate) use flight::Flight;
pub(crate) use flight_request::FlightRequest;
pub(crate) use guard::{FlightGuard, Follower};
pub(crate) use outcome::{FlightOutcome, Kept, PassedAnswer, SharedResponse};
pub(crate) use storing::Storing;
pub(crate) use table::Flights;
use table::Shard;

/// What a request that needs the origin is given.
pub(crate) enum Role {
    /// There is no fetch for this yet: start it ([`FlightGuard::lead`]), and wait for it like everybody else.
    Lead(FlightGuard),
    /// Somebody does: wait.
    Follow(Follower),
    /// Somebody does, and began before something was invalidated: wait for that to end, then look again.
    After(Follower),
    /// Something was stored just now: look again.
    LookAgain,
    /// Too many wait already.
    Full,
}

impl Role {
    /// What the table said, as a fact for what comes next.
    pub(crate) fn boarding(&self) -> Boarding {
        match self {
            Self::Lead(_) | Self::Follow(_) => Boarding::Boarded,
            Self::After(_) => Boarding::Preceded,
            Self::LookAgain => Boarding::Changed,
            Self::Full => Boarding::Full,
        }
    }
}

impl Flights {
    /// Finds the flight that a request may follow, or registers a new one. `usable` says whether a response that has
    /// landed, and whose Vary selects it, may answer it now. `unchanged` says whether the look-up that led here would
    /// still find the same; it is asked once a new flight is registered, because the last one may have ended since.
    pub(crate) fn board(
        self: &Arc<Self>,
        flight_request: FlightRequest<'_>,
        usable: impl Fn(&SharedResponse) -> bool,
        unchanged: impl FnOnce() -> bool,
    ) -> Role {
        let hash = flight_request.key.hash();
        let mut shard = self.shard(hash).lock();
        let flights = || shard.get(&hash).into_iter().flatten();
        let takes = |flight: &&Arc<Flight>| {
            flight.takes(&flight_request, &usable) && flight.is_joined(&flight_request)
        };
        let followed = flights().find(takes).map(|flight| (flight, true));
        let awaited =
            || flights().find(|flight| flight.precedes(&flight_request)).map(|flight| (flight, false));
        if let Some((flight, may_follow)) = followed.or_else(awaited) {
            if flight.audience.waiters() >= self.waiters_per_key {
                return Role::Full;
            }
            let follower = Follower::new(flight, false);
            return if may_follow { Role::Follow(follower) } else { Role::After(follower) };
        }
        // What HEAD brings is not stored, so it is of no use to others.
        let is_open = flight_request.request.method != Method::HEAD;
        let guard = self.register(&mut shard, flight_request, is_open);
        drop(shard);
        // A flight that has left the table before had stored its response by then. Looking may ask the file system, so it
        // is not done under the lock: who has joined meanwhile looks again as well.
        if !unchanged() {
            guard.conclude(FlightOutcome::Overtaken);
            return Role::LookAgain;
        }
        Role::Lead(guard)
    }

    /// A flight that nobody else may join. It is in the table all the same, for invalidations to find it.
    pub(crate) fn alone(self: &Arc<Self>, flight_request: FlightRequest<'_>) -> FlightGuard {
        let mut shard = self.shard(flight_request.key.hash()).lock();
        self.register(&mut shard, flight_request, false)
    }

    fn register(
        self: &Arc<Self>,
        shard: &mut Shard,
        flight_request: FlightRequest<'_>,
        is_open: bool,
    ) -> FlightGuard {
        let hash = flight_request.key.hash();
        let begun = flight_request.begun;
        let (flight, sender) = Flight::new(flight_request, is_open);
        shard.entry(hash).or_default().push(Arc::clone(&flight));
        FlightGuard::new((flight, sender), Arc::clone(self), is_open, begun)
    }

    /// Tells every flight for the base of `key` that invalidation `number` concerns it. One that began before and whose
    /// response is removed stores nothing, and later requests do not join it. One whose response has to be validated
    /// stores it; who came before the invalidation joins it, and who comes later waits until it is over.
    /// The flight of the request that causes the invalidation is left alone.
    pub(crate) fn invalidate(&self, key: &CacheKey, number: u64, how: How, cause: Option<&FlightGuard>) {
        self.each_of_base(key, cause, |flight| flight.mark.note(number, how));
    }

    /// Whether there is any for the base of `key`, but for the one of the request that asks.
    pub(crate) fn any_of_base(&self, key: &CacheKey, cause: Option<&FlightGuard>) -> bool {
        let mut any = false;
        self.each_of_base(key, cause, |_| any = true);
        any
    }

    fn each_of_base(&self, key: &CacheKey, cause: Option<&FlightGuard>, mut tell: impl FnMut(&Flight)) {
        let shard = self.shard(key.hash()).lock();
        for flight in shard.get(&key.hash()).into_iter().flatten() {
            let is_cause = cause.is_some_and(|cause| cause.is_of(flight));
            if flight.key.base() == key.base() && !is_cause {
                tell(flight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RuleNumber;

    #[tokio::test]
    async fn who_joins_a_flight_that_is_not_needed_any_more_looks_again() {
        let flights = Flights::new(10);
        let (key, request) = (CacheKey::new("a", "/"), Arc::new(crate::testing::request("/")));
        let rule = RuleNumber::unique();
        let asks = || FlightRequest {
            key: &key,
            rule,
            request: &request,
            expected: None,
            wants_content: true,
            number: &|| 0,
            arrived: 0,
            begun: larder_http::time::Clock::default().now(),
        };
        let mut joined = None;
        let role = flights.board(
            asks(),
            |_| true,
            || {
                // The table is not locked meanwhile.
                joined = Some(flights.board(asks(), |_| true, || true));
                false
            },
        );
        assert!(matches!(role, Role::LookAgain) && flights.len() == 0);
        let Some(Role::Follow(mut follower)) = joined else { panic!("nothing to follow") };
        assert!(matches!(follower.outcome(drop).await, FlightOutcome::Overtaken));
    }
}
