//! Fragments of a page: each is an exchange of its own, with the site, the rule, the key and the stores of its URL.
//!
//! In: the exchange of the page, and the URI of an include. Out: the answer to a GET for that, as a client's would be answered, without a
//! line in the log and a place among the requests. What is in memory is there at once. Which site and rule an include leads to, and
//! with which request, is [`aim`](super::aim)'s.

use std::sync::Arc;

use arc_swap::Guard;
use http::StatusCode;
use http::header::{AGE, AUTHORIZATION, SET_COOKIE};
use larder_assemble::IncludeFailure;
use larder_cache::NotStorable;
use larder_cache::page::PartSaid;
use larder_http::body::Body;
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::fields::client_cert::CLIENT_CERT;
use larder_http::message::{Response, ResponseHead};
use larder_http::target::reference::DocumentUri;
use larder_http::time::WallTime;
use larder_listen::Interims;
use parking_lot::Mutex;

use super::aim::{Aim, Aimed};
use super::content::Inside;
use super::context::RequestContext;
use super::kept::{FoundLookup, KeptLookup, KeptPage};
use super::look;
use super::used::{self, Used};
use super::way::{looks_at_once, reply_to};
use crate::asked::{Asked as AskedRequest, Asker, MatchedRule};
use crate::assemble::{
    AskedFragment, Fragment, FragmentResult, FragmentTemplate, Fragments, NoFragment, PartBody, Tally,
};
use crate::exchange::{Exchange, Reply};
use crate::failure::Failure;
use crate::fetch::ClientHop;
use crate::fill::{coding_of, decoded};
use crate::settings::RuleSettings;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;

/// What look-ups have found for a page that is to be kept; `None` once something else went into it.
pub(super) type LookRecord = Arc<Mutex<Option<Vec<KeptLookup>>>>;

/// Serves the fragments of one page.
pub(super) struct ServedFragments {
    worker: Arc<Worker>,
    worker_plan: Arc<WorkerPlan>,
    aim: Aim,
    asker: Asker,
    /// The page's client takes nothing that is not stored, whatever the rules of the fragments make of such a wish.
    cached_only: bool,
    record: Option<LookRecord>,
    /// A kept page of the same template for other requests.
    other: Option<Arc<KeptPage>>,
}

impl ServedFragments {
    pub(super) fn new(
        worker: &Arc<Worker>,
        exchange: &Exchange,
        record: Option<LookRecord>,
        other: Option<Arc<KeptPage>>,
    ) -> Self {
        let (asker, settings) = (&exchange.asker, exchange.settings());
        let hop = ClientHop { takes_trailers: false, ..asker.hop.clone() };
        let origin = exchange.site().settings.origin;
        Self {
            worker: Arc::clone(worker),
            worker_plan: Arc::clone(exchange.asked.route.worker_plan()),
            aim: Aim::new(&exchange.asked.head, settings, origin),
            asker: Asker { hop, ..asker.clone() },
            cached_only: larder_cache::only_if_cached(&exchange.asked.head, &settings.policy),
            record,
            other,
        }
    }

    /// What was found goes into the page; `None` for anything that is not fresh in memory.
    fn note(&self, found: Option<KeptLookup>) {
        let Some(record) = &self.record else { return };
        let mut record = record.lock();
        match (found, &mut *record) {
            (Some(found), Some(parts)) => parts.push(found),
            _ => *record = None,
        }
    }

    /// Whether a page is kept in which this fragment is. A kept page does not ask for versions.
    fn may_be_kept(&self, exchange: &Exchange) -> bool {
        self.record.is_some() && exchange.settings().versions.is_none()
    }

    /// The exchange for a fragment, and whether more than what is stored depends on fields of the request.
    fn aim(&self, uri: &DocumentUri) -> Result<(Exchange, bool), IncludeFailure> {
        let Aimed { head, sent_target, site, rule, is_of_own_origin, depends_on_fields } =
            self.aim.at(&self.worker_plan.plan, uri)?;
        let route = MatchedRule::new(Guard::from_inner(Arc::clone(&self.worker_plan)), site, rule);
        let server = self.asker.server.filter(|_| is_of_own_origin);
        let asker = Asker { server, ..self.asker.clone() };
        let now = self.worker.proxy.clock.now();
        let mut exchange = Exchange::new(AskedRequest::new(head, sent_target, route), asker, now);
        exchange.cached_only = self.cached_only;
        Ok((exchange, depends_on_fields))
    }

    /// What is in memory, or what brings it.
    fn serve(&self, uri: &DocumentUri, aimed: (Exchange, bool), takes_errors: bool) -> AskedFragment {
        let (mut exchange, depends_on_fields) = aimed;
        let inside = Inside { body: Body::Empty, websocket: false, announced: None };
        let origin = looks_at_once(&exchange, &inside).filter(|_| exchange.asked.take_known_versions());
        exchange.keyed = origin.is_some();
        let mut looked = None;
        if let Some(origin) = origin {
            let now = exchange.started;
            let (worker, worker_plan) = (&self.worker, &self.worker_plan);
            let context = RequestContext { worker, worker_plan, origin, content: Default::default() };
            match look::first(&context, &exchange, now) {
                Ok(used) => {
                    let fresh = match &used {
                        Used::Stored { stored, detail: None, .. } => Some(Arc::clone(stored)),
                        _ => None,
                    };
                    if let Some(reply) = used::answered(&context, &exchange, (used, now)) {
                        let answered = fragment(&self.worker, &exchange, takes_errors, reply);
                        let found = answered.as_ref().ok().zip(fresh).filter(|_| self.may_be_kept(&exchange));
                        self.note(found.map(|(fragment, stored)| {
                            let uri = uri.clone();
                            let found = FoundLookup { uri, exchange, stored, depends_on_fields };
                            KeptLookup::new(found, fragment)
                        }));
                        return AskedFragment::Now(answered);
                    }
                }
                Err(first) => looked = Some(first),
            }
        }
        self.note(None);
        let (worker, worker_plan) = (Arc::clone(&self.worker), Arc::clone(&self.worker_plan));
        AskedFragment::Later(Box::pin(async move {
            let interims = Interims::default();
            let reply = reply_to(&worker, &worker_plan, &mut exchange, inside, looked, &interims).await;
            fragment(&worker, &exchange, takes_errors, reply)
        }))
    }
}

impl Fragments for ServedFragments {
    fn ask(&self, uri: &DocumentUri, takes_errors: bool) -> AskedFragment {
        let other = self.other.as_ref().filter(|_| self.worker.proxy.heed_lease());
        if let Some(other) = other {
            let now = self.worker.proxy.clock.now();
            if let Some(fragment) = other.fragment(uri, &self.aim, &self.worker, now) {
                return AskedFragment::Now(Ok(fragment));
            }
        }
        match self.aim(uri) {
            Ok(aimed) => self.serve(uri, aimed, takes_errors && self.aim.settings().error_bodies),
            Err(reason) => {
                self.note(None);
                AskedFragment::Now(Err(reason.into()))
            }
        }
    }

    fn failed(&self, uri: Option<&DocumentUri>, reason: IncludeFailure) {
        self.worker.fragment_failed(self.aim.page(), uri, reason);
    }

    fn cut(&self, reason: IncludeFailure) {
        self.worker.fragment_failed(self.aim.page(), None, reason);
    }

    fn opened(&self) {
        self.worker.metrics.page_opened();
    }

    fn ended(&self, tally: &Tally, was_open: bool) {
        self.worker.page_ended(tally);
        if was_open {
            self.worker.metrics.page_closed();
        }
    }
}

/// What an answer is to a page.
fn fragment(worker: &Worker, exchange: &Exchange, takes_errors: bool, reply: Reply) -> FragmentResult {
    let Reply { response, status, sheet } = reply;
    if status.outcome == Outcome::Own && status.detail == Some(Failure::ONLY_IF_CACHED.detail) {
        return Err(NoFragment::NotStored);
    }
    worker.count_fragment(exchange, &status);
    let Response { mut head, body, .. } = response;
    let failed = failure_of(head.status, &status);
    if let Some(reason) = failed
        && !(takes_errors && (head.status.is_client_error() || head.status.is_server_error()))
    {
        return Err(reason.into());
    }
    let age = age_of(&head);
    head.age = None;
    let body = match head.status {
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT => Body::Empty,
        _ => body,
    };
    let fields = if head.fields.is_empty() { head.stored.as_ref() } else { None };
    let own;
    let fields = match &fields {
        Some(stored) => &stored.prepared().map,
        None => {
            own = head.into_fields();
            &own
        }
    };
    let body = PartBody::new(body);
    let body = match coding_of(fields).map_err(|_| IncludeFailure::Coding)? {
        None => body,
        Some(coding) => {
            PartBody::at_once(decoded(coding, body.into_stream())).map_err(|_| IncludeFailure::Coding)?
        }
    };
    let now: WallTime = exchange.started.wall;
    let is_private = is_private(exchange, &status) || is_of_one_client(&status);
    let said = PartSaid::of(fields, age, status.ttl_seconds, is_private, now);
    let cookies = fields.get_all(SET_COOKIE).iter().count();
    let template = sheet.map(|sheet| FragmentTemplate {
        program: Arc::clone(&sheet.program),
        last_modified: sheet.last_modified,
        is_strict: exchange.settings().policy.templates.strict,
    });
    // What is being stored may outgrow its store, and passes through from then on.
    let passes = status.outcome != Outcome::Hit;
    let detail = status.detail.filter(|_| status.ttl_seconds.is_some_and(|ttl| ttl <= 0));
    Ok(Box::new(Fragment { said, body, template, passes, detail, cookies }))
}

/// Why an answer is none for a page, where it is none.
pub(crate) fn failure_of(status: StatusCode, said: &CacheStatus) -> Option<IncludeFailure> {
    if status.is_success() && status != StatusCode::PARTIAL_CONTENT {
        return None;
    }
    let is_larders_own = said.outcome != Outcome::Hit && said.forward_status.is_none();
    Some(match status {
        _ if is_larders_own && said.detail != Some("static-directory") => IncludeFailure::Origin,
        status if status.is_redirection() => IncludeFailure::Redirect,
        _ => IncludeFailure::Status,
    })
}

/// Whether responses of a rule are somebody's own by its key.
pub(crate) fn has_private_key(settings: &RuleSettings) -> bool {
    !settings.key.cookies.is_empty()
        || [AUTHORIZATION, CLIENT_CERT].iter().any(|name| settings.key.fields.contains(name))
}

/// Whether a response is somebody's own although it may not say so: by the key of its rule, or because it was not stored and its request
/// is one that shares nothing (RFC 9111 3.5).
pub(super) fn is_private(exchange: &Exchange, said: &CacheStatus) -> bool {
    let settings = exchange.settings();
    let was_for_one = said.outcome != Outcome::Hit && !said.stored;
    has_private_key(settings)
        || (was_for_one && larder_cache::is_personal(&exchange.asked.head, &settings.policy))
}

/// Whether a fragment was not stored because it may speak of one client: it set a cookie that starts a session, say. The cookie
/// stays behind, so its page is all that can tell caches behind larder.
fn is_of_one_client(said: &CacheStatus) -> bool {
    let reason = said.detail.filter(|_| said.outcome != Outcome::Hit && !said.stored);
    reason.and_then(NotStorable::of_token).is_some_and(NotStorable::is_of_one_client)
}

/// The age of an answer, in seconds: larder's own count, or what came with the answer.
pub(super) fn age_of(head: &ResponseHead) -> Option<u64> {
    let told = || head.field(&AGE)?.to_str().ok()?.trim().parse().ok();
    head.age.or_else(told)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_success_goes_into_a_page() {
        let (ok, own) = (CacheStatus::new(Outcome::Hit), CacheStatus::new(Outcome::Own));
        for (status, said, expected) in [
            (200, ok, None),
            (203, ok, None),
            (204, ok, None),
            (206, ok, Some(IncludeFailure::Status)),
            (301, ok, Some(IncludeFailure::Redirect)),
            (404, ok, Some(IncludeFailure::Status)),
            (500, ok, Some(IncludeFailure::Status)),
            (502, own, Some(IncludeFailure::Origin)),
        ] {
            assert_eq!(failure_of(StatusCode::from_u16(status).unwrap(), &said), expected, "{status}");
        }
    }
}
