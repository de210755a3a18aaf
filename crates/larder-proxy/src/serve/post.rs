//! An answer to POST that says of itself that it is what a GET would bring: kept for GET (RFC 9110 9.3.3).
//!
//! In: a POST before it is sent, and its answer. Out: the answer on its way to the client and into the index. The flight
//! is registered before the request goes out, so that whatever is invalidated meanwhile, by a later POST above all, keeps
//! an answer that was overtaken from being stored. Nobody else waits for it.
//! Only where the origin was asked for exactly what a GET would ask: the same target, under the same edits.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::header::SET_COOKIE;
use larder_cache::{ExchangeTimes, Storability};
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_origin::OriginResponse;

use super::{reply, sheet};
use crate::collapse::{FlightGuard, FlightOutcome, FlightRequest};
use crate::decision::{Counters, Facts, Next, next};
use crate::detail::COOKIES_WITHHELD;
use crate::exchange::{Exchange, Reply};
use crate::facts;
use crate::failure::Failure;
use crate::forward::{self, Candidates, FetchTask};
use crate::invalidation::Forgotten;
use crate::key;
use crate::settings::RuleSettings;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;

/// A POST whose answer may be kept for GET, and the settings that a GET would have.
pub(super) struct ForGet {
    settings: Arc<RuleSettings>,
    guard: FlightGuard,
}

impl ForGet {
    /// Registers the flight of a POST that is about to be sent; `None` where its answer would not be for GET.
    pub(super) fn before_sending(worker: &Worker, exchange: &Exchange) -> Option<Self> {
        if exchange.asked.head.method != Method::POST {
            return None;
        }
        let mut get = exchange.asked.head.clone();
        get.method = Method::GET;
        get.target = exchange.asked.raw_target().clone();
        let settings = exchange
            .site()
            .settings_for(&get)
            .ok()
            .filter(|settings| settings.cache && settings.versions.is_none())?;
        if let Some(target) = key::normalise(&get.target, &settings.key) {
            get.target = target;
        }
        let same_edits = Arc::ptr_eq(settings, exchange.settings())
            || (settings.request.is_empty() && exchange.settings().request.is_empty());
        if get.target != exchange.asked.head.target || !same_edits {
            return None;
        }
        let key = key::key(&get, &settings.key, None, b"");
        let guard = worker.proxy.flights.alone(FlightRequest {
            key: &key,
            rule: settings.number,
            request: &Arc::new(exchange.asked.head.clone()),
            expected: None,
            wants_content: true,
            number: &|| worker.proxy.invalidations.current(),
            arrived: worker.proxy.invalidations.current(),
            begun: exchange.started,
        });
        Some(Self { settings: Arc::clone(settings), guard })
    }

    /// The flight, which the invalidation that this very POST causes leaves alone.
    pub(super) fn guard(&self) -> &FlightGuard {
        &self.guard
    }

    /// The answer invalidated what is older than `number`, and is newer than that itself.
    pub(super) fn after_invalidating(mut self, number: u64) -> Self {
        if !self.is_overtaken() {
            self.guard.is_newer_than(number);
        }
        self
    }

    /// Whether another request has invalidated what the answer is about.
    fn is_overtaken(&self) -> bool {
        !self.guard.is_valid() || self.guard.outdated().is_some()
    }

    /// Whether the answer may be kept: nothing has overtaken it, and no rule forbids it.
    pub(super) fn takes(&self, exchange: &Exchange, answer: &OriginResponse, times: ExchangeTimes) -> bool {
        let judged = || forward::judge(&exchange.asked.head, answer, times, &self.settings.policy);
        !self.is_overtaken() && matches!(judged(), Storability::Storable(_))
    }

    /// Sends the answer to the client while it is stored.
    pub(super) async fn keep(
        mut self,
        worker: &Arc<Worker>,
        worker_plan: &Arc<WorkerPlan>,
        exchange: &mut Exchange,
        origin: usize,
        (answer, times): (Box<OriginResponse>, ExchangeTimes),
    ) -> Reply {
        self.guard.began(times.request);
        let uses = facts::uses(&self.settings, None, || worker.proxy.uses.count(self.guard.key().hash()));
        let forwarding = facts::forwarding((&exchange.asked.head, &self.settings), None, true, uses);
        let (step, _) = next(&Facts::Forwarding(forwarding), Counters::default());
        let seldom = matches!(step, Next::Board { seldom: true, .. });
        let mut leader = self.guard.lead();
        let task = FetchTask {
            worker: Arc::clone(worker),
            worker_plan: Arc::clone(worker_plan),
            settings: self.settings,
            origin,
            asker: exchange.asker.clone(),
            hash: None,
            content: Bytes::new(),
            offered: Candidates::default(),
            before: None,
            since: Forgotten::default(),
            seldom,
            completing: None,
            is_behind: false,
            may_wait_elsewhere: false,
        };
        let guard = self.guard;
        tokio::spawn(Box::pin(async move { forward::receive(&task, &guard, answer, times).await }));
        let mut status = CacheStatus::new(Outcome::Own);
        let now = worker.proxy.clock.now();
        match leader.outcome(drop).await {
            FlightOutcome::Shared { response: shared, own, reader } => {
                let (response, sheet) = match sheet::from_shared(&shared) {
                    Some(template) => {
                        reply::tell_shared(&shared, &mut status, now);
                        template.unzip()
                    }
                    None => (reply::from_shared(exchange, &shared, &mut status, now), None),
                };
                drop(reader);
                if let Some(mut response) = response {
                    exchange.storing = Some(Arc::clone(&shared.storing));
                    if own.contains_key(SET_COOKIE) {
                        status.detail = status.detail.or(Some(COOKIES_WITHHELD));
                    }
                    response.head.fields.extend(own);
                    return Reply { response, status, sheet };
                }
            }
            FlightOutcome::Passed(passed) => return reply::passed_answer(exchange, passed, status, now),
            FlightOutcome::Failed(failure) => return reply::failed(Outcome::Own, failure),
            _ => {}
        }
        reply::failed(Outcome::Own, Failure::BODY_BROKEN)
    }
}
