//! Where larder and a peer differ in one request.
//!
//! In: what became of the request at both. Out: lines for the list of differences.

use std::collections::BTreeMap;

use super::observe::{Fate, Outcome};
use super::stored::Stored;

/// The lines in which two outcomes of one request differ.
pub(crate) fn difference(
    peer: &str,
    by_peer: &Outcome,
    by_larder: &Outcome,
    stored: &[Stored],
) -> Vec<String> {
    let mut lines = Vec::new();
    if by_peer.status != by_larder.status {
        lines.push(format!("{peer} {}, larder {}", by_peer.status, by_larder.status));
    }
    let mut by_fates: BTreeMap<(Fate, Fate), Vec<String>> = BTreeMap::new();
    for (stored, fates) in stored.iter().zip(by_peer.fates.iter().zip(&by_larder.fates)) {
        let (of_peer, of_larder) = fates;
        if of_peer != of_larder {
            by_fates.entry((*of_peer, *of_larder)).or_default().push(stored.name());
        }
    }
    for ((of_peer, of_larder), names) in by_fates {
        // Whichever is shorter: these, or all others.
        let is_most = names.len() > stored.len() / 2;
        let but = if is_most { ", all but" } else { "" };
        lines.push(format!("{peer} {}, larder {}{but}:", of_peer.word(), of_larder.word()));
        let listed = stored.iter().map(Stored::name).filter(|name| names.contains(name) != is_most);
        lines.extend(listed.map(|name| format!("  {name}")));
    }
    lines
}
