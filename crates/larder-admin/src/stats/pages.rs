//! The part of the statistics about pages that are put together from templates and fragments.
//!
//! In: the counters of all sites and stores. Out: their sums, since a page takes its parts from several. The metrics tell
//! pages by site and fragments by store.

use std::collections::BTreeMap;

use larder_observe::Snapshot;
use serde::Serialize;

use super::figures::{Counts, LatencyStats, occurred, summed};

/// Pages that were put together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PageStats {
    /// How many, by `kept`, `whole` and `open`; empty before the first.
    pub by_how: Counts,
    /// What they asked for, by `hit` and forward reason; those that occurred.
    pub fragments: Counts,
    /// Includes that failed, by reason; those that occurred.
    pub failures: Counts,
    /// Fields with cookies that fragments came with, and that went nowhere.
    pub cookies_dropped: u64,
    /// Time in which pages had nothing to send.
    pub wait: LatencyStats,
    /// Templates that were compiled, by language; those that occurred.
    pub templates: Counts,
    /// Their problems, by language and kind; those that occurred.
    pub problems: BTreeMap<&'static str, Counts>,
}

impl From<&Snapshot> for PageStats {
    fn from(snapshot: &Snapshot) -> Self {
        let of = &snapshot.assembly;
        let mut problems: BTreeMap<_, Counts> = BTreeMap::new();
        for (language, problem, count) in &of.problems {
            problems.entry(*language).or_default().insert(problem, *count);
        }
        Self {
            by_how: summed(snapshot.routes.iter().flat_map(|site| &site.pages)),
            fragments: occurred(snapshot.caches.iter().flat_map(|store| &store.fragments)),
            failures: occurred(&of.failures),
            cookies_dropped: of.cookies_dropped,
            wait: (&of.wait).into(),
            templates: occurred(&of.compiled),
            problems,
        }
    }
}
