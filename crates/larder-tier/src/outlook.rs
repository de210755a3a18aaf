//! What is told to people of a record that larders share, and of the way to it.
//!
//! In: what a tier has found when it was asked ([`Ask::outlook`](crate::Ask::outlook)). Out: plain values: the name of the record, its server,
//! what lies there, who fetches it, and how this larder stands in its fleet. Each word that says why something is not so comes with a
//! sentence for people. Deliberately absent: any text beyond that, and any decision.

use std::time::Duration;

use crate::held_back::HeldBack;

/// See the head of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordOutlook {
    /// What the record is called at the server.
    pub name: String,
    /// The server of that name, where it is known which one that is.
    pub server: Option<ServerFacts>,
    /// What lies there, as far as it could be read.
    pub record: Option<RecordFacts>,
    /// Why a request would not use it. `None`: it would.
    pub unused: Option<HeldBack>,
    /// Who fetches what is to lie there.
    pub claim: ClaimFacts,
    /// How this larder stands in its fleet, where it has one.
    pub place: Option<PlaceFacts>,
}

/// A server, and the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// What it is and where.
    pub told: String,
    /// The slot of the name, in a cluster.
    pub slot: Option<u16>,
    /// Connections of this process that are open.
    pub connections: usize,
    /// The time to the next probe, where it is left alone until then.
    pub probe_in: Option<Duration>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordFacts {
    /// The member that has written it.
    pub writer: String,
    /// The log of the fleet when it was fetched.
    pub epoch: u128,
    /// How many entries of that its writer had applied then.
    pub sequence: u64,
    /// How long ago its head arrived. `None` without a clock in common.
    pub age: Option<Duration>,
    /// The status, where the head could be read.
    pub status: Option<u16>,
    /// The length of its body.
    pub body_bytes: u64,
    /// In how many pieces the body lies beside the record; none where it is in the record.
    pub pieces: usize,
    /// The fields by which responses under its key vary, joined by commas; empty where they do not.
    pub varies_by: String,
}

/// Who fetches what is to lie under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimFacts {
    /// The word for it, with a sentence.
    pub state: HeldBack,
    /// The member that has claimed it.
    pub member: Option<String>,
    /// Whether that is this larder.
    pub is_own: bool,
}

/// How a larder stands in its fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceFacts {
    /// Its name.
    pub member: String,
    /// The log that it reads, and how many entries of that it has applied; `None` before the first.
    pub position: Option<(u128, u64)>,
    /// How long its lease lasts without a renewal; zero where it has none. `None`: for ever.
    pub left: Option<Duration>,
}
