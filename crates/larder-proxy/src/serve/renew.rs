//! A GET by which one who may purge has a URL fetched anew: FOSHttpCache's refreshes, and a forced reload by its author.
//!
//! In: such a request, whose client may purge ([`super::privilege`]). Out: an invalidation of what is stored under its URL.
//! What is invalid is confirmed or replaced before it is used, and stands in for an origin that fails, so the request goes on as any
//! other does. Others with the same URL wait for its fetch, or follow it. A fleet is told, as of an unsafe request, and not waited for.
//! From anyone else the same fields mean what they always mean.

use crate::exchange::Exchange;
use crate::invalidation::{self, How, InvalidationKind, UnderWay};
use crate::objects::sharing::share_unsafe;
use crate::worker::Worker;

/// Whatever is stored under its URL is confirmed before it is used again.
pub(super) fn invalidate(worker: &Worker, exchange: &Exchange) {
    let (proxy, head) = (&worker.proxy, &exchange.asked.head);
    let own = proxy.announce();
    let (stores, now) = (proxy.begin_invalidation(), exchange.started);
    let flights = &proxy.flights;
    let under_way = UnderWay {
        any: &|key| flights.any_of_base(key, None),
        tell: &|key, number, how| flights.invalidate(key, number, how, None),
    };
    let under = (head.authority.as_str(), std::slice::from_ref(&head.target));
    let (kind, how) = (InvalidationKind::Purge, How::Validate(Some(now.monotonic)));
    invalidation::invalidate(&proxy.invalidations, &stores, under, (kind, how, now), &under_way);
    if let Some(own) = &own {
        let _ = share_unsafe(&**own, head, std::iter::once(exchange.asked.raw_target().as_str()), None);
    }
    worker.metrics.invalidated(&kind);
}
