//! What became of requests, by kind: how many, how many hits, and what `Cache-Status` said of the others.
//!
//! In: answers. Out: rows of a table.

use std::collections::BTreeMap;

use super::fetch::Answer;

/// Counts by kind of request.
#[derive(Default)]
pub(super) struct Tally {
    kinds: BTreeMap<String, Kind>,
}

/// Counts of one kind.
#[derive(Default, Clone, Copy)]
pub(super) struct Kind {
    pub(super) requests: usize,
    pub(super) hits: usize,
    /// The origin said 304, and this request waited for it.
    pub(super) confirmed: usize,
    pub(super) coded: usize,
}

impl Tally {
    pub(super) fn count(&mut self, kind: &str, answer: &Answer) {
        let kind = self.kinds.entry(kind.to_owned()).or_default();
        kind.requests += 1;
        kind.hits += usize::from(answer.is_hit());
        kind.confirmed += usize::from(answer.cache_status.contains("fwd-status=304"));
        kind.coded += usize::from(!answer.content_encoding.is_empty());
    }

    pub(super) fn of(&self, kind: &str) -> Kind {
        self.kinds.get(kind).copied().unwrap_or_default()
    }

    /// Prints a table of all kinds.
    pub(super) fn print(&self) {
        println!("\n| asked | requests | hits | confirmed by 304 | with a content coding |");
        println!("|---|---|---|---|---|");
        for (name, kind) in &self.kinds {
            let Kind { requests, hits, confirmed, coded } = kind;
            println!("| {name} | {requests} | {hits} | {confirmed} | {coded} |");
        }
        println!();
    }
}
