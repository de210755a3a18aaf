//! Orders at authorities, over real sockets: at Pebble, the ACME server of Let's Encrypt for tests, and at one that answers what a test wants.
//!
//! In: Pebble, built from tests/pebble/go.mod. Out: what is served, stored, reported and counted. Time is the clock that a test moves; nothing waits
//! for a schedule. Where Pebble cannot be built, each test with it says so and passes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_macros)]

mod business;
mod failures;
mod hostile;
mod kills;
mod orders;
mod places;
mod renewals;
mod scripted;
mod serving;
