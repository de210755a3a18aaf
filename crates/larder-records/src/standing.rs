//! How this larder stands in its fleet, as records need it.
//!
//! In: numbers of its invalidations, and positions in the fleet's log. Out: one for the other, and a clock that all members have in
//! common; for people, how it stands.

use std::time::Duration;

use larder_fleet::Position;
use larder_tier::outlook::PlaceFacts;

/// See the head of the file. Everything is `None` without a lease, and where there is no fleet.
pub trait Standing: Send + Sync {
    /// How far the log was applied here when the last invalidation had this number.
    fn position_of(&self, number: u64) -> Option<Position>;

    /// Whatever was invalidated here after this number may have been missed by a fetch at this position.
    fn number_of(&self, position: Position) -> Option<u64>;

    /// The time since 1970 by that clock. `None` also where it was set back, until it says again what it had said before.
    fn server_now(&self) -> Option<Duration>;

    /// What it would have said when it was set back last; zero where it was not.
    fn clock_set_back_at(&self) -> Duration;

    /// How it stands, for people.
    fn place(&self) -> Option<PlaceFacts>;
}
