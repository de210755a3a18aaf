//! A request that belongs nowhere: an unknown host, a path that climbs, a loop.
//!
//! In: its head and why. Out: the answer, which is larder's own. It has no site and no rule, but a line in the log, a place in the
//! counters, and the same word in all of them, like every other answer.

use std::net::IpAddr;
use std::sync::Arc;

use larder_http::fields::cache_status::{CacheStatus, Outcome, RequestResult};
use larder_http::message::{RequestHead, Response};
use larder_observe::{LogRecord, Served};

use crate::exchange::tell_head;
use crate::failure::Failure;
use crate::receipt::{Account, Logged, Receipt};
use crate::respond;
use crate::sampled::sample_own;
use crate::worker::Worker;

/// Answers it.
pub(super) fn answer(
    worker: &Arc<Worker>,
    head: &RequestHead,
    client: IpAddr,
    failure: Failure,
) -> (Response, Receipt) {
    let (counted, started) = (Default::default(), worker.proxy.clock.now());
    worker.metrics.request(counted, &head.method, failure.status, RequestResult::Own);
    worker.proxy.turned_away.note(failure.detail);
    let mut response = respond::failure(failure);
    let status = CacheStatus { detail: Some(failure.detail), ..CacheStatus::new(Outcome::Own) };
    let log = worker.proxy.log_format().map(|format| {
        let mut record = LogRecord::new(started.wall, client);
        record.status = failure.status;
        record.cache_status = Some(&status);
        tell_head(head, &head.target, &mut record);
        Logged { line: record.line(format), stored: false, storing: None, page: None }
    });
    let sample = sample_own(worker, head, (started, client), (&response, &status));
    response.head.cache_status = Some(status);
    (response, Receipt(Some(Account { counted, started, served: Served::Local, log, sample })))
}
