//! One fetch: for which request it is, which further requests may join it, and what it has announced so far.
//!
//! In: a request that needs the origin. Out: whether another request may follow this fetch, must wait for its end, or has nothing to
//! do with it. The fetch task and those who wait for it hold it through [`FlightGuard`](super::FlightGuard) and
//! [`Follower`](super::Follower).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use http::Method;
use larder_cache::{VaryNames, Verdict};
use larder_http::message::{Interim, RequestHead};
use larder_observe::Fetched;
use larder_store::rank::RankedMutex;
use larder_store::{Audience, CacheKey};
use tokio::sync::watch;

use super::flight_request::{FlightRequest, range_of};
use super::outcome::{FlightOutcome, SharedResponse};
use crate::invalidation::FetchMark;
use crate::settings::RuleNumber;

/// What is announced of a flight.
pub(super) struct View {
    pub(super) interims: Vec<Interim>,
    pub(super) ended: Option<Box<RankedMutex<Ended>>>,
}

/// The end of a flight.
pub(super) struct Ended {
    /// Until the leader takes it.
    pub(super) for_leader: Option<FlightOutcome>,
    pub(super) for_followers: FlightOutcome,
}

impl View {
    /// The response that new followers may have as well.
    fn shared(&self) -> Option<Arc<SharedResponse>> {
        match &self.ended.as_ref()?.lock().for_followers {
            FlightOutcome::Shared { response, .. } => Some(Arc::clone(response)),
            _ => None,
        }
    }
}

/// One fetch.
pub(crate) struct Flight {
    pub(super) key: CacheKey,
    /// The rule that it flies under: another may edit requests otherwise, or store elsewhere.
    pub(super) rule: RuleNumber,
    /// The request as the origin receives it.
    pub(super) request: Arc<RequestHead>,
    /// What responses under this key varied on when it began.
    pub(super) expected: Option<VaryNames>,
    /// What invalidations mean for it.
    pub(super) mark: FetchMark,
    /// Nobody new may join: its body passes, or it is of no use to others.
    pub(super) closed: AtomicBool,
    /// Somebody who joined wants more than the head.
    pub(super) is_wanted: AtomicBool,
    /// Those who wait for it, and the readers of its body.
    pub(super) audience: Arc<Audience>,
    /// The client that caused it waits for its outcome.
    pub(super) has_leader: AtomicBool,
    /// How asking the origin went, once that is over.
    pub(super) fetched: ArcSwapOption<Fetched>,
    pub(super) view: watch::Receiver<View>,
}

impl Flight {
    pub(super) fn new(flight_request: FlightRequest<'_>, is_open: bool) -> (Arc<Self>, watch::Sender<View>) {
        let (sender, view) = watch::channel(View { interims: Vec::new(), ended: None });
        let flight = Self {
            key: flight_request.key.clone(),
            rule: flight_request.rule,
            request: Arc::clone(flight_request.request),
            expected: flight_request.expected,
            mark: FetchMark::new((flight_request.number)()),
            closed: AtomicBool::new(!is_open),
            is_wanted: AtomicBool::new(flight_request.wants_content),
            audience: Arc::default(),
            has_leader: AtomicBool::new(false),
            fetched: ArcSwapOption::empty(),
            view,
        };
        (Arc::new(flight), sender)
    }

    /// Whether a request may follow. A HEAD may follow a GET, and a range the whole; not the other way round. `usable`
    /// says whether a response that has landed may answer it now.
    pub(super) fn takes(
        &self,
        flight_request: &FlightRequest<'_>,
        usable: impl FnOnce(&SharedResponse) -> bool,
    ) -> bool {
        if !self.is_for(flight_request) || self.is_outdated_for(flight_request) {
            return false;
        }
        let shared = self.view.borrow().shared();
        if let Some(shared) = shared {
            return shared.head.vary.selects(&flight_request.request.fields) && usable(&shared);
        }
        self.is_expected_by(flight_request)
    }

    /// Whether a request that may not follow, because something was invalidated between this fetch's start and its own arrival,
    /// has to wait for its end all the same before it asks: one after the other, however often that happens.
    pub(super) fn precedes(&self, flight_request: &FlightRequest<'_>) -> bool {
        self.is_for(flight_request)
            && self.is_outdated_for(flight_request)
            && self.view.borrow().ended.is_none()
            && self.is_expected_by(flight_request)
    }

    /// Whether it is for the same as a request, and not for its leader alone.
    fn is_for(&self, flight_request: &FlightRequest<'_>) -> bool {
        if self.mark.verdict() == Verdict::Gone || self.closed.load(Ordering::Acquire) {
            return false;
        }
        let request = flight_request.request;
        let same_method = self.request.method == request.method
            || (self.request.method == Method::GET && request.method == Method::HEAD);
        let own_range = range_of(&self.request);
        let same_range = own_range.0.is_none() || own_range == range_of(request);
        self.key == *flight_request.key && self.rule == flight_request.rule && same_method && same_range
    }

    /// Whether something was invalidated after it began and before the request came.
    fn is_outdated_for(&self, flight_request: &FlightRequest<'_>) -> bool {
        self.mark.outdated().is_some_and(|outdated| outdated <= flight_request.arrived)
    }

    /// Whether what it brings will answer a request, as far as it is known on what responses vary.
    fn is_expected_by(&self, flight_request: &FlightRequest<'_>) -> bool {
        let may_share =
            |names: &VaryNames| names.may_share(&self.request.fields, &flight_request.request.fields);
        self.expected.as_ref().is_none_or(may_share)
    }

    /// Notes that a request joins which wants the content; false where the flight has been closed meanwhile. In one order
    /// with [`FlightGuard::gives_up_unread`](super::FlightGuard::gives_up_unread): at least one of the two sees the other.
    pub(super) fn is_joined(&self, flight_request: &FlightRequest<'_>) -> bool {
        if !flight_request.wants_content {
            return true;
        }
        self.is_wanted.store(true, Ordering::SeqCst);
        !self.closed.load(Ordering::SeqCst)
    }
}
