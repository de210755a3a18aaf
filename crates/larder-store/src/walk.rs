//! A walk through what lies in a store's tiers: each head is shown to whoever walks, who says what goes.
//!
//! In: where the walk has come to. Out: how many heads were shown, and where to go on. Of a response in several places each copy is shown,
//! and nothing is missed that was there when the walk began ([`Inspect::every_page`](larder_tier::Inspect::every_page)). Heads are
//! read by the thread that asks: never an event loop's. Deliberately absent: what is in memory, which has a walk of its own
//! ([`MemoryStore::each_not_cleared_at`](crate::MemoryStore::each_not_cleared_at)), and any judgement.

use std::sync::Arc;

use larder_cache::StoredHead;
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::time::Now;
use larder_tier::tier::{ListedEntry, ListedHead, PlainFile};

use crate::key::CacheKey;
use crate::recall;
use crate::store::Store;
use crate::tier::StoreTier;

/// Heads that are read at once.
const PAGE_MAX: usize = 128;

/// A response that a walk meets.
#[derive(Debug)]
pub struct Met<'a> {
    /// Its full key.
    pub key: &'a CacheKey,
    /// The scheme that is part of it.
    pub scheme: Scheme,
    /// The authority that is part of it.
    pub authority: &'a Authority,
    /// Status, fields, times. Of a plain file, made by the default policy.
    pub head: &'a StoredHead,
    /// The number of the last invalidation when the fetch that brought it began.
    pub number: u64,
    /// The plain file that it is.
    pub file: Option<&'a PlainFile>,
}

/// One step of a walk.
#[derive(Debug, Default)]
pub struct Walked {
    /// Heads that were read.
    pub records: u64,
    /// Of what is there so much could not be looked at now, and may be used later.
    pub unseen: u64,
    /// Where to go on; `None` at the end of the tier.
    pub next: Option<String>,
}

impl Store {
    /// How many tiers there are to walk through.
    pub fn tier_count(&self) -> usize {
        self.tiers().len()
    }

    /// Shows `goes` the next heads of a tier, and takes out what goes. `from` is where the step before ended. `None` where there is
    /// no such tier. Waits for the disks; not for an event loop.
    pub fn walk_tier(
        &self,
        number: usize,
        from: Option<&str>,
        now: Now,
        goes: &mut dyn FnMut(&Met<'_>) -> bool,
    ) -> Option<Walked> {
        let tier = self.tiers().get(number)?;
        let first = tier.first_page();
        let page = Arc::clone(tier).every_page(from.unwrap_or(&first), PAGE_MAX, now).ok()?;
        let walked = Walked {
            records: page.entries.len() as u64 + page.unreadable + page.unseen,
            unseen: page.unseen,
            next: page.next,
        };
        page.entries.into_iter().for_each(|entry| self.show(tier, entry, now, goes));
        Some(walked)
    }

    /// Whether all that was asked of the tiers before this call is done. Waits for that within a bound; not for an event loop.
    pub fn settle(&self) -> bool {
        // All of them are asked.
        self.tiers().iter().filter(|tier| !tier.settle()).count() == 0
    }

    fn show(
        &self,
        tier: &Arc<StoreTier>,
        entry: ListedEntry<StoredHead>,
        now: Now,
        goes: &mut dyn FnMut(&Met<'_>) -> bool,
    ) {
        let ListedEntry { key, origin, identity, head, number, file, at, .. } = entry;
        // What has no such key or head is used by nobody.
        let Some((scheme, authority)) = origin.or_else(|| recall::origin(&key)) else { return };
        let head = match head {
            ListedHead::Bytes(bytes) => match StoredHead::from_bytes(&bytes, now, (scheme, &authority)) {
                Ok(head) => head,
                Err(_) => return,
            },
            ListedHead::Made(head) => *head,
        };
        let met = Met { key: &key, scheme, authority: &authority, head: &head, number, file: file.as_ref() };
        if !goes(&met) {
            return;
        }
        let is_replaced = |identity: &u64| {
            let (here, _) = self.memory().responses(&key, now.monotonic);
            here.iter().any(|other| other.identity() == *identity && other.number != number)
        };
        match identity.filter(|identity| !is_replaced(identity)) {
            // All copies: one may have been made of another meanwhile.
            Some(identity) => tier.forget(&key, identity),
            None => at.forget(),
        }
    }
}
