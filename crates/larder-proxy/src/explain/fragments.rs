//! What the stores have for a template and for the fragments of its page.
//!
//! In: a request whose stored response is a template. Out: the step *Parts*. Each fragment is looked up as a request for its URL
//! would be, by the calls that explain such a request, and without a count as use. What a disk has is brought into memory, as for
//! any request that is explained, and told as it was. No origin is asked, not even where the page's own request would be.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use larder_assemble::{IncludeFailure, RequestFacts, compile};
use larder_cache::page::PartSaid;
use larder_http::fields::cache_status::{CacheStatus, Forward, Outcome};
use larder_http::fields::surrogate;
use larder_http::message::RequestHead;
use larder_http::target::reference::DocumentUri;
use larder_store::{CacheKey, Held, StoredResponse};

use super::assembled::{ExplainedFragment, ExplainedPage};
use super::explanation::Course;
use super::parts::{FoundFragment, FoundPage, FoundPart, LookedUp, Parts, TemplateAtHand, WantedFragment};
use super::printed::seconds;
use super::question::Question;
use super::reason::{CONFIGURATION, Reason};
use super::stored::Under;
use super::walk::{Outlook, Walk};
use crate::assemble::{GOOD_BYTES, PartBody};
use crate::detail::ASSEMBLED;
use crate::failure::Failure as Answered;
use crate::fill::{coding_of, decoded};
use crate::invalidation::Judge;
use crate::key;
use crate::lookup::{Lookup, LookupResult};
use crate::serve::{Aim, failure_of, has_private_key};

/// A longer template is not told of.
const TEMPLATE_BYTES_MAX: usize = 4 << 20;

impl Walk<'_> {
    /// The page that is put together from what is stored; `None` where that is no template.
    pub(super) async fn parts(&self, under: &Under) -> Option<FoundPage> {
        let (stored, _) = under.selected_in()?;
        let template = self.template(stored).await?;
        let fields = &stored.head.fields.map;
        let policy = &self.settings.policy.templates;
        let facts = RequestFacts {
            fields: &self.head().fields,
            method: &self.head().method,
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            scheme: self.head().scheme,
            version: self.head().version,
            now: self.now.wall,
        };
        let settings = &self.settings.fragments;
        let aim = Aim::new(self.head(), self.settings, self.site.settings.origin);
        let manner = (&**settings, policy.escapes_html);
        let mut parts = Parts::new(uri_of(self.head()), (template, self.said(stored)), facts, manner);
        while let Some(wanted) = parts.next() {
            // Boxed, since it is as large as the walk of the page's own request.
            let looked = Box::pin(self.fragment(&aim, &wanted)).await;
            parts.give(looked);
        }
        let told = parts.told(said_by(stored), fields, policy.strict)?;
        Some(FoundPage { told, detail: parts.detail() })
    }

    /// What a stored response says to caches behind larder.
    fn said(&self, stored: &StoredResponse) -> PartSaid {
        let freshness = &stored.head.freshness;
        let (age, ttl_seconds) = (freshness.age(self.now).as_secs(), freshness.ttl_seconds(self.now));
        let has_private_key = has_private_key(self.settings);
        PartSaid::of(&stored.head.fields.map, Some(age), Some(ttl_seconds), has_private_key, self.now.wall)
    }

    /// What is known of a fragment.
    async fn fragment(&self, aim: &Aim, wanted: &WantedFragment) -> LookedUp {
        let aimed = match aim.at(self.plan, &wanted.uri) {
            Ok(aimed) => aimed,
            Err(reason) => return LookedUp::Refused(reason),
        };
        let site = self.plan.router.at(aimed.site);
        // No origin is asked for a fragment. A server of values is, as a request would.
        let offline = self.question.offline;
        let question = Question { head: aimed.head, content: Bytes::new(), offline, websocket: false };
        let settings = site.settings_at(aimed.rule);
        let versions = super::versions_of(settings, &question).await;
        let walk = Walk {
            worker: self.worker,
            plan: self.plan,
            site,
            settings,
            question,
            versions,
            now: self.now,
            running: self.running,
        };
        let rule = (aimed.rule < site.settings.rules.len()).then_some(aimed.rule + 1);
        let takes_errors = wanted.takes_errors && aim.settings().error_bodies;
        LookedUp::Found(Box::new(walk.found(aimed.site, rule, takes_errors).await))
    }

    /// What a request for this fragment would find, where the content of a 4xx or 5xx goes into the page or not.
    async fn found(&self, site: usize, rule: Option<usize>, takes_errors: bool) -> FoundFragment {
        let told = |outlook: Outlook, key: Option<String>| ExplainedFragment {
            site: self.site.settings.name.to_string(),
            rule,
            key,
            store: self.store_name(self.settings.store_id),
            verdict: outlook.decision.verdict,
            reason: outlook.decision.reason,
            in_memory: false,
            status: None,
            body_bytes: None,
            age_seconds: None,
            ttl_seconds: None,
            language: None,
        };
        if let Some(outlook) = self.before_the_cache(site).await {
            let part = match outlook.decision.verdict {
                Course::Refuse => FoundPart::Failing(IncludeFailure::Origin),
                Course::File if outlook.status.detail == Some("static-directory") => {
                    FoundPart::Failing(IncludeFailure::Redirect)
                }
                _ => FoundPart::Missing,
            };
            return FoundFragment { told: Some(told(outlook, None)), detail: None, part };
        }
        let key = self.key();
        let was_in_memory = self.is_usable_in_memory(&key);
        self.recall(&key).await;
        let found = self.find(&key).await;
        let under = Under::look(self, &key).await;
        let outlook = self.look_up(&key, &under, found);
        let (verdict, status) = (outlook.decision.verdict, outlook.status);
        let mut told =
            told(outlook, Some(key::text(self.head(), &self.settings.key, self.versions.as_ref())));
        let Some((stored, store)) = under.selected_in() else {
            return FoundFragment { told: Some(told), detail: None, part: FoundPart::Missing };
        };
        let head = &stored.head;
        told.store = self.store_name(store);
        told.status = Some(head.status.as_u16());
        told.body_bytes = Some(stored.body.length());
        told.age_seconds = Some(seconds(head.freshness.age(self.now)));
        told.ttl_seconds = Some(head.freshness.ttl_seconds(self.now));
        if !matches!(verdict, Course::Hit | Course::Refresh) {
            return FoundFragment { told: Some(told), detail: None, part: FoundPart::Missing };
        }
        let is_error = head.status.is_client_error() || head.status.is_server_error();
        let failed = failure_of(head.status, &status).filter(|_| !(takes_errors && is_error));
        let detail = status.detail.filter(|_| status.ttl_seconds.is_some_and(|ttl| ttl <= 0));
        let part = match failed {
            Some(reason) => FoundPart::Failing(reason),
            None => self.there(stored, was_in_memory, &mut told).await,
        };
        FoundFragment { told: Some(told), detail, part }
    }

    /// A stored template, unless its rule has come to take none for one.
    async fn template(&self, stored: &Arc<StoredResponse>) -> Option<TemplateAtHand> {
        match self.settings.policy.templates.is_on() {
            true => at_hand(stored, self).await,
            false => None,
        }
    }

    /// What goes into the page of a stored response.
    async fn there(
        &self,
        stored: &Arc<StoredResponse>,
        was_in_memory: bool,
        told: &mut ExplainedFragment,
    ) -> FoundPart {
        let template = self.template(stored).await.filter(|template| template.program.has_operations());
        told.language = template.as_ref().map(|template| template.program.language().as_str().to_owned());
        let has_none = matches!(stored.head.status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT);
        let body = if has_none { Some(PartBody::default()) } else { body_of(stored) };
        let body = match (coding_of(&stored.head.fields.map), body) {
            (Err(_), _) => return FoundPart::Failing(IncludeFailure::Coding),
            // It lay on a disk, and went with its segment a moment later.
            (_, None) => return FoundPart::Missing,
            (Ok(None), Some(body)) => body,
            (Ok(Some(coding)), Some(body)) => match PartBody::at_once(decoded(coding, body.into_stream())) {
                Ok(body) => body,
                Err(_) => return FoundPart::Failing(IncludeFailure::Coding),
            },
        };
        told.in_memory = was_in_memory && body.is_whole();
        let (is_at_once, is_empty) = (told.in_memory, body.is_empty());
        // All that a page needs to know of it is what may become a variable.
        let value = read(body, GOOD_BYTES).await.map(|value| PartBody::new(value.into()));
        FoundPart::There { said: self.said(stored), is_at_once, is_empty, body: value, template }
    }

    /// Whether a first look would find something to use.
    fn is_usable_in_memory(&self, key: &CacheKey) -> bool {
        let judge = Judge::new(&self.worker.proxy.invalidations, None);
        let judge = judge.doubting(self.not_known().is_some());
        let lookup = Lookup { rule: self.settings, hot: None, key, request: self.head(), judge };
        match lookup.look_up_asking(self.now, true) {
            LookupResult::Fresh { .. } | LookupResult::Refresh { .. } => true,
            // It may stand in for an origin that fails.
            LookupResult::Miss(miss) => miss.selected.is_some() && !miss.asks_first,
        }
    }
}

impl ExplainedPage {
    /// What Cache-Status says of the page, where its template and the first part that is stale have these.
    pub(super) fn status(&self, of_template: CacheStatus, of_part: Option<&'static str>) -> CacheStatus {
        let assembled = |detail: Option<&'static str>| detail.or(Some(ASSEMBLED));
        match self.state.token.as_str() {
            "plain" => of_template,
            "whole" => {
                let detail = assembled(of_template.detail.or(of_part));
                CacheStatus { ttl_seconds: self.ttl_seconds, detail, ..of_template }
            }
            "open" | "cut" => {
                let detail = assembled(of_template.detail);
                CacheStatus { detail, ..CacheStatus::new(Outcome::Forwarded(Forward::Partial)) }
            }
            "template-invalid" => failed(of_template, Answered::TEMPLATE_INVALID),
            _ => failed(of_template, Answered::FRAGMENT_FAILED),
        }
    }
}

fn failed(of_template: CacheStatus, failure: Answered) -> CacheStatus {
    CacheStatus { detail: Some(failure.detail), ..CacheStatus::new(of_template.outcome) }
}

/// The URI by which a document is asked for.
pub(crate) fn uri_of(head: &RequestHead) -> DocumentUri {
    DocumentUri { scheme: head.scheme, authority: head.authority.clone(), target: head.target.clone() }
}

/// What made a stored response a template.
fn said_by(stored: &StoredResponse) -> Reason {
    match surrogate::content(&stored.head.all_fields()) {
        Some(language) => {
            let sentence =
                format!("The response says content=\"{}\" in Surrogate-Control.", language.token());
            Reason::new("surrogate-control", sentence, "Edge Architecture 1.0, ESI 1.0 2.2")
        }
        None => {
            let sentence = "The rule says so of all responses of its type, by assemble.";
            Reason::new("rule", sentence, CONFIGURATION)
        }
    }
}

/// A stored template, with all of its bytes.
async fn at_hand(stored: &Arc<StoredResponse>, walk: &Walk<'_>) -> Option<TemplateAtHand> {
    let language = stored.head.language()?;
    let body = read(body_of(stored)?, TEMPLATE_BYTES_MAX).await?;
    let program = match stored.body.program() {
        Some(program) => Arc::clone(program),
        None => compile(language, uri_of(walk.head()), &body),
    };
    let last_modified = stored.head.validators.last_modified.as_ref().map(|(_, at)| *at);
    let arrives = !stored.body.is_in_memory() && body.len() > GOOD_BYTES;
    let is_strict = walk.settings.policy.templates.strict;
    Some(TemplateAtHand { program, body, last_modified, arrives, is_strict, owner: None })
}

fn body_of(stored: &Arc<StoredResponse>) -> Option<PartBody> {
    let whole = 0..stored.body.length();
    Held::Shared(Arc::clone(stored)).into_body(whole).map(PartBody::new)
}

/// All bytes of a body, where they are at most so many.
async fn read(mut body: PartBody, bytes_max: usize) -> Option<Bytes> {
    let mut all = BytesMut::new();
    while let Some(chunk) = std::future::poll_fn(|cx| body.poll_next(cx)).await {
        all.extend_from_slice(&chunk.ok()?);
        if all.len() > bytes_max {
            return None;
        }
    }
    Some(all.freeze())
}
