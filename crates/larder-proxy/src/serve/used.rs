//! From what is used of the stores to the answer.
//!
//! In: what a look has found. Out: the answer, made where it stays: it is 300 bytes, and each return would copy it once more. That
//! is also why all of this is inlined: a hit goes this way.

use std::sync::Arc;
use std::time::Duration;

use larder_http::fields::cache_status::{CacheStatus, HitSource, Outcome};
use larder_http::message::Response;
use larder_http::time::Now;
use larder_store::Held;

use super::context::RequestContext;
use super::sheet::{self, Sheeted};
use super::{reply, resume};
use crate::exchange::{Exchange, Reply};
use crate::failure::Failure;
use crate::respond;

/// What answers a request without the origin.
pub(super) enum Used {
    Stored { stored: Held, age: Duration, ttl_seconds: i64, detail: Option<&'static str>, source: HitSource },
    Failed(Failure),
}

impl Used {
    /// Whether a page may have to be made of it.
    #[inline(always)]
    pub(super) fn is_template(&self) -> bool {
        matches!(self, Self::Stored { stored, .. } if stored.head.template.is_some())
    }

    /// What was fresh in memory came from there, for this request.
    pub(super) fn came_from(&mut self, from: HitSource) {
        if let Self::Stored { source: source @ HitSource::Memory, .. } = self {
            *source = from;
        }
    }

    #[inline(always)]
    pub(super) fn status(&self) -> CacheStatus {
        match self {
            Self::Stored { ttl_seconds, detail, source, .. } => CacheStatus {
                ttl_seconds: Some(*ttl_seconds),
                detail: *detail,
                source: *source,
                ..CacheStatus::new(Outcome::Hit)
            },
            Self::Failed(failure) => {
                CacheStatus { detail: Some(failure.detail), ..CacheStatus::new(Outcome::Own) }
            }
        }
    }
}

/// The answer. `None` where it is stored on a disk and has gone from there.
#[inline(always)]
pub(super) fn answer(
    context: &RequestContext<'_>,
    exchange: &Exchange,
    (used, now): (Used, Now),
) -> Option<Response> {
    match used {
        Used::Stored { stored, age, .. } => of_stored(context, exchange, stored, age, now),
        Used::Failed(failure) => Some(respond::failure(failure)),
    }
}

/// The same as a reply.
pub(super) fn answered(
    context: &RequestContext<'_>,
    exchange: &Exchange,
    (used, now): (Used, Now),
) -> Option<Reply> {
    let status = used.status();
    let used = match used {
        Used::Stored { stored, age, ttl_seconds, detail, source } => {
            match sheet::from_stored(exchange, stored, age, status) {
                Sheeted::Template(reply) => return Some(reply),
                Sheeted::Plain(stored) => Used::Stored { stored, age, ttl_seconds, detail, source },
                Sheeted::Gone => return None,
            }
        }
        failed @ Used::Failed(_) => failed,
    };
    Some(Reply::new(answer(context, exchange, (used, now))?, status))
}

/// The same as [`reply::from_stored`], also for a client that may read so slowly that the store lets go of the body.
#[inline(always)]
pub(super) fn from_stored(
    context: &RequestContext<'_>,
    exchange: &Exchange,
    stored: Held,
    age: Duration,
    now: Now,
    status: CacheStatus,
) -> Option<Reply> {
    let stored = match sheet::from_stored(exchange, stored, age, status) {
        Sheeted::Template(reply) => return Some(reply),
        Sheeted::Plain(stored) => stored,
        Sheeted::Gone => return None,
    };
    Some(Reply::new(of_stored(context, exchange, stored, age, now)?, status))
}

#[inline(always)]
fn of_stored(
    context: &RequestContext<'_>,
    exchange: &Exchange,
    stored: Held,
    age: Duration,
    now: Now,
) -> Option<Response> {
    let may_be_let_go = stored.body.may_be_let_go().then(|| Arc::clone(&stored.head));
    let mut response = reply::of_stored(exchange, stored, age, now);
    if let (Some(head), Some(response)) = (may_be_let_go, &mut response) {
        resume::make_resumable(context, exchange, &head, response);
    }
    response
}
