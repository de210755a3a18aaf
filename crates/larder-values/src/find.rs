//! A value for a request.
//!
//! In: a request, and the policy of its site. Out: the response that a value stands for, with the ticket by which the store learns
//! whether it was invalidated on its way; or why there is none. Nothing waits longer than the servers' time limit.
//! What lies under a base whose deletion is not confirmed is not even asked for. A deletion that found no room is queued again by who
//! asks, so that a base is of use again once the queue has room.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use larder_cache::{CachePolicy, StoredHead};
use larder_http::message::{RequestHead, Scheme};
use larder_remote::{LookedUp, Unfit};
use larder_tier::fill::BoxFuture;
use larder_tier::{Ask, Asked, CacheKey, Find, FoundValue, IsOfUse, TargetUri};

use crate::notes::Belief;
use crate::{HttpCaching, Values, format};

impl Find<HttpCaching> for Values {}

impl Ask<HttpCaching> for Values {
    fn is_asked_anew(&self) -> bool {
        true
    }

    fn may_ask(&self, request: &RequestHead, policy: &CachePolicy) -> bool {
        matches!(request.method, Method::GET | Method::HEAD)
            && self.settings.key.fits(&policy.keyed_cookies, &policy.keyed_fields)
    }

    fn asks_within(&self) -> Duration {
        self.settings.timeout
    }

    fn ask<'a>(
        &'a self,
        key: &'a CacheKey,
        request: &'a RequestHead,
        policy: &'a CachePolicy,
        _is_of_use: &'a IsOfUse<'a, StoredHead>,
    ) -> BoxFuture<'a, Asked<HttpCaching>> {
        Box::pin(async move {
            let ticket = self.notes.ticket(key.hash());
            match self.notes.belief(key.base()) {
                Belief::Yes => {}
                Belief::Awaited | Belief::Never => return Asked::Unusable,
                Belief::Lacking => {
                    self.delete(key, None);
                    return Asked::Unusable;
                }
            }
            // What larder has written there may be that of another time under the same versions.
            let is_ambiguous = self.settings.write && key.has_marked_versions();
            let name = self.settings.key.of_request(key.versions(), request);
            let Some(name) = name.filter(|_| !(is_ambiguous && self.settings.key.has_versions())) else {
                return Asked::Unfit;
            };
            let looked_up = self
                .servers
                .look_up(&Bytes::copy_from_slice(&name), |found| {
                    let now = self.clock.now();
                    format::response(&self.settings, found, request, policy, now)
                })
                .await;
            match looked_up {
                LookedUp::Found((head, body)) => {
                    let body = vec![body];
                    Asked::Found(Box::new(FoundValue { head, body, ticket, record: None }))
                }
                LookedUp::Absent => Asked::Absent,
                LookedUp::Unfit(Unfit::OtherVariant) => Asked::Unfit,
                LookedUp::Unfit(Unfit::Malformed) | LookedUp::Skipped | LookedUp::Failed(_) => {
                    Asked::Unusable
                }
            }
        })
    }

    fn is_current(&self, key: &CacheKey, ticket: u64) -> bool {
        self.notes.is_current(key.hash(), ticket)
    }

    fn disown(&self, key: &CacheKey) {
        self.delete(key, None);
    }

    fn servers(&self) -> Vec<String> {
        self.servers.told()
    }

    fn server_of(&self, key: &CacheKey, request: &RequestHead) -> Option<String> {
        let name = self.settings.key.of_request(key.versions(), request)?;
        self.servers.told_of(&Bytes::copy_from_slice(&name))
    }
}

impl Values {
    /// Whether the responses of the host of a base go to the store, by whatever scheme it is reached.
    pub(crate) fn serves(&self, key: &CacheKey) -> bool {
        TargetUri::of_base(key, Scheme::Http).is_some_and(|uri| self.served(&uri).is_some())
    }

    /// Has the values under a base deleted, of which nothing is believed until that is confirmed. `number` is that of the invalidation,
    /// where it has one.
    pub(crate) fn delete(&self, key: &CacheKey, number: Option<u64>) {
        if !self.serves(key) {
            return;
        }
        let names = self.settings.key.of_base(key);
        let base = (key.base(), key.hash());
        self.notes.invalidate(base, number, &names, |name, confirmed| {
            self.servers.delete(&Bytes::copy_from_slice(name), || confirmed.tell())
        });
    }
}
