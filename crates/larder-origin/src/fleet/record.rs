//! What outlives a reload of the settings, and a short absence of an address from DNS.

use std::sync::atomic::AtomicU64;

use tokio::time::Instant;

use super::answers::Answers;
use super::condition::Condition;

/// What is remembered of a server's address as long as anybody uses it.
#[derive(Debug)]
pub(crate) struct EndpointRecord {
    pub(super) condition: Condition,
    pub(super) in_flight: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) answers: Answers,
}

impl EndpointRecord {
    pub(super) fn new(since: Option<Instant>) -> Self {
        Self {
            condition: Condition::new(since),
            in_flight: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            answers: Answers::default(),
        }
    }
}
