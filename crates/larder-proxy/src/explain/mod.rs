//! Why a request is answered as it is: `larder explain`.
//!
//! In: a [`Question`]. Out: an [`Explanation`]. It takes the steps that a request takes, in the same order and by the
//! same calls, and tells what each of them said; nothing is decided here, and nothing is stored. An expired mark or an
//! invalidated response that the look-up clears away on its walk is all that it ever changes.
//! Where nothing usable is stored the origin is asked once, over a connection of its own that ends with the head, unless
//! the question says not to. Only GET and HEAD are ever sent, and the worker's own connections are not touched.
//! The request counts as one of a client that is not trusted. Deliberately absent: any text beyond single sentences;
//! layout is the command line's.

mod assembled;
mod compression;
mod cookies;
mod course;
mod explanation;
mod file;
mod fragments;
mod origin;
mod parts;
mod printed;
mod purged;
mod purges;
mod question;
mod reason;
mod recorded;
mod records;
mod removal;
mod route;
mod stale;
mod stored;
mod walk;
mod whereabouts;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use larder_cache::{Offered, Reuse, StaleReason, StoredHead, ValidateReason};
use larder_http::fields::cache_status::{CacheStatus, Forward, Outcome};
use larder_http::message::{RequestHead, Scheme};
use smallvec::SmallVec;

use crate::before::Before;
use crate::decision::{Counters, Facts, Next, next};
use crate::detail::{NO_LEASE, UPGRADE_IS_OFF};
use crate::facts::{self, Carried};
use crate::failure::Failure;
use crate::invalidation::Judge;
use crate::key;
use crate::lookup::{Lookup, LookupResult, Miss};
use crate::serve::standing_in;
use crate::settings::RuleSettings;
use crate::versions::{NotKnown, RequestVersions};
use crate::worker::Worker;
pub use explanation::{
    AskedRequest, Candidate, Course, Decision, Destination, ExplainedBefore, ExplainedFragment,
    ExplainedFreshness, ExplainedInclude, ExplainedLevel, ExplainedPage, ExplainedProblem, ExplainedPurge,
    ExplainedRecord, ExplainedResponse, Explanation, Field, FleetPlace, Judgement, Key, KeyPart,
    LookedThrough, OriginAnswer, OriginServer, PartBounds, PassedOver, PurgeOutlook, Reason, RecordFetch,
    RecordServer, RecordTold, Route, StaleUse, Stored, VaryField, Window,
};
pub(crate) use fragments::uri_of;
use parts::FoundPage;
pub(crate) use parts::{FoundFragment, FoundPart, LookedUp, NoPage, Parts, TemplateAtHand, WantedFragment};
use printed::{fields_of, printable, seconds, visible};
pub use question::{ExplainError, Question};
use reason::CONFIGURATION;
use stored::Under;
use walk::{Outlook, Walk};

impl Worker {
    /// Explains what would become of a request that came now. `running` is passed on in the answer.
    ///
    /// Takes as long as the origin takes for a head, where it is asked, within the limits of that origin.
    ///
    /// # Errors
    /// The request would be refused before anything about caching is decided.
    ///
    /// # Cancel safety
    /// May be dropped at any time; a connection to the origin is closed then.
    pub async fn explain(
        self: Arc<Self>,
        mut question: Question,
        running: bool,
    ) -> Result<Explanation, ExplainError> {
        let plan = Arc::clone(&self.worker_plan.load().plan);
        let head = &mut question.head;
        let before = head.fields.clone();
        crate::route::drop_unkeyed_fields(head, false);
        let unknown = |head: &RequestHead| ExplainError::UnknownHost(head.authority.host().to_owned());
        let (index, site) = plan.router.site(head.authority.host()).ok_or_else(|| unknown(head))?;
        if head.scheme == Scheme::Http && site.settings.tls.as_ref().is_some_and(|tls| tls.redirect.is_some())
        {
            return Err(ExplainError::Https(format!("https://{}{}", head.authority.host(), head.target)));
        }
        let settings = site.settings_for(head).map_err(|_| ExplainError::ClimbingPath)?;
        let raw_target = head.target.clone();
        let mut route = route::told(&plan, site, settings, head);
        route.websocket = question.websocket.then(|| route::websocket(site));
        let dropped_fields =
            before.keys().filter(|name| !head.fields.contains_key(*name)).map(ToString::to_string).collect();
        settings.request.apply(&mut head.fields);
        if let Some(target) = key::normalise(&head.target, &settings.key) {
            head.target = target;
        }
        let request = AskedRequest {
            method: head.method.to_string(),
            url: format!("{}://{}{raw_target}", head.scheme.as_str(), head.authority.as_str()),
            fields: fields_of(&head.fields),
            dropped_fields,
            running,
        };
        let now = self.proxy.clock.now();
        let versions = versions_of(settings, &question).await;
        // As a request that comes now.
        self.proxy.heed_lease();
        let walk = Walk { worker: &self, plan: &plan, site, settings, question, versions, now, running };
        if let Some(refused) = walk.before_the_cache(index).await {
            return Ok(walk.told(request, route, None, Stored::default(), refused, (None, None)));
        }
        let key = walk.key();
        let records = walk.records(&key).await;
        walk.recall(&key).await;
        let found = walk.find(&key).await;
        let under = Under::look(&walk, &key).await;
        let mut outlook = walk.look_up(&key, &under, found);
        // It speaks of the URL: where all of a response is stored, another variant's reason would mislead.
        outlook.decision.last_time = if under.has_whole() { None } else { walk.last_time(&key) };
        let told = route::key_told(&walk, &raw_target);
        let answer = match outlook.needs_origin {
            true => walk.ask_origin(&outlook).await,
            false => None,
        };
        let parts = walk.parts(&under).await;
        let stored = Stored { records, ..under.told(&walk, &key) };
        let purge = walk.purge_outlook(&raw_target).await;
        Ok(Explanation { purge, ..walk.told(request, route, Some(told), stored, outlook, (answer, parts)) })
    }
}

/// The versions that a request under this rule would have.
async fn versions_of(settings: &RuleSettings, question: &Question) -> Option<RequestVersions> {
    let (rule, head) = (settings.versions.as_ref()?, &question.head);
    if question.offline {
        return Some(rule.unread(head));
    }
    match rule.known(head) {
        Some(known) => Some(known),
        None => Some(rule.read(head).await),
    }
}

impl Walk<'_> {
    fn head(&self) -> &RequestHead {
        &self.question.head
    }

    /// What becomes of a request that is not looked up.
    async fn before_the_cache(&self, site: usize) -> Option<Outlook> {
        let document = match self.plan.roots.get(site) {
            Some(Some(root)) => root.find(self.head()).await.document(),
            _ => None,
        };
        // The content of a question is part of its key.
        let carried = Carried { websocket: self.question.websocket, has_content: false };
        let (method, chosen) = (&self.head().method, (&self.site.settings, &**self.settings));
        let arrived = facts::arrived(method, chosen, self.plan.origins.len(), document, carried);
        match next(&Facts::Arrived(arrived), Counters::default()).0 {
            Next::File => Some(self.of_file("static-file", "A file below the site's root will answer it.")),
            Next::Redirect => {
                let sentence = "It will be redirected to the directory's own path.";
                Some(self.of_file("static-directory", sentence))
            }
            Next::Refuse(failure) => {
                let status = failure.status.as_u16();
                let sentence = format!("The site has no origin and no such file: {status}.");
                Some(self.refused(failure, sentence, CONFIGURATION))
            }
            Next::Pass { forward, detail } => Some(self.passed(forward, detail)),
            _ => None,
        }
    }

    fn of_file(&self, token: &'static str, sentence: &str) -> Outlook {
        let status = CacheStatus { detail: Some(token), ..CacheStatus::new(Outcome::Own) };
        self.settled(Course::File, Reason::new(token, sentence, CONFIGURATION), status)
    }

    fn refused(&self, failure: Failure, sentence: String, section: &str) -> Outlook {
        let status = CacheStatus { detail: Some(failure.detail), ..CacheStatus::new(Outcome::Own) };
        self.settled(Course::Refuse, Reason::new(failure.detail, sentence, section), status)
    }

    fn passed(&self, forward: Forward, detail: Option<&'static str>) -> Outlook {
        let (sentence, section) = match (forward, detail) {
            (_, Some(_)) => (
                "It is a WebSocket handshake: it will go to the origin, and nothing will be stored."
                    .to_owned(),
                "RFC 6455 4.1, RFC 9211 2.2",
            ),
            (Forward::Method, None) => (
                format!(
                    "{} is never answered from what is stored: it will go to the origin.",
                    self.head().method
                ),
                "RFC 9111 4, RFC 9211 2.2",
            ),
            _ => (
                "The rule says cache = \"off\": it will go to the origin, and nothing will be stored."
                    .to_owned(),
                "configuration, RFC 9211 2.2",
            ),
        };
        let reason = Reason::new(detail.unwrap_or(forward.token()), sentence, section);
        let status = CacheStatus { detail, ..CacheStatus::new(Outcome::Forwarded(forward)) };
        self.settled(Course::Pass, reason, status)
    }

    fn key(&self) -> larder_store::CacheKey {
        let versions = self.versions.as_ref().map(RequestVersions::key_text);
        key::key(self.head(), &self.settings.key, versions, &self.question.content)
    }

    /// What a request would bring from a disk into memory is brought, so that it can be told of.
    async fn recall(&self, key: &larder_store::CacheKey) {
        let lookup =
            Lookup { rule: self.settings, hot: None, key, request: self.head(), judge: Judge::lenient() };
        if matches!(lookup.look_up(self.now), LookupResult::Miss(miss) if miss.may_recall) {
            lookup.recall(self.now).await;
        }
    }

    /// Why the versions of its rule are only the last that were known.
    fn not_known(&self) -> Option<NotKnown> {
        self.versions.as_ref()?.not_known
    }

    /// Why the last response under the key was not stored.
    fn last_time(&self, key: &larder_store::CacheKey) -> Option<Reason> {
        let (before, _) = Before::of(&self.worker.proxy.fates, key, self.now.monotonic);
        let why = before.not_stored()?;
        Some(Reason::new(why.token(), why.sentence(), CONFIGURATION))
    }

    /// What the look-up says, in words.
    fn look_up(&self, key: &larder_store::CacheKey, under: &Under, found: LookupResult) -> Outlook {
        match found {
            LookupResult::Fresh { stored, .. } if stored.body.is_by_hand() => self.by_hand(&stored),
            LookupResult::Fresh { stored, ttl, .. } => self.hit(&stored, ttl.is_zero()),
            LookupResult::Refresh { stored, ground, .. } => {
                let invalidations = &self.worker.proxy.invalidations;
                let head = invalidations.head_of(key, &stored, invalidations.forgotten());
                self.refreshed(head.as_deref().unwrap_or(&stored.head), ground)
            }
            LookupResult::Miss(miss) => self.missed(key, miss, under),
        }
    }

    /// What follows on a look that found nothing to use. The disks and files were asked already.
    fn missed(&self, key: &larder_store::CacheKey, miss: Miss, under: &Under) -> Outlook {
        let worker_plan = self.worker.worker_plan.load();
        let (asked, origin) = ((self.head(), &**self.settings), self.site.settings.origin);
        let standing = origin.and_then(|origin| {
            standing_in(self.worker, (&worker_plan, origin), asked, (key, &miss), self.now)
        });
        let stands_in = standing.as_ref().map(|standing| standing.fact);
        let missed = Facts::Missed(facts::missed(asked, &miss, stands_in));
        let counters = facts::counters(self.head(), self.settings).after_recall();
        match (next(&missed, counters).0, standing) {
            (Next::UseStale(ground), Some(standing)) => self.refreshed(&standing.head, ground),
            (Next::Forward { alone }, standing) => {
                drop(standing);
                self.asking(key, miss, under, alone)
            }
            (_, _) => {
                let failure = Failure::ONLY_IF_CACHED;
                let status = failure.status.as_u16();
                let sentence =
                    format!("The request says only-if-cached, and nothing usable is stored: {status}.");
                self.refused(failure, sentence, "RFC 9111 5.2.1.7")
            }
        }
    }

    /// Used stale, and refreshed behind.
    fn refreshed(&self, stored: &StoredHead, ground: StaleReason) -> Outlook {
        let status = CacheStatus {
            ttl_seconds: Some(stored.freshness.ttl_seconds(self.now)),
            detail: Some(ground.token()),
            ..CacheStatus::new(Outcome::Hit)
        };
        let reason = Reason::new(ground.token(), ground.sentence(), ground.section());
        self.with_stored(self.settled(Course::Refresh, reason, status), stored, &[])
    }

    fn hit(&self, stored: &larder_store::StoredResponse, is_stale: bool) -> Outlook {
        let (stored, took) = (&stored.head, stored.took);
        let sentence = match (is_stale, stored.part.is_some()) {
            (true, _) => {
                "What is stored is stale, and will be used as it is: the request's max-stale allows it."
            }
            (false, true) => "A stored part holds all that is asked, and it is fresh.",
            (false, false) => "What is stored is fresh.",
        };
        let section = if is_stale { "RFC 9111 5.2.1.2" } else { "RFC 9111 4" };
        let ttl = stored.freshness.ttl_seconds(self.now).max(0);
        let status = CacheStatus { ttl_seconds: Some(ttl), ..CacheStatus::new(Outcome::Hit) };
        let mut outlook = self.settled(Course::Hit, Reason::new("hit", sentence, section), status);
        if self.settings.refresh_ahead && !is_stale {
            let wait = stale::until_refresh_ahead(&stored.freshness, took, self.now);
            outlook.decision.refresh_ahead_seconds = Some(seconds(wait));
        }
        self.with_stored(outlook, stored, &[])
    }

    fn asking(&self, key: &larder_store::CacheKey, miss: Miss, under: &Under, alone: bool) -> Outlook {
        let not_known = self.not_known().map(NotKnown::token);
        let of_validation = |reason: ValidateReason| match self.lacks_lease(reason) {
            true => NO_LEASE,
            false => reason.token(),
        };
        let detail = not_known.or(miss.invalidated.map(of_validation));
        let status = CacheStatus { detail, ..CacheStatus::new(Outcome::Forwarded(miss.forward)) };
        let (verdict, reason) = self.why_ask(&miss, under);
        let mut outlook = self.settled(verdict, reason, status);
        outlook.decision.alone = alone;
        outlook.needs_origin = verdict == Course::Fetch;
        outlook.marked = miss.marked;
        // It would count as one more.
        let count = || self.worker.proxy.uses.of(key.hash()).saturating_add(1);
        let uses = facts::uses(self.settings, Some(&miss), count);
        outlook.decision.uses = uses.map(u32::from);
        let forwarding = facts::forwarding((self.head(), self.settings), Some(&miss), alone, uses);
        if let (Next::Board { seldom, as_get, .. }, _) =
            next(&Facts::Forwarding(forwarding), Counters::default())
        {
            (outlook.seldom, outlook.as_get) = (seldom, as_get);
        }
        if outlook.as_get {
            outlook.decision.reason.sentence += " The HEAD is fetched with GET, and what comes is stored.";
        }
        let others = miss.others_offered(&self.head().fields);
        let others: SmallVec<[&StoredHead; 4]> = others.iter().map(|other| &*other.head).collect();
        match (&miss.part, &miss.selected) {
            (Some((part, gap)), _) => {
                let mut fields = HeaderMap::new();
                gap.request_fields(0, &part.head, &mut fields);
                outlook.decision.conditions = fields_of(&fields);
                outlook
            }
            (None, Some(selected)) => {
                let head = self.worker.proxy.invalidations.head_of(key, selected, miss.since);
                self.with_stored(outlook, head.as_deref().unwrap_or(&selected.head), &others)
            }
            (None, None) => {
                outlook.decision.conditions = conditions(Offered { selected: None, others: &others });
                outlook
            }
        }
    }

    /// Whether a response is in doubt because this larder does not hear from its fleet.
    fn lacks_lease(&self, reason: ValidateReason) -> bool {
        reason == ValidateReason::BelowFloor && !self.worker.proxy.has_lease()
    }

    fn why_ask(&self, miss: &Miss, under: &Under) -> (Course, Reason) {
        if let Some(not_known) = self.not_known() {
            let course = if miss.selected.is_some() { Course::Validate } else { Course::Fetch };
            return (course, Reason::new(not_known.token(), not_known.sentence(), CONFIGURATION));
        }
        let policy = &self.settings.policy;
        let judged = |stored: &StoredHead| larder_cache::reuse(stored, self.head(), self.now, policy);
        let of_selected = miss.selected.as_ref().map(|stored| judged(&stored.head));
        if let Some(Reuse::Validate(reason)) =
            of_selected.map(|of| miss.invalidated.map_or(of, Reuse::Validate))
        {
            if self.lacks_lease(reason) {
                let sentence = "This larder has no lease of its fleet, so the origin is asked before what is stored is used.";
                return (Course::Validate, Reason::new(NO_LEASE, sentence, CONFIGURATION));
            }
            let reason = Reason::new(reason.token(), reason.sentence(), reason.section());
            return (Course::Validate, reason);
        }
        if miss.part.is_some() {
            let sentence = "Of what is asked only a part is stored; the origin will be asked for the rest.";
            return (Course::Complete, Reason::new(miss.forward.token(), sentence, "RFC 9111 3.4"));
        }
        if miss.marked {
            let sentence =
                "The last answer for this key could not be shared: the request will go alone, and unchanged.";
            return (Course::Fetch, Reason::new("hit-for-miss", sentence, "RFC 9211 2.2"));
        }
        let lacks_its_coding = |miss: &Miss| {
            miss.others.iter().any(|other| other.head.vary.lacks_its_coding(&self.head().fields))
        };
        if let Some(Reuse::Unusable(reason)) = under.selected().map(|stored| judged(&stored.head)) {
            let named = cookies::deciding(self.head(), policy);
            let sentence = cookies::because(reason.sentence(), named);
            return (Course::Fetch, Reason::new(reason.token(), sentence, reason.section()));
        }
        let (sentence, section) = match miss.forward {
            Forward::UriMiss => ("Nothing is stored under this URL.", "RFC 9111 4"),
            Forward::VaryMiss if lacks_its_coding(miss) => (
                "What is stored under this key has a content coding that the request does not take, or lacks one that it takes.",
                "RFC 9110 12.5.3",
            ),
            Forward::VaryMiss => (
                "What is stored under this key was made for other values of the fields that it varies by.",
                "RFC 9111 4.1",
            ),
            Forward::Partial => ("Only parts are stored, and none has what is asked.", "RFC 9111 3.3"),
            _ => (
                "What is stored under this URL has another key: scheme, or what the rule adds.",
                "RFC 9111 2",
            ),
        };
        (Course::Fetch, Reason::new(miss.forward.token(), sentence, section))
    }

    /// Adds what may be done with a stored response when it is stale, and with what it is validated.
    fn with_stored(&self, mut outlook: Outlook, stored: &StoredHead, others: &[&StoredHead]) -> Outlook {
        let decision = &mut outlook.decision;
        if matches!(decision.verdict, Course::Validate | Course::Refresh) {
            decision.conditions = conditions(Offered { selected: Some(stored), others });
        }
        // Of what is used as it is, it is told what will hold.
        let wait = match decision.verdict {
            Course::Hit => stored.freshness.remaining(self.now),
            _ => Duration::ZERO,
        };
        decision.stale_use = stale::stale_use(stored, self.now.later(wait), &self.settings.policy);
        outlook
    }

    fn settled(&self, verdict: Course, reason: Reason, status: CacheStatus) -> Outlook {
        let decision = Decision {
            verdict,
            reason,
            alone: false,
            conditions: Vec::new(),
            stale_use: Vec::new(),
            refresh_ahead_seconds: None,
            last_time: None,
            uses: None,
        };
        Outlook { decision, status, needs_origin: false, marked: false, seldom: false, as_get: false }
    }

    /// Puts everything together.
    fn told(
        &self,
        request: AskedRequest,
        route: Route,
        key: Option<Key>,
        stored: Stored,
        outlook: Outlook,
        (answer, page): (Option<(OriginAnswer, CacheStatus)>, Option<FoundPage>),
    ) -> Explanation {
        let Outlook { decision, mut status, .. } = outlook;
        let origin = answer.map(|(answer, said)| {
            status = CacheStatus { outcome: status.outcome, ..said };
            answer
        });
        if let Some(page) = page.as_ref().filter(|_| status.outcome == Outcome::Hit) {
            status = page.told.status(status, page.detail);
        }
        let parts = page.map(|page| page.told);
        if self.question.websocket && !self.site.settings.websocket {
            status.detail = Some(UPGRADE_IS_OFF);
        }
        let line = match self.settings.debug && key.is_some() {
            true => {
                status.value_with_key(&key::text(self.head(), &self.settings.key, self.versions.as_ref()))
            }
            false => status.value(),
        };
        let removal = match key {
            Some(_) => self.removal(&stored, &decision, origin.as_ref()),
            None => self.removed_by_it(),
        };
        let cache_status = printable(&line);
        let purge = None;
        Explanation { request, route, key, stored, decision, origin, parts, removal, purge, cache_status }
    }
}

/// The fields that validate what is offered.
fn conditions(offered: Offered<'_>) -> Vec<Field> {
    let mut fields = HeaderMap::new();
    larder_cache::conditional_fields(offered, &mut fields);
    fields_of(&fields)
}

#[cfg(test)]
mod tests;
