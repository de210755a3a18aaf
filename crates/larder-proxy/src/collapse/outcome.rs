//! What a flight brings to those who wait for it.
//!
//! In: what the fetch task has made of the origin's answer. Out: a [`FlightOutcome`] for each who waits. The client that
//! caused the fetch and the followers get values of one type; only the leader's has a part that is for it alone.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use larder_assemble::Program;
use larder_cache::{Freshness, NotStorable, StoredHead};
use larder_origin::OriginResponse;
use larder_store::{Lead, Reader, StoredResponse, StreamingBody};

use super::Storing;
use crate::failure::Failure;
use crate::invalidation::Forgotten;

/// How a flight ended for one who waited for it.
pub(crate) enum FlightOutcome {
    /// A shareable response, or one that is the leader's and is being stored all the same.
    Shared {
        response: Arc<SharedResponse>,
        /// What is not stored of the head and is for the leader all the same: Age as the origin sent it, and the fields
        /// that a qualified directive keeps from others.
        own: HeaderMap,
        /// The leader's place among the readers.
        reader: Option<Reader>,
    },
    /// A stored response that the origin has confirmed, and the fields of the 304 that are for the leader alone.
    Confirmed { stored: Arc<StoredResponse>, own: HeaderMap },
    /// A stored response in place of the origin's error of this status, and since when it has been found.
    StandIn { stored: Arc<StoredResponse>, since: Forgotten, status: StatusCode },
    /// The origin's answer as it is, for the leader alone.
    Passed(PassedAnswer),
    /// The answer is for nobody but the client that asks: followers go alone.
    Unshared,
    /// The same, because of the leader's request alone: the next follower leads.
    NotForOthers,
    /// Something was stored before the fetch began: nothing was asked.
    Overtaken,
    /// The same, by another larder that has fetched it.
    FetchedElsewhere,
    /// There is no answer, and this is why.
    Failed(Failure),
    /// The fetch ended without an outcome.
    Lost,
}

impl FlightOutcome {
    /// Tells other larders whether they should wait for what it brings.
    pub(super) fn tell(&self, lead: &dyn Lead) {
        match self {
            Self::Shared { response, .. } if response.not_stored.is_none() => {
                let freshness = &response.head.freshness;
                let lifetime = if freshness.is_shareable() { freshness.lifetime } else { Duration::ZERO };
                lead.sees_head(lifetime, response.body.declared());
            }
            Self::Shared { .. } | Self::Passed(_) | Self::Unshared | Self::NotForOthers => {
                lead.is_not_shared()
            }
            Self::StandIn { .. } | Self::Failed(_) => lead.fails(),
            Self::Confirmed { .. } | Self::Overtaken | Self::FetchedElsewhere | Self::Lost => {}
        }
    }

    /// The same for a follower: without what is the leader's alone.
    pub(super) fn for_follower(&self) -> Self {
        match self {
            Self::Shared { response, .. } => {
                let response = Arc::clone(response);
                Self::Shared { response, own: HeaderMap::new(), reader: None }
            }
            Self::Confirmed { stored, .. } => {
                Self::Confirmed { stored: Arc::clone(stored), own: HeaderMap::new() }
            }
            Self::StandIn { stored, since, status } => {
                Self::StandIn { stored: Arc::clone(stored), since: *since, status: *status }
            }
            Self::Passed(_) | Self::Unshared => Self::Unshared,
            Self::NotForOthers => Self::NotForOthers,
            Self::Overtaken => Self::Overtaken,
            Self::FetchedElsewhere => Self::FetchedElsewhere,
            Self::Failed(failure) => Self::Failed(*failure),
            Self::Lost => Self::Lost,
        }
    }
}

/// A shareable response whose body may still be arriving.
#[derive(Debug)]
pub(crate) struct SharedResponse {
    pub(crate) head: Arc<StoredHead>,
    pub(crate) body: Arc<StreamingBody>,
    /// Why it will not be in the index once it is whole, where that is known already.
    pub(crate) not_stored: Option<&'static str>,
    /// Whether it is, known when its body has ended.
    pub(crate) storing: Arc<Storing>,
    /// What the origin answered: 206 where that completed a stored part.
    pub(crate) forward_status: StatusCode,
    /// The last invalidation before the fetch began.
    pub(crate) number: u64,
    /// Of a template: it grows with the body, and is complete before the body's end shows.
    pub(crate) program: Option<Arc<Program>>,
}

/// An answer on its way to one client.
pub(crate) struct PassedAnswer {
    pub(crate) answer: Box<OriginResponse>,
    /// What the origin said, where that was a 304 to larder's own conditions and so is not the answer's status.
    pub(crate) forward_status: StatusCode,
    pub(crate) kept: Kept,
    /// Of a template, as in [`SharedResponse`]. That of an answer to HEAD never completes: there is nothing to compile.
    pub(crate) program: Option<Arc<Program>>,
}

/// What an answer that goes to one client did to the store.
#[derive(Clone, Copy)]
pub(crate) enum Kept {
    /// Nothing, for this reason.
    Nothing(NotStorable),
    /// Nothing: it is larger than what is fetched for a HEAD alone.
    Unread,
    /// An answer to HEAD brought a stored response up to date.
    Updated(Freshness),
}
