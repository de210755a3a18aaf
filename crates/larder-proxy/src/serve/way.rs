//! The way of a request once its site and rule are known: a file, the stores, or past them.
//!
//! In: an exchange, a client's or one of a fragment. Out: its reply. Where a look at the stores is all that comes first, the caller has
//! looked already, by a plain call.

use std::sync::Arc;

use bytes::Bytes;
use larder_http::body::Body;
use larder_http::fields::cache_status::Outcome;
use larder_listen::Interims;

use super::content::{self, Inside, Taken};
use super::context::RequestContext;
use super::look::FirstLook;
use super::{cached, pass, reply};
use crate::decision::{Arrived, ContentRead, Counters, Document, Facts, Next, next};
use crate::exchange::{Exchange, Reply};
use crate::facts::{self, Carried};
use crate::failure::Failure;
use crate::root::RootEntry;
use crate::settings::ProxySettings;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;

/// The origin of a request that is looked up without anything to wait for before, as nearly every one is. `None` where
/// it goes another way, or where a handshake that the site does not pass on has to be told of.
#[inline(always)]
pub(super) fn looks_at_once(exchange: &Exchange, inside: &Inside) -> Option<usize> {
    let origin = exchange.site().settings.origin?;
    if exchange.asked.route.root().is_some() || inside.websocket {
        return None;
    }
    let (step, _) = next(&Facts::Arrived(arrived(exchange, inside, None)), Counters::default());
    // Matched, not compared: comparing it cost a hit 36 instructions.
    matches!(step, Next::Look).then_some(origin)
}

/// What is known of a request when it comes.
#[inline(always)]
fn arrived(exchange: &Exchange, inside: &Inside, document: Option<Document>) -> Arrived {
    let (site, rule) = (&exchange.site().settings, exchange.settings());
    let origins = exchange.asked.route.worker_plan().origins().len();
    let carried = Carried { websocket: inside.websocket, has_content: !inside.body.is_empty() };
    facts::arrived(&exchange.asked.head.method, (site, rule), origins, document, carried)
}

/// The reply, by the way that the request takes.
pub(super) async fn reply_to(
    worker: &Arc<Worker>,
    worker_plan: &Arc<WorkerPlan>,
    exchange: &mut Exchange,
    mut inside: Inside,
    looked: Option<Box<FirstLook>>,
    interims: &Interims,
) -> Reply {
    let mut entry = match exchange.asked.route.root() {
        Some(root) => root.find(&exchange.asked.head).await,
        None => RootEntry::Nothing,
    };
    let mut facts = Facts::Arrived(arrived(exchange, &inside, entry.document()));
    let origin = exchange.site().settings.origin.unwrap_or_default();
    let mut content = Bytes::new();
    loop {
        let (step, _) = next(&facts, Counters::default());
        match (step, entry) {
            (Next::File, RootEntry::File(file)) => return reply::static_file(exchange, &file),
            (Next::Redirect, RootEntry::Directory(location)) => return reply::redirect(&location),
            (Next::Look, _) => {
                let context = RequestContext { worker, worker_plan, origin, content };
                return cached::cached(context, exchange, looked, interims).await;
            }
            (Next::Pass { .. }, _) if exchange.cached_only => {
                return reply::failed(Outcome::Own, Failure::ONLY_IF_CACHED);
            }
            (Next::Pass { forward, detail }, _) => {
                let mut reply = pass::pass(worker, worker_plan, exchange, origin, inside, interims).await;
                reply.status.outcome = Outcome::Forwarded(forward);
                reply.status.detail = reply.status.detail.or(detail);
                return reply;
            }
            (Next::ReadContent, nothing) => {
                let body = std::mem::replace(&mut inside.body, Body::Empty);
                let read = match content::take(body, ProxySettings::QUERY_CONTENT_MAX).await {
                    Ok(Taken::All(all)) => {
                        content = all;
                        ContentRead::All
                    }
                    Ok(Taken::TooLong(body)) => {
                        inside.body = body;
                        ContentRead::TooLong
                    }
                    Err(error) => ContentRead::Broken(Failure::of_content(error)),
                };
                (facts, entry) = (Facts::ContentRead(read), nothing);
            }
            (Next::Refuse(failure), _) => return reply::failed(Outcome::Own, failure),
            // Nothing else follows on these facts.
            _ => return reply::failed(Outcome::Own, Failure::FETCH_LOST),
        }
    }
}
