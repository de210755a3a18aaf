//! What the process remembers of an origin's servers while settings and addresses change.
//!
//! In: servers and the places where they are reached. Out: their records. A record lives as long as an endpoint or a
//! request uses it, and for a while after its address left DNS. Many name servers give a part of their addresses at a
//! time, and an address that failed a moment ago must not come back as one that never did.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::record::EndpointRecord;
use crate::place::Place;
use crate::settings::ServerAddress;

/// Records of addresses that left DNS; beyond that the oldest is forgotten early.
const DEPARTED_MAX: usize = 1024;

type Known = HashMap<(Arc<ServerAddress>, Place), Weak<EndpointRecord>>;

#[derive(Debug, Default)]
pub(crate) struct Records {
    known: Mutex<Known>,
    /// Records that are kept although their address has left, and until when.
    departed: Mutex<VecDeque<(Instant, Arc<EndpointRecord>)>>,
}

impl Records {
    /// What is known of this address; otherwise a new record of one that came at `since`.
    pub(super) fn record(
        &self,
        server: &Arc<ServerAddress>,
        place: &Place,
        since: Option<Instant>,
    ) -> Arc<EndpointRecord> {
        let over = self.departed_before(Instant::now());
        drop(over);
        let mut records = self.known.lock();
        let key = (server.clone(), place.clone());
        if let Some(known) = records.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        records.retain(|_, record| record.strong_count() > 0);
        let record = Arc::new(EndpointRecord::new(since));
        records.insert(key, Arc::downgrade(&record));
        record
    }

    /// Keeps the record of an address that has left, for a while.
    pub(super) fn depart(&self, record: Arc<EndpointRecord>, keep: Duration) {
        let now = Instant::now();
        let over = self.departed_before(now);
        self.departed.lock().push_back((now + keep, record));
        drop(over);
    }

    /// Takes out those whose time is over, and the oldest where there are too many. To be dropped after the lock.
    fn departed_before(&self, now: Instant) -> Vec<(Instant, Arc<EndpointRecord>)> {
        let mut departed = self.departed.lock();
        let is_over = |first: Option<&(Instant, _)>| first.is_some_and(|(until, _)| *until <= now);
        let mut over = Vec::new();
        while is_over(departed.front()) || departed.len() >= DEPARTED_MAX {
            over.extend(departed.pop_front());
        }
        over
    }

    /// All records that somebody uses, with their servers and places.
    pub(super) fn in_use(&self) -> Vec<(Arc<ServerAddress>, Place, Arc<EndpointRecord>)> {
        let known = self.known.lock();
        let in_use = known.iter().filter_map(|((server, place), record)| {
            Some((Arc::clone(server), place.clone(), record.upgrade()?))
        });
        in_use.collect()
    }
}
