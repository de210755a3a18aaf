//! What is still to be noted of an exchange when its response has left.
//!
//! In: what was known when the response was made, then how its delivery went. Out: the counters, and a line of the log, which
//! may have to wait until it is known whether the response is stored.

use std::sync::Arc;
use std::time::Duration;

use larder_http::message::Delivery;
use larder_http::time::Now;
use larder_observe::{Ending, LogLine, RouteId, RuleId, Served};

use crate::assemble::PageTold;
use crate::collapse::Storing;
use crate::sampled::Sampled;
use crate::worker::Worker;

/// Nothing for a request that was never an exchange.
pub struct Receipt(pub(crate) Option<Account>);

pub(crate) struct Account {
    /// The site and the rule that it is counted by.
    pub(crate) counted: (RouteId, RuleId),
    pub(crate) started: Now,
    pub(crate) served: Served,
    pub(crate) log: Option<Logged>,
    pub(crate) sample: Option<Sampled>,
}

/// A line of the log that lacks its end.
pub(crate) struct Logged {
    pub(crate) line: LogLine,
    /// Whether the response was stored, as far as its head told.
    pub(crate) stored: bool,
    /// The same from the end of its body, and why it was not, where it was still arriving.
    pub(crate) storing: Option<Arc<Storing>>,
    /// What became of its fragments, where it is a page.
    pub(crate) page: Option<Arc<PageTold>>,
}

impl Account {
    /// Closes it: how long it took, and a line in the log.
    #[inline]
    pub(crate) fn close(self, worker: &Worker, delivery: Delivery) {
        let took = worker.proxy.clock.until(delivery.at, &self.started);
        worker.metrics.delivered(self.counted, self.served, took, delivery.body_bytes, delivery.complete);
        if let Some(logged) = self.log {
            logged.close(worker, &delivery, took);
        }
        if let Some(sampled) = self.sample {
            sampled.close(worker, &delivery, took);
        }
    }
}

impl Logged {
    /// Writes the line, with its end.
    #[inline(never)]
    fn close(self, worker: &Worker, delivery: &Delivery, took: Duration) {
        let Self { line, stored, storing, page } = self;
        let page = page.map(|page| page.ending());
        let Delivery { body_bytes, complete, .. } = *delivery;
        let ending = Ending { body_bytes, complete, request_time: took, stored, not_stored: None, page };
        let Some(storing) = storing else {
            return worker.proxy.log(worker.index, line, &ending);
        };
        let (proxy, index) = (Arc::clone(&worker.proxy), worker.index);
        storing.when_settled(move |outcome| {
            let (stored, not_stored) = (outcome.is_ok(), outcome.err());
            proxy.log(index, line, &Ending { stored, not_stored, ..ending });
        });
    }
}
