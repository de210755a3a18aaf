//! The fleet as this larder knows it, for people and for the API.
//!
//! In: a member's report. Out: the same as JSON, and its metrics.

use larder_observe::{Exposition, family};
use larder_remote::fleet::FleetReport;
use serde::{Deserialize, Serialize};

/// The fleet, as one of its members knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FleetTold {
    /// The name of the member that tells it.
    pub(crate) name: String,
    /// The name of the log that it reads, in hexadecimal digits; null before the first.
    pub(crate) epoch: Option<String>,
    /// How many entries of that it has applied.
    pub(crate) applied: Option<u64>,
    /// How many seconds it uses stored responses without hearing from Redis; 0: it asks the origin first. Null: no end.
    pub(crate) left_s: Option<f64>,
    /// The other members that may use what they have stored.
    pub(crate) others: Vec<OtherTold>,
    /// Purges of this member that are not complete.
    pub(crate) incomplete: usize,
    /// Why the last call to Redis came to nothing; null where it was answered.
    pub(crate) failure: Option<String>,
}

/// Another member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OtherTold {
    /// Its name.
    pub(crate) name: String,
    /// How many entries of the log it has applied, as it said last.
    pub(crate) applied: u64,
    /// How many seconds its lease lasts from now on, as far as is known. Null: no end.
    pub(crate) left_s: Option<f64>,
}

impl From<FleetReport> for FleetTold {
    fn from(report: FleetReport) -> Self {
        let others = report.others.into_iter().map(|other| OtherTold {
            name: other.name.to_string(),
            applied: other.applied,
            left_s: other.left.map(|left| left.as_secs_f64()),
        });
        let mut others: Vec<_> = others.collect();
        others.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            name: report.name.to_string(),
            epoch: report.position.map(|position| format!("{:032x}", position.epoch.0)),
            applied: report.position.map(|position| position.sequence),
            left_s: report.left.map(|left| left.as_secs_f64()),
            others,
            incomplete: report.incomplete,
            failure: report.failure,
        }
    }
}

/// Adds the samples of the fleet.
pub(super) fn expose(report: &FleetReport, out: &mut Exposition) {
    let members = report.others.len() as u64 + u64::from(report.left != Some(std::time::Duration::ZERO));
    out.family(&family::FLEET_MEMBERS).value(&[], members);
    // One without an end shows as the largest number that is exact.
    let left = report.left.map_or(1 << 53, |left| left.as_secs());
    out.family(&family::FLEET_LEASE_SECONDS).value(&[], left);
    out.family(&family::FLEET_POSITION).value(&[], report.position.map_or(0, |position| position.sequence));
    out.family(&family::FLEET_INCOMPLETE).value(&[], report.incomplete as u64);
    out.family(&family::FLEET_SERVER_UP).value(&[], u64::from(report.failure.is_none()));
}
