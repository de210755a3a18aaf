//! Where the responses of a rule are: the store that a new one goes to, and the stores that may have one.
//!
//! In: a response's head, or a key. Out: stores of the rule, its own or one that a [`StoreRule`]
//! names. The first entry that matches decides.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use larder_http::message::RequestHead;
use larder_observe::{CacheId, RuleId};
use larder_store::{CacheKey, Store, StoredResponse};

use crate::place::StoreRule;
use crate::settings::RuleSettings;

/// The store for a response.
#[derive(Clone, Copy)]
pub struct StorePlace<'a> {
    /// The store.
    pub store: &'a Arc<Store>,
    /// Its number in the metrics.
    pub store_id: CacheId,
    /// The number of the rule there, with this store.
    pub rule_id: RuleId,
}

impl RuleSettings {
    /// The store for a response with this head. `announced_bytes` is the length of its body, where that is known.
    pub fn place_for(
        &self,
        status: StatusCode,
        fields: &HeaderMap,
        announced_bytes: Option<u64>,
    ) -> StorePlace<'_> {
        let entry = self.place_entry(status, fields, announced_bytes);
        let place = entry.and_then(|entry| self.places.get(entry));
        match place {
            Some(StoreRule { store, store_id, rule_id, .. }) => {
                StorePlace { store, store_id: *store_id, rule_id: *rule_id }
            }
            None => StorePlace { store: &self.store, store_id: self.store_id, rule_id: self.rule_id },
        }
    }

    /// The entry of `place` that decides this; `None` where none matches.
    pub(crate) fn place_entry(
        &self,
        status: StatusCode,
        fields: &HeaderMap,
        announced_bytes: Option<u64>,
    ) -> Option<usize> {
        self.places.iter().position(|place| place.what.matches(status, fields, announced_bytes))
    }

    /// The store that has `stored`; the rule's own where none has it any more.
    pub(crate) fn store_of(&self, key: &CacheKey, stored: &Arc<StoredResponse>) -> &Arc<Store> {
        if self.places.is_empty() {
            return &self.store;
        }
        let has = |store: &Arc<Store>| {
            let (there, _) = store.responses(key, Duration::ZERO);
            there.iter().any(|other| other.is_same(stored))
        };
        let stores = || self.stores().map(|(store, _)| store);
        // What is in no memory any more may have come from a file.
        let found =
            stores().find(|store| has(store)).or_else(|| stores().find(|store| store.may_have_outside(key)));
        found.unwrap_or(&self.store)
    }

    /// Takes one response out of whichever store has it: the origin says something else now.
    pub(crate) fn remove(&self, key: &CacheKey, stored: &Arc<StoredResponse>) {
        self.stores().for_each(|(store, _)| {
            store.remove(key, stored);
            store.end(key);
        });
    }

    /// Takes `stored` out, which `request` selects, and whatever else under the key that selects: the same page in other
    /// codings, which would be found in its place.
    pub(crate) fn remove_all_for(&self, key: &CacheKey, stored: &Arc<StoredResponse>, request: &RequestHead) {
        self.remove(key, stored);
        for (store, _) in self.stores() {
            let (there, _) = store.responses(key, Duration::ZERO);
            for other in there.iter().filter(|other| other.head.vary.selects(&request.fields)) {
                store.remove(key, other);
            }
        }
    }

    /// Every store that may hold a response for this rule, each once, with its number in the metrics; the rule's own
    /// comes first.
    pub fn stores(&self) -> impl Iterator<Item = (&Arc<Store>, CacheId)> {
        let store_at = |index: usize| match index.checked_sub(1) {
            None => Some((&self.store, self.store_id)),
            Some(index) => self.places.get(index).map(|place| (&place.store, place.store_id)),
        };
        (0..=self.places.len()).filter_map(move |index| {
            let found = store_at(index)?;
            let is_known = (0..index).filter_map(store_at).any(|(other, _)| Arc::ptr_eq(other, found.0));
            (!is_known).then_some(found)
        })
    }
}
