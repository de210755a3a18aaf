//! The part of the statistics about rules.
//!
//! In: the counters of all rules. Out: each rule that has had a request, with all its stores, in the order of the config. Their requests
//! add up to all requests but those that the parser refused.

use larder_observe::{Count, RuleSnapshot, Snapshot};
use serde::Serialize;

use super::figures::{Counts, occurred, ratio};

/// One rule.
#[derive(Clone, Debug, Serialize)]
pub struct RuleStats {
    /// The site's name or first host.
    pub site: String,
    /// The rule's name, or `(site)` for requests that no rule matched.
    pub rule: String,
    /// Requests answered.
    pub requests: u64,
    /// Hits among its look-ups, 0 to 1.
    pub hit_ratio: Option<f64>,
    /// Requests by who answered them; those that occurred.
    pub results: Counts,
    /// Requests that were no hit, by reason; those that occurred.
    pub forwarded: Counts,
    /// Body bytes by `store`, `origin` and `own`; those that occurred.
    pub body_bytes: Counts,
    /// Responses stored.
    pub stored: u64,
    /// Responses that were not, by reason; those that occurred.
    pub not_stored: Counts,
    /// Bytes of content that origins sent.
    pub received_bytes: u64,
    /// Final heads of origins.
    pub origin_answers: u64,
    /// The mean time until them, in seconds.
    pub origin_mean: Option<f64>,
}

/// All rules that have had a request.
pub(super) fn rules(snapshot: &Snapshot) -> Vec<RuleStats> {
    let by_rule = snapshot.by_rule();
    by_rule
        .iter()
        .filter(|rule| rule.requests() > 0 || rule.origin_answers > 0)
        .map(RuleStats::from)
        .collect()
}

impl From<&RuleSnapshot> for RuleStats {
    fn from(rule: &RuleSnapshot) -> Self {
        let hits = rule.hits();
        let forwarded: u64 = rule.forwarded.iter().map(|count: &Count| count.count).sum();
        let answers = rule.origin_answers;
        Self {
            site: rule.site.to_string(),
            rule: rule.rule.to_string(),
            requests: rule.requests(),
            hit_ratio: ratio((hits, hits + forwarded)),
            results: occurred(&rule.results),
            forwarded: occurred(&rule.forwarded),
            body_bytes: occurred(&rule.bytes),
            stored: rule.stored,
            not_stored: occurred(&rule.not_stored),
            received_bytes: rule.received,
            origin_answers: answers,
            origin_mean: (answers > 0).then(|| rule.origin_time.as_secs_f64() / answers as f64),
        }
    }
}
