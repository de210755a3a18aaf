//! Purges that the fleet is told of.
//!
//! In: predicates that are in force here. Out: the same in the fleet's log, and how the other larders stand to them.

use http::HeaderMap;
use larder_cache::purge::{Predicate, What};
use larder_fleet::EntryId;
use larder_http::fields::cache_groups;
use larder_http::message::RequestHead;
use tokio::time::Instant;

use crate::fleet::{FleetReceipt, OwnPurge, Placing, Sharing, entries, entries_of_unsafe};
use crate::proxy::Proxy;

/// Shares a purge.
pub(crate) fn share(own: &dyn OwnPurge, predicates: &[Predicate]) -> Sharing {
    let shared: Option<Vec<EntryId>> =
        entries(predicates).into_iter().map(|entry| own.share(entry)).collect();
    shared.map_or(Sharing::Full, Sharing::Shared)
}

/// Shares what an unsafe request invalidates. The last entry says the least of when all lie in the log.
pub(crate) fn share_unsafe<'a>(
    own: &dyn OwnPurge,
    head: &RequestHead,
    targets: impl Iterator<Item = &'a str>,
    fields: Option<&HeaderMap>,
) -> Option<Placing> {
    let groups = fields.into_iter().flat_map(cache_groups::invalidated);
    let group = |name: String| What::Group {
        scheme: head.scheme,
        authority: head.authority.as_str().into(),
        name: name.into(),
    };
    let entries = entries_of_unsafe(head.authority.as_str(), targets, groups.map(group));
    // They are placed in their order.
    entries.into_iter().fold(None, |before, entry| own.tell(entry).or(before))
}

impl Proxy {
    /// Something is about to be purged here, before it gets a number; where there is a fleet.
    pub(crate) fn announce(&self) -> Option<Box<dyn OwnPurge>> {
        Some(self.fleet.get()?.announce(self.invalidations.current()))
    }

    /// Waits until a purge is complete, as long as the config says.
    pub(crate) async fn await_fleet(&self, sharing: &Sharing) {
        let (Some(fleet), Sharing::Shared(ids)) = (self.fleet.get(), sharing) else { return };
        let until = Instant::now() + fleet.patience();
        for id in ids {
            fleet.wait(*id, until.saturating_duration_since(Instant::now())).await;
        }
    }

    /// How the fleet stands to a purge now.
    pub(crate) fn fleet_receipt(&self, sharing: Option<&Sharing>) -> Option<FleetReceipt> {
        let (fleet, sharing) = (self.fleet.get()?, sharing?);
        let Sharing::Shared(ids) = sharing else { return Some(FleetReceipt::not_shared()) };
        let of = |id: &EntryId| match fleet.receipt(*id) {
            Some((receipt, complete)) => FleetReceipt::of(&receipt, complete),
            None => FleetReceipt { complete: true, shared: true, knows_all: true, members: Vec::new() },
        };
        let mut all: Vec<FleetReceipt> = ids.iter().map(of).collect();
        // The entries are placed in their order, so the last one says the least.
        let first_incomplete = all.iter().position(|receipt| !receipt.complete);
        let which = first_incomplete.or(all.len().checked_sub(1))?;
        Some(all.swap_remove(which))
    }
}
