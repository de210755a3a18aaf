//! Taking responses out of a store: out of memory and of all tiers behind it.
//!
//! In: a response, or the key of a URL. Out: nothing of it is found any more, and it is noted what became of the URL. The order of
//! memory and tiers decides what a look-up at the same moment may find, so it stands at each place.

use std::cell::Cell;
use std::sync::Arc;

use larder_tier::Memo;

use super::Store;
use crate::fates::Fate;
use crate::key::CacheKey;
use crate::stored::StoredResponse;

impl Store {
    /// Takes one response out of the index, where it still is. Says whether memory had it.
    pub fn remove(&self, key: &CacheKey, response: &Arc<StoredResponse>) -> bool {
        // What lies behind memory first: what is recalled meanwhile finds that it is not there any more. Tiers before memory come last:
        // a response in memory may be on its way to them.
        let (first, behind): (Vec<_>, Vec<_>) = self.tiers.iter().partition(|tier| tier.is_before_memory());
        behind.into_iter().for_each(|tier| tier.forget(key, response.identity()));
        let was_there = self.memory.remove(key, response);
        first.into_iter().for_each(|tier| tier.forget(key, response.identity()));
        was_there
    }

    /// Takes one response out that a look found and cannot use. Where its body is not where it was on its disks any more, out of
    /// memory alone: if it was in use it lies elsewhere there now, and the disks know where. `why` is what becomes of its URL by that.
    pub fn remove_unusable(&self, key: &CacheKey, response: &Arc<StoredResponse>, why: Fate) {
        let was_there = match response.body.has_moved() {
            true => self.memory.remove(key, response),
            false => self.remove(key, response),
        };
        if was_there {
            self.memory.note(key.hash(), why);
        }
    }

    /// Takes one response out. `why` is what becomes of its URL by that.
    pub fn remove_for(&self, key: &CacheKey, response: &Arc<StoredResponse>, why: Fate) {
        if self.remove(key, response) {
            self.memory.note(key.hash(), why);
        }
    }

    /// What the tiers have of the identity of `response` goes: it lies elsewhere now, or nowhere.
    pub fn forget(&self, key: &CacheKey, response: &StoredResponse) {
        self.tiers.iter().for_each(|tier| tier.forget(key, response.identity()));
    }

    /// A response under a key has ended: the origin says something else now. See [`Keep::end`](larder_tier::Keep::end).
    pub fn end(&self, key: &CacheKey) {
        self.tiers.iter().for_each(|tier| tier.end(key));
    }

    /// See [`MemoryStore::discard`](crate::MemoryStore::discard); what it takes out of memory is gone from the tiers as well. What lies in one that nobody has
    /// asked for goes, too.
    pub fn discard(&self, key: &CacheKey, which: impl Fn(&StoredResponse) -> bool) {
        let has_any = Cell::new(false);
        self.memory.discard(key, |response| {
            let goes = which(response);
            if goes {
                self.tiers.iter().for_each(|tier| tier.remove(key, response.identity()));
            }
            has_any.set(has_any.get() || goes);
            goes
        });
        self.write_journals();
        // What was in memory may have been on its way to a file.
        let goes = |memo: Option<&Memo>| {
            let response = memo.and_then(Memo::get::<StoredResponse>);
            has_any.get() || response.is_none_or(|response| which(&response))
        };
        self.tiers.iter().for_each(|tier| tier.discard(key, &goes));
    }

    /// Drops everything under the base of `key`, whatever its variant, and says how many responses that were. `number` is that
    /// of the invalidation.
    pub fn invalidate(&self, key: &CacheKey, number: u64) -> u64 {
        self.take_out(key, number, false)
    }

    /// The same for a purge: its sender waits until the tiers confirm it, and is told where they do not.
    pub fn purge(&self, key: &CacheKey, number: u64) -> u64 {
        self.take_out(key, number, true)
    }

    fn take_out(&self, key: &CacheKey, number: u64, is_purge: bool) -> u64 {
        // Each is asked: what one has may be what another has too.
        let in_tiers = || self.tiers.iter().map(|tier| tier.take_out(key, number)).max().unwrap_or(0);
        // Under the lock under which responses are put into both, and come from one into the other.
        let (in_memory, in_tiers) = self.memory.invalidate_with(key, in_tiers);
        self.write_journals();
        self.tiers.iter().for_each(|tier| tier.invalidate_behind(key, number, is_purge));
        let gone = in_memory.max(in_tiers);
        if gone > 0 {
            self.memory.note(key.hash(), if is_purge { Fate::Purged } else { Fate::Invalidated });
        }
        gone
    }
}
