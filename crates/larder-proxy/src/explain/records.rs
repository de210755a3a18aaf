//! Records that larders share through Redis: what lies there for the request, and who fetches it.
//!
//! In: the rule's stores. Out: an [`ExplainedRecord`] for each store that shares responses, and would ask for this one. It is asked before the
//! look-up, which may bring the record into memory. A question that spares the origin spares these servers as well.

use larder_cache::StoredHead;
use larder_store::CacheKey;
use larder_store::outlook::{ClaimFacts, PlaceFacts, RecordFacts, RecordOutlook, ServerFacts};

use super::reason::CONFIGURATION;
use super::recorded::{ExplainedRecord, FleetPlace, RecordFetch, RecordServer, RecordTold};
use super::{Reason, Walk, seconds, visible};
use crate::invalidation::Judge;

impl Walk<'_> {
    pub(super) async fn records(&self, key: &CacheKey) -> Vec<ExplainedRecord> {
        let mut told = Vec::new();
        if !self.running || self.question.offline {
            return told;
        }
        let judge = Judge::new(&self.worker.proxy.invalidations, None);
        let is_of_use = |head: &StoredHead, number| judge.is_of_use(key, head, number);
        for (store, id) in self.settings.stores() {
            let request = (self.head(), &self.settings.policy);
            if let Some(outlook) = store.outlook(key, request, &is_of_use).await {
                told.push(record(self.store_name(id), outlook));
            }
        }
        told
    }
}

fn record(store: String, of: RecordOutlook) -> ExplainedRecord {
    ExplainedRecord {
        store,
        name: visible(of.name.as_bytes()),
        server: of.server.map(server),
        record: of.record.map(facts),
        unused: of.unused.map(|why| Reason::new(why.token, why.sentence, CONFIGURATION)),
        fetch: fetch(of.claim),
        fleet: of.place.map(place),
    }
}

fn server(of: ServerFacts) -> RecordServer {
    RecordServer {
        server: visible(of.told.as_bytes()),
        slot: of.slot,
        connections: of.connections,
        breaker: if of.probe_in.is_some() { "open" } else { "closed" }.to_owned(),
        probe_seconds: of.probe_in.map(seconds),
    }
}

fn facts(of: RecordFacts) -> RecordTold {
    RecordTold {
        writer: visible(of.writer.as_bytes()),
        epoch: epoch(of.epoch),
        position: of.sequence,
        age_seconds: of.age.map(seconds),
        status: of.status,
        body_bytes: of.body_bytes,
        pieces: of.pieces,
        varies_by: Some(visible(of.varies_by.as_bytes())).filter(|names| !names.is_empty()),
    }
}

fn fetch(of: ClaimFacts) -> RecordFetch {
    RecordFetch {
        state: Reason::new(of.state.token, of.state.sentence, CONFIGURATION),
        member: of.member.map(|member| visible(member.as_bytes())),
        here: of.is_own,
    }
}

fn place(of: PlaceFacts) -> FleetPlace {
    FleetPlace {
        member: visible(of.member.as_bytes()),
        epoch: of.position.map(|(log, _)| epoch(log)),
        position: of.position.map(|(_, sequence)| sequence),
        lease_seconds: of.left.map(seconds),
    }
}

fn epoch(number: u128) -> String {
    format!("{number:032x}")
}
