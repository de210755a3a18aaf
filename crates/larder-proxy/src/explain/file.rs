//! Plain files and values of others: what a request finds in them, and what is said of a file that a person put there.
//!
//! In: a walk and its key. Out: what the look-up brings, which may have to wait for a disk or a server, as a request would. And
//! the decision where a file by hand is the answer: no lifetime of the origin counts then, and no origin is asked. A question that
//! spares the origin spares servers of values as well.

use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_store::{CacheKey, StoredResponse};

use super::explanation::{Course, Reason};
use super::{CONFIGURATION, Outlook, Walk};
use crate::detail::BY_HAND;
use crate::invalidation::Judge;
use crate::lookup::{Lookup, LookupResult};

impl Walk<'_> {
    /// What a request would find, in plain files and among values as well.
    pub(super) async fn find(&self, key: &CacheKey) -> LookupResult {
        let judge = Judge::new(&self.worker.proxy.invalidations, None);
        let judge = judge.doubting(self.not_known().is_some());
        let lookup = Lookup { rule: self.settings, hot: None, key, request: self.head(), judge };
        let found = lookup.look_up_asking(self.now, !self.question.offline);
        let has_files = || self.settings.stores().any(|(store, _)| store.looks_outside_first());
        match &found {
            LookupResult::Miss(miss) if miss.asks_first => {
                lookup.recall(self.now).await.unwrap_or_else(|| lookup.look_up(self.now))
            }
            LookupResult::Miss(miss) if miss.may_recall && has_files() => {
                lookup.recall(self.now).await.unwrap_or(found)
            }
            _ => found,
        }
    }

    /// A file that a person put there answers.
    pub(super) fn by_hand(&self, stored: &StoredResponse) -> Outlook {
        let ttl = stored.head.freshness.ttl_seconds(self.now);
        let status =
            CacheStatus { ttl_seconds: Some(ttl), detail: Some(BY_HAND), ..CacheStatus::new(Outcome::Hit) };
        let sentence =
            "A file that was put there or changed by hand will be the answer for as long as it lies there.";
        self.settled(Course::Hit, Reason::new(BY_HAND, sentence, CONFIGURATION), status)
    }
}
