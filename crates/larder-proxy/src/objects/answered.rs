//! Purges that an origin's answer asks for, where the site listens to such fields.
//!
//! In: a request, its answer, and what its rule says of fields. Out: a purge on its way; the client's answer waits for it within the
//! bound of all that unsafe requests invalidate. Its scope is the site of the request. A name that is wrong, or belongs to another
//! site, is left out and counted: the client that gets the answer cannot mend it.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, StatusCode};
use larder_cache::Controls;
use larder_cache::is_safe;
use larder_cache::purge::{Mode, Selector};
use larder_http::fields::larder_purge::LARDER_PURGE;
use larder_http::fields::litespeed;
use larder_http::message::RequestHead;
use tokio::task::JoinHandle;

use crate::purge::response::{Answered, larder_purge, litespeed_purge};
use crate::purges::access::Access;
use crate::purges::{Order, PurgeRefusal, Sender};
use crate::worker::Worker;

/// In place of what lets a request in.
const RESPONSE: &str = "response";

impl Worker {
    /// Begins the purges that an answer asks for. `None` where it asks for none, as nearly all do.
    pub(crate) fn purge_as_answered(
        self: &Arc<Self>,
        request: &RequestHead,
        (status, fields): (StatusCode, &HeaderMap),
        controls: &Controls,
    ) -> Option<JoinHandle<()>> {
        if controls.ending.is_empty() {
            return None;
        }
        let listens = |name: &HeaderName| controls.ending.contains(name);
        let mut asked: Vec<Answered> = Vec::new();
        if listens(&LARDER_PURGE) && !is_safe(&request.method) {
            asked.extend(larder_purge(status, fields));
        }
        if listens(&litespeed::PURGE) {
            asked.extend(litespeed_purge(fields));
        }
        if asked.is_empty() {
            return None;
        }
        let host = request.authority.host();
        let scope = self.scope_of(host)?;
        let (takes_patterns, is_soft) = self.patterns_and_soft(host);
        let order = |Answered { selectors, mode, dialect }: Answered| {
            let mode = if is_soft { Mode::Soft } else { mode };
            let of = |selectors| {
                let (scope, here) = (Arc::clone(&scope), vec![request.authority.clone()]);
                Order { selectors, mode, scope, here, takes_patterns, wait: None }
            };
            let all = selectors.len();
            let is_right = |selector: &Selector| of(vec![selector.clone()]).resolve().is_ok();
            let selectors: Vec<_> = selectors.into_iter().filter(is_right).collect();
            if selectors.len() < all {
                self.proxy.purges.counts.refused(PurgeRefusal::Bad);
            }
            (of(selectors), Sender { dialect, peer: None, by: RESPONSE })
        };
        let orders = asked.into_iter().map(order).filter(|(order, _)| !order.selectors.is_empty());
        let orders: Vec<_> = orders.collect();
        let worker = Arc::clone(self);
        Some(tokio::spawn(async move {
            for (order, sender) in orders {
                // A purge counts, and tells, what comes of it.
                let _ = worker.purge(&order, sender).await;
            }
        }))
    }

    /// Whether the site of a host takes patterns, and makes every purge soft.
    fn patterns_and_soft(&self, host: &str) -> (bool, bool) {
        let plan = Arc::clone(&self.worker_plan.load().plan);
        match plan.router.site(host).map(|(_, site)| &site.settings.purge) {
            Some(Access::Open(rules)) => (rules.patterns, rules.soft),
            _ => (false, false),
        }
    }
}
