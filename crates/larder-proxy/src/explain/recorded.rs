//! What is told of a record that larders share through Redis, as values.

use serde::{Deserialize, Serialize};

use super::reason::Reason;

/// The record for the request in one store, and the way to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedRecord {
    /// The store.
    pub store: String,
    /// What the record is called in Redis.
    pub name: String,
    /// The server that has the name; null where no node of the cluster is known to have it.
    pub server: Option<RecordServer>,
    /// What lies there; null where nothing was read.
    pub record: Option<RecordTold>,
    /// Why a request would not use it; null where it would.
    pub unused: Option<Reason>,
    /// Who fetches it for all larders.
    pub fetch: RecordFetch,
    /// How this larder stands in its fleet; null before it has joined it.
    pub fleet: Option<FleetPlace>,
}

/// A server that has records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordServer {
    /// What it is and where.
    pub server: String,
    /// The slot of the name; null without a cluster.
    pub slot: Option<u16>,
    /// Connections to it that this process has open.
    pub connections: usize,
    /// `closed`, or `open` while it is left alone.
    pub breaker: String,
    /// In how many seconds a probe is sent; null while the breaker is closed.
    pub probe_seconds: Option<f64>,
}

/// A record that was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordTold {
    /// The member that has fetched it.
    pub writer: String,
    /// The fleet's log of purges when it was fetched, in hexadecimal digits.
    pub epoch: String,
    /// How many entries of that its writer had applied.
    pub position: u64,
    /// How long ago its head arrived, by the server's clock; null without a lease.
    pub age_seconds: Option<f64>,
    /// Its status; null where its head could not be read.
    pub status: Option<u16>,
    /// The length of its content.
    pub body_bytes: u64,
    /// In how many pieces that lies beside the record; 0 where it is in the record.
    pub pieces: usize,
    /// The fields by which responses of this URL vary, joined by commas; null where they do not.
    pub varies_by: Option<String>,
}

/// Who fetches a response for all larders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordFetch {
    /// `free`, `held`, or a mark that each larder fetches for itself: `no`, `big`, `failed`. Else why that is not known.
    pub state: Reason,
    /// The member that fetches it; null where none does.
    pub member: Option<String>,
    /// Whether that is this larder.
    pub here: bool,
}

/// How this larder stands in its fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetPlace {
    /// Its name.
    pub member: String,
    /// The log that it reads, in hexadecimal digits; null before the first.
    pub epoch: Option<String>,
    /// How many entries of that it has applied; null before the first.
    pub position: Option<u64>,
    /// How many seconds its lease lasts without a renewal, 0 where it has none; null: no end.
    pub lease_seconds: Option<f64>,
}
