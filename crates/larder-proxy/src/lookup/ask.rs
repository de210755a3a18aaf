//! What lies in another program's memory, in a store that has such: values of applications, or responses that larders have fetched.
//!
//! In: what memory has for a request. Out: a miss that asks there first, where what memory has is not fresh, or a mark says that
//! nothing can be shared. An application that puts a value there, and says nothing about caching in its answers, leaves just
//! such a mark. What is asked for is a copy in memory from then on, as fresh as the store says, and is judged like all else.

use std::sync::Arc;

use larder_cache::{StoredHead, Verdict};
use larder_http::fields::cache_status::Forward;
use larder_http::time::Now;
use larder_store::{Recalled, Store, StoredResponse};

use super::{Lookup, LookupResult, Miss};

impl Lookup<'_> {
    /// The same, but that nothing but a fresh response is used before others were asked. Where it is larders that write there, whatever may
    /// be used at once is enough.
    #[inline]
    pub(super) fn asking_first(&self, store: &Store, found: LookupResult) -> LookupResult {
        // A value is named by its version, or is as it was when that was another.
        let may_ask = || !self.judge.is_doubting() && store.may_ask(self.request, &self.rule.policy);
        let is_enough = match &found {
            LookupResult::Fresh { .. } => true,
            LookupResult::Refresh { .. } => store.asks_for_records(),
            LookupResult::Miss(miss) => (miss.marked || miss.alone) && store.asks_for_records(),
        };
        if is_enough || !may_ask() {
            return found;
        }
        let miss = match found {
            LookupResult::Miss(miss) => miss,
            LookupResult::Fresh { stored, .. } | LookupResult::Refresh { stored, .. } => {
                Miss { selected: Some(Arc::clone(&stored)), ..Miss::new(Forward::Stale) }
            }
        };
        LookupResult::Miss(Miss { asks_first: true, may_recall: true, ..miss })
    }

    /// A purge by anything but its URL has ended a response in memory. What it is a copy of, or was written from it, would come back in
    /// its place.
    #[cold]
    pub(super) fn disown(&self, store: &Store, stored: &StoredResponse, verdict: Verdict) {
        if store.asks_anew() && (verdict == Verdict::Unproven || self.judge.is_named(self.key, stored)) {
            store.disown(self.key, stored);
        }
    }

    /// Asks there, where the store does. What comes is in memory then.
    pub(super) async fn ask(&self, store: &Store, now: Now) -> Recalled {
        let Some(number) = self.judge.current() else { return Recalled::Nothing };
        match !self.judge.is_doubting() && store.may_ask(self.request, &self.rule.policy) {
            true => {
                let is_of_use = |head: &StoredHead, number| self.judge.is_of_use(self.key, head, number);
                store.ask(self.key, (self.request, &self.rule.policy), (number, &is_of_use), now).await
            }
            false => Recalled::Nothing,
        }
    }
}
