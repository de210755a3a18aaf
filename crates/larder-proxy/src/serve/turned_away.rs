//! A request that belongs nowhere, or elsewhere: an unknown host, a path that climbs, a loop, a site that is served over TLS alone.
//!
//! In: its head and why. Out: the answer, which is larder's own. It has no site and no rule, but a line in the log, a place in the
//! counters, and the same word in all of them, like every other answer.

use std::sync::Arc;

use http::HeaderValue;
use http::header::LOCATION;
use larder_http::fields::cache_status::{CacheStatus, Outcome, RequestResult};
use larder_http::message::{Peer, RequestHead, Response};
use larder_observe::{LogRecord, Served};

use crate::exchange::tell_head;
use crate::failure::Failure;
use crate::receipt::{Account, Logged, Receipt};
use crate::respond;
use crate::sampled::{SampledClient, sample_own};
use crate::worker::Worker;

/// Why, and where to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TurnedAwayRequest {
    pub(super) failure: Failure,
    pub(super) location: Option<HeaderValue>,
}

impl From<Failure> for TurnedAwayRequest {
    fn from(failure: Failure) -> Self {
        Self { failure, location: None }
    }
}

/// Answers it.
pub(super) fn answer(
    worker: &Arc<Worker>,
    head: &RequestHead,
    peer: &Peer,
    TurnedAwayRequest { failure, location }: TurnedAwayRequest,
) -> (Response, Receipt) {
    worker.proxy.turned_away.note(failure.detail);
    let mut response = respond::failure(failure);
    response.head.fields.extend(location.map(|location| (LOCATION, location)));
    answer_with(worker, (head, peer), response, failure.detail)
}

/// Answers a request by what larder has to say before there is a site, with the word for it.
pub(super) fn answer_with(
    worker: &Arc<Worker>,
    (head, peer): (&RequestHead, &Peer),
    mut response: Response,
    detail: &'static str,
) -> (Response, Receipt) {
    let client = peer.remote.ip();
    let (counted, started) = (Default::default(), worker.proxy.clock.now());
    worker.metrics.request(counted, &head.method, response.head.status, RequestResult::Own);
    let status = CacheStatus { detail: Some(detail), ..CacheStatus::new(Outcome::Own) };
    let log = worker.proxy.log_format().map(|format| {
        let mut record = LogRecord::new(started.wall, client);
        record.status = response.head.status;
        record.cache_status = Some(&status);
        record.tls = peer.tls.as_deref();
        tell_head(head, &head.target, &mut record);
        Logged { line: record.line(format), stored: false, storing: None, page: None }
    });
    let seen = SampledClient { started, client, tls: peer.tls.as_deref().map(|tls| tls.version) };
    let sample = sample_own(worker, head, seen, (&response, &status));
    response.head.cache_status = Some(status);
    (response, Receipt(Some(Account { counted, started, served: Served::Local, log, sample })))
}
