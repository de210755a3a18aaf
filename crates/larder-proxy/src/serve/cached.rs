//! GET, HEAD and QUERY on a site that caches: from the stores where that is enough, else from a fetch that all who ask
//! share.
//!
//! In: an exchange. Out: its reply. The request goes from step to step: each step does one thing, has [`next`] decide what
//! follows on it, and returns that. The loop ends, because [`next`] counts: a request looks so often and outlives so many
//! lost fetches, then it goes alone or gives up.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use larder_cache::ValidateReason;
use larder_http::fields::cache_status::{Forward, HitSource, Outcome};
use larder_http::time::Now;
use larder_listen::Interims;
use larder_store::CacheKey;
use tokio::time::{Instant, timeout, timeout_at};

use super::context::RequestContext;
use super::look::{FirstLook, Look, Missing};
use super::outcome::{WaitingRequest, is_usable, take};
use super::reply;
use super::used::{Used, answered};
use crate::before::Before;
use crate::collapse::{FlightOutcome, FlightRequest, Follower, Role, SharedResponse};
use crate::decision::{Counters, Facts, Next, WaitResult, next};
use crate::detail::{COLLAPSE_WAIT, ELSEWHERE, NO_LEASE, REMOTE};
use crate::exchange::{Exchange, Reply};
use crate::facts;
use crate::failure::Failure;
use crate::fetch;
use crate::forward::{self, Candidates, FetchTask};
use crate::invalidation::{Forgotten, Judge};
use crate::lookup::{LookupResult, Miss};
use crate::settings::RuleSettings;
use crate::versions::NotKnown;

/// Where a request is on its way.
enum Step {
    /// It looks at the stores.
    Look,
    /// It asks the disks, files and values for what memory has not.
    Recall(Box<Missing>),
    /// It finds a flight to wait for, or begins one.
    Board { missing: Box<Missing>, alone: bool },
    /// It waits for a flight.
    Wait(Waiting),
    /// It waits for a flight that it may not follow.
    Outlast(Follower, Now),
    /// It has its answer.
    Reply(Box<Reply>),
}

/// A request that waits for a flight.
struct Waiting {
    follower: Follower,
    miss: Miss,
    /// When it began to wait.
    began: Now,
    /// How far predicates had been forgotten then.
    since: Forgotten,
    /// The flight is another request's.
    collapsed: bool,
    /// Nobody else may join the flight.
    alone: bool,
}

/// A request that is looked up.
struct CachedRequest<'a> {
    context: RequestContext<'a>,
    exchange: &'a mut Exchange,
    interims: &'a Interims,
    settings: Arc<RuleSettings>,
    key: CacheKey,
    /// The last invalidation when it came: what was fetched after that is new enough for it.
    arrived: u64,
    counters: Counters,
    /// How often its URL was asked for, as it was counted once; see [`facts::uses`].
    uses: Option<Option<u8>>,
    went_alone: bool,
    /// How another larder's response came to this one, where it has, for the look that follows.
    from_others: Option<&'static str>,
    /// There was no lease when what is stored was found to be in doubt.
    lacked_lease: bool,
}

/// Looks, where that has not been done, and where it is not enough, asks the origin once for all who wait.
///
/// # Cancel safety
/// Dropped, the request leaves its flight. The fetch goes on where others need it, or its response is stored.
pub(super) async fn cached(
    context: RequestContext<'_>,
    exchange: &mut Exchange,
    looked: Option<Box<FirstLook>>,
    interims: &Interims,
) -> Reply {
    exchange.keyed = true;
    exchange.asked.take_versions().await;
    let (mut request, mut step) = CachedRequest::new(context, exchange, looked, interims);
    loop {
        step = match step {
            Step::Look => request.look(),
            Step::Recall(missing) => request.recall(missing).await,
            Step::Board { missing, alone } => request.board(*missing, alone),
            Step::Wait(waiting) => request.wait(waiting).await,
            Step::Outlast(follower, since) => request.outlast(follower, since).await,
            Step::Reply(reply) => return *reply,
        };
    }
}

impl<'a> CachedRequest<'a> {
    /// Begins with the first look, or goes on from that.
    fn new(
        context: RequestContext<'a>,
        exchange: &'a mut Exchange,
        looked: Option<Box<FirstLook>>,
        interims: &'a Interims,
    ) -> (Self, Step) {
        let settings = Arc::clone(exchange.settings());
        let (key, arrived, missing) = match looked {
            Some(looked) => (looked.key, looked.arrived, Some(looked.missing)),
            None => {
                let key = exchange.asked.key(&context.content);
                let proxy = &context.worker.proxy;
                proxy.heed_lease();
                let arrived = match exchange.asked.versions_not_known() {
                    None => proxy.invalidations.current(),
                    Some(_) => proxy.invalidations.doubt_for_one(),
                };
                (key, arrived, None)
            }
        };
        let counters = facts::counters(&exchange.asked.head, &settings);
        let (uses, went_alone, from_others, lacked_lease) = (None, false, None, false);
        let mut request = Self {
            context,
            exchange,
            interims,
            settings,
            key,
            arrived,
            counters,
            uses,
            went_alone,
            from_others,
            lacked_lease,
        };
        let step = missing.map_or(Step::Look, |missing| request.after_miss(missing));
        (request, step)
    }

    fn decide(&mut self, facts: &Facts) -> Next {
        let (next, counters) = next(facts, self.counters);
        self.counters = counters;
        next
    }

    fn look_at(&self, now: Now) -> Look<'_> {
        Look {
            context: &self.context,
            exchange: self.exchange,
            key: &self.key,
            arrived: Some(self.arrived),
            since: self.context.worker.proxy.invalidations.forgotten(),
            now,
            has_asked: self.counters.has_recalled(),
        }
    }

    fn look(&mut self) -> Step {
        let now = self.context.worker.proxy.clock.now();
        let found = self.look_at(now).at_once();
        self.use_or_miss(found, now)
    }

    async fn recall(&mut self, missing: Box<Missing>) -> Step {
        let now = missing.now;
        let recalled = self.look_at(now).recalled().await;
        if !self.context.worker.proxy.heed_lease() {
            // What was found was good before the lease was over.
            return Step::Look;
        }
        match recalled {
            Some(found) => {
                // A store with records has nothing else behind its memory.
                self.from_others = self.settings.store.asks_for_records().then_some(REMOTE);
                self.use_or_miss(found, now)
            }
            // What memory has counts from now on, as it is.
            None if missing.miss.asks_first => Step::Look,
            None => self.use_or_miss(Err(missing.miss), now),
        }
    }

    fn use_or_miss(&mut self, mut found: Result<Used, Miss>, now: Now) -> Step {
        // It is this look that finds what came, or none.
        let mut from_others = self.from_others.take().filter(|_| found.is_ok());
        loop {
            let mut used = match found.or_else(|miss| self.look_at(now).missed(miss, self.counters)) {
                Ok(used) => used,
                Err(missing) => return self.after_miss(missing),
            };
            let from_others = from_others.take();
            if from_others.is_some() {
                used.came_from(HitSource::Remote);
            }
            if let Used::Stored { detail: detail @ None, .. } = &mut used {
                *detail = from_others;
            }
            if let Some(reply) = answered(&self.context, self.exchange, (used, now)) {
                return Step::Reply(Box::new(reply));
            }
            // It lay on a disk, and went with its segment a moment later.
            found = Err(Miss::gone());
        }
    }

    fn after_miss(&mut self, missing: Box<Missing>) -> Step {
        self.counters = missing.counters;
        let is_in_doubt = missing.miss.invalidated == Some(ValidateReason::BelowFloor);
        self.lacked_lease = is_in_doubt && !self.context.worker.proxy.has_lease();
        match missing.next {
            Next::Recall => Step::Recall(missing),
            Next::Forward { alone } => Step::Board { missing, alone },
            _ => Step::Look,
        }
    }

    fn board(&mut self, missing: Missing, alone: bool) -> Step {
        missing.forwards();
        let Missing { miss, now, .. } = missing;
        if miss.forward == Forward::UriMiss && self.exchange.before.is_none() {
            let (before, _) = Before::of(&self.context.worker.proxy.fates, &self.key, now.monotonic);
            self.exchange.before = Some(before);
        }
        let uses = self.uses(&miss);
        let asked = (&self.exchange.asked.head, &*self.settings);
        let forwarding = facts::forwarding(asked, Some(&miss), alone, uses);
        let Next::Board { alone, seldom, as_get } = self.decide(&Facts::Forwarding(forwarding)) else {
            return Step::Look;
        };
        let since = self.context.worker.proxy.invalidations.forgotten();
        let role = self.role(&miss, now, alone, as_get);
        let next = self.decide(&Facts::Boarded(role.boarding()));
        match (next, role) {
            (Next::Wait, Role::Lead(guard)) => {
                let follower = guard.lead();
                let task = self.task(&miss, seldom);
                // Boxed: the runtime moves what it is given, several times, and this is large.
                tokio::spawn(Box::pin(forward::fly(task, guard)));
                Step::Wait(Waiting { follower, miss, began: now, since, collapsed: false, alone })
            }
            (Next::Wait, Role::Follow(follower)) => {
                Step::Wait(Waiting { follower, miss, began: now, since, collapsed: true, alone })
            }
            (Next::Outlast, Role::After(follower)) => Step::Outlast(follower, now),
            // It neither asked nor waits.
            (Next::Fail(failure), _) => failed(Outcome::Own, failure, false),
            _ => Step::Look,
        }
    }

    /// How often the URL was asked for. It is counted once per request.
    fn uses(&mut self, miss: &Miss) -> Option<u8> {
        let count = || self.context.worker.proxy.uses.count(self.key.hash());
        *self.uses.get_or_insert_with(|| facts::uses(&self.settings, Some(miss), count))
    }

    fn role(&mut self, miss: &Miss, now: Now, alone: bool, as_get: bool) -> Role {
        let (proxy, exchange) = (&self.context.worker.proxy, &*self.exchange);
        let head = fetch::for_flight(&exchange.asked.head, miss.marked, as_get);
        let flight_request = FlightRequest {
            key: &self.key,
            rule: self.settings.number,
            request: &Arc::new(head),
            expected: miss.expected(),
            wants_content: exchange.asked.head.method != Method::HEAD,
            number: &|| proxy.invalidations.current(),
            arrived: self.arrived,
            begun: now,
        };
        if alone {
            if self.counters.is_impatient() && !self.went_alone {
                self.context.worker.metrics.went_alone();
                self.went_alone = true;
            }
            return Role::Lead(proxy.flights.alone(flight_request));
        }
        let judge = Judge::new(&proxy.invalidations, Some(self.arrived));
        let judge = judge.doubting(exchange.asked.versions_not_known().is_some());
        let usable = |shared: &SharedResponse| {
            judge.is_good(&self.key, &shared.head, shared.number) && is_usable(exchange, &shared.head, now)
        };
        let unchanged =
            || matches!(self.look_at(now).again(), LookupResult::Miss(again) if again.is_same(miss));
        proxy.flights.board(flight_request, usable, unchanged)
    }

    fn task(&self, miss: &Miss, seldom: bool) -> FetchTask {
        let (context, exchange) = (&self.context, &*self.exchange);
        let others = miss.others_offered(&exchange.asked.head.fields);
        let offered = Candidates { selected: miss.selected.clone(), others, since: miss.since };
        FetchTask {
            completing: miss.part.clone(),
            seldom,
            ..context.task(&exchange.asked, &exchange.asker, offered)
        }
    }

    /// How much longer it waits for others, and when it may go alone after that.
    fn patience(&self) -> Option<(Duration, impl FnOnce() -> Instant)> {
        let waited = self.exchange.collapse_wait.unwrap_or_default();
        let left = self.settings.collapse_wait?.saturating_sub(waited);
        let (flights, key) = (Arc::clone(&self.context.worker.proxy.flights), self.key.clone());
        Some((left, move || flights.turn_alone(&key, Instant::now())))
    }

    fn note_wait(&mut self, since: Now) {
        let waited = self.context.worker.proxy.clock.now().since(&since);
        self.exchange.collapse_wait = Some(self.exchange.collapse_wait.unwrap_or_default() + waited);
    }

    async fn outlast(&mut self, mut follower: Follower, since: Now) -> Step {
        let patience = self.patience();
        let in_time = outcome_in_time(&mut follower, &Interims::default(), patience).await.is_some();
        self.note_wait(since);
        self.decide(&Facts::Outlasted { in_time });
        Step::Look
    }

    async fn wait(&mut self, waiting: Waiting) -> Step {
        let Waiting { mut follower, miss, began, since, collapsed, alone } = waiting;
        let patience = self.patience().filter(|_| collapsed && !alone);
        let outcome = outcome_in_time(&mut follower, self.interims, patience).await;
        if collapsed {
            self.note_wait(began);
        }
        if let Some(outcome) = &outcome {
            self.begin_versions(outcome);
            if matches!(outcome, FlightOutcome::FetchedElsewhere) {
                self.from_others = Some(ELSEWHERE);
            }
        }
        let waiting = WaitingRequest { key: &self.key, miss: &miss, arrived: self.arrived, since };
        let taken = match outcome {
            Some(outcome) => take(&self.context, self.exchange, &waiting, outcome, collapsed),
            None => Err(WaitResult::TooLate),
        };
        if taken.is_ok() {
            self.exchange.fetched = follower.fetched();
        }
        let result = taken.as_ref().err().copied().unwrap_or(WaitResult::Answers);
        match (self.decide(&Facts::Ended(result)), taken) {
            (Next::Answer, Ok(reply)) => self.answer(reply, &miss),
            (Next::Fail(failure), _) => failed(Outcome::Forwarded(miss.forward), failure, collapsed),
            _ => Step::Look,
        }
    }

    /// A version that is not there begins where the origin has given what may be stored: a URL that it does not know is no reason.
    fn begin_versions(&self, outcome: &FlightOutcome) {
        let is_absent = self.exchange.asked.versions_not_known() == Some(NotKnown::Absent);
        let is_stored = || match outcome {
            FlightOutcome::Shared { response, .. } => response.head.status == StatusCode::OK,
            FlightOutcome::Confirmed { stored, .. } => stored.head.status == StatusCode::OK,
            _ => false,
        };
        if is_absent
            && let Some(rule) = self.settings.versions.as_ref().filter(|rule| rule.begins() && is_stored())
        {
            rule.begin(&self.exchange.asked.head);
        }
    }

    fn answer(&self, mut reply: Box<Reply>, miss: &Miss) -> Step {
        let not_known = self.exchange.asked.versions_not_known();
        let of_validation = |reason: ValidateReason| match reason {
            ValidateReason::BelowFloor if self.lacked_lease => NO_LEASE,
            reason => reason.token(),
        };
        let why = not_known.map(NotKnown::token).or(miss.invalidated.map(of_validation));
        let detail = &mut reply.status.detail;
        *detail = detail.or(self.went_alone.then_some(COLLAPSE_WAIT)).or(why);
        if miss.invalidated == Some(ValidateReason::Invalidated) && not_known.is_none() {
            self.context.worker.metrics.request_invalidated();
        }
        Step::Reply(reply)
    }
}

fn failed(outcome: Outcome, failure: Failure, collapsed: bool) -> Step {
    let mut reply = reply::failed(outcome, failure);
    reply.status.collapsed = collapsed;
    Step::Reply(Box::new(reply))
}

/// Waits for a flight's outcome, passing on interim responses; with `patience` for so long, and then for its turn to go
/// alone. `None` where that has come.
async fn outcome_in_time(
    follower: &mut Follower,
    interims: &Interims,
    patience: Option<(Duration, impl FnOnce() -> Instant)>,
) -> Option<FlightOutcome> {
    let pass_on = |interim| interims.push(interim);
    let Some((patience, turn)) = patience else { return Some(follower.outcome(pass_on).await) };
    if let Ok(outcome) = timeout(patience, follower.outcome(pass_on)).await {
        return Some(outcome);
    }
    timeout_at(turn(), follower.outcome(pass_on)).await.ok()
}

#[cfg(test)]
mod tests;
