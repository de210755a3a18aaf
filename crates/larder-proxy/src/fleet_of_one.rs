//! A fleet for unit tests: one member, which takes note of what it is told.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use larder_cache::purge::Predicate;
use larder_fleet::{EntryId, SharedPurge};
use parking_lot::Mutex;

use crate::fleet::{Entry, Membership, OwnPurge, Placing, read};

/// What an unsafe request has invalidated, as it was when the fleet was told.
#[derive(Debug)]
pub(crate) struct Propagated {
    /// The last invalidation when it was announced.
    pub(crate) announced: u64,
    /// The last one when it was told.
    pub(crate) last: u64,
    pub(crate) predicates: Vec<Predicate>,
}

/// The number of the last invalidation.
type LastNumber = dyn Fn() -> u64 + Send + Sync;

/// The member.
#[derive(Clone)]
pub(crate) struct FleetOfOne {
    last: Arc<LastNumber>,
    pub(crate) has_lease: Arc<AtomicBool>,
    pub(crate) told: Arc<Mutex<Vec<Propagated>>>,
}

struct Announced {
    by: FleetOfOne,
    number: u64,
}

impl FleetOfOne {
    pub(crate) fn new(has_lease: &Arc<AtomicBool>, last: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { last: Arc::new(last), has_lease: Arc::clone(has_lease), told: Arc::default() }
    }
}

impl Membership for FleetOfOne {
    fn may_use(&self) -> bool {
        self.has_lease.load(Ordering::SeqCst)
    }

    fn announce(&self, number: u64) -> Box<dyn OwnPurge> {
        Box::new(Announced { by: self.clone(), number })
    }

    fn receipt(&self, _: EntryId) -> Option<(SharedPurge, bool)> {
        None
    }

    fn wait(&self, _: EntryId, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }

    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}

impl OwnPurge for Announced {
    fn share(&self, _: Arc<[u8]>) -> Option<EntryId> {
        None
    }

    fn tell(&self, what: Arc<[u8]>) -> Option<Placing> {
        let Entry::Invalidation(predicates) = read(&what) else { panic!("{what:?}") };
        self.by.told.lock().push(Propagated { announced: self.number, last: (self.by.last)(), predicates });
        None
    }
}
