//! What would answer a request of a page's, as it lies in the stores, fresh or stale.
//!
//! In: a request without fields of a visitor, and the rule that it matches. Out: the stored response that it selects, with its body, or a
//! file below the site's root. Heads are looked at as a listing looks: no use, no recall into memory, no promotion. No origin is asked, and
//! neither is a server of values. larder's own copy of a value counts.
//! What has been invalidated is not used, and neither is what was stored under less careful rules about cookies.

use std::cmp::Reverse;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use larder_assemble::{IncludeFailure, compile};
use larder_cache::page::PartSaid;
use larder_cache::{CachePolicy, Fit, Reuse, ValidateReason, Verdict, template};
use larder_http::body::Body;
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::message::{RequestHead, Scheme};
use larder_http::template::Language;
use larder_http::time::{Now, WallTime};
use larder_store::Store;
use larder_store::listing::ListedResponse;

use super::error::ObjectsError;
use crate::assemble::{GOOD_BYTES, PartBody};
use crate::explain::{FoundFragment, FoundPart, LookedUp, TemplateAtHand, WantedFragment, uri_of};
use crate::fill::{coding_of, decoded};
use crate::key;
use crate::plan::Plan;
use crate::proxy::Proxy;
use crate::root::{self, RootEntry, StaticFile};
use crate::serve::{Aim, failure_of, has_private_key};
use crate::settings::RuleSettings;
use crate::worker::Worker;

/// Looks for the parts of one page.
pub(super) struct PartLook<'a> {
    worker: &'a Worker,
    plan: &'a Plan,
    now: Now,
    /// Bytes that may still be held.
    room_bytes: usize,
    is_full: bool,
}

/// What answers a request.
pub(super) struct PartAtRest {
    pub(super) status: StatusCode,
    pub(super) fields: HeaderMap,
    pub(super) said: PartSaid,
    pub(super) age_seconds: Option<u64>,
    language: Option<Language>,
    last_modified: Option<WallTime>,
}

/// With its body, which is opened and not read.
pub(super) type OpenedPart = (PartAtRest, Body);

impl PartAtRest {
    /// Its language, where it is a template.
    pub(super) fn language(&self) -> Option<Language> {
        self.language
    }
}

/// Why the content of a part cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoContent {
    /// It went while it was read, or is damaged.
    Gone,
    /// Its content coding is unknown here, or its content breaks it.
    Coding,
    /// There is no room for it in the page.
    TooLarge,
}

impl<'a> PartLook<'a> {
    /// For a page of at most so many bytes.
    pub(super) fn new(worker: &'a Worker, plan: &'a Plan, now: Now, bytes_max: u64) -> Self {
        let room_bytes = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        Self { worker, plan, now, room_bytes, is_full: false }
    }

    /// The moment of the look.
    pub(super) fn now(&self) -> Now {
        self.now
    }

    /// Whether a part was left out because there was no room for it.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The stored response that a request would be answered from, were no lifetime ever over.
    ///
    /// # Errors
    /// The look was lost.
    ///
    /// # Cancel safety
    /// May be dropped at any time; at most one look goes on for nobody.
    pub(super) async fn in_stores(
        &self,
        head: &RequestHead,
        settings: &Arc<RuleSettings>,
    ) -> Result<Option<OpenedPart>, ObjectsError> {
        let (proxy, rule, asked) = (Arc::clone(&self.worker.proxy), Arc::clone(settings), head.clone());
        let now = self.now;
        let Some((store, entry)) = blocking(move || selected(&proxy, &rule, &asked, now)).await? else {
            return Ok(None);
        };
        let Some(body) = store.body_of(&entry).await else { return Ok(None) };
        let (head, fields) = (&entry.head, entry.head.fields.map.clone());
        let (age, ttl) = (head.freshness.age(now).as_secs(), head.freshness.ttl_seconds(now));
        let part = PartAtRest {
            status: head.status,
            said: PartSaid::of(&fields, Some(age), Some(ttl), has_private_key(settings), now.wall),
            age_seconds: Some(age),
            language: language_of(&entry, &settings.policy),
            last_modified: head.validators.last_modified.as_ref().map(|(_, at)| *at),
            fields,
        };
        Ok(Some((part, body)))
    }

    fn of_file(&self, file: &StaticFile, settings: &RuleSettings) -> OpenedPart {
        let fields = root::fields(file);
        let part = PartAtRest {
            status: StatusCode::OK,
            said: PartSaid::of(&fields, None, None, has_private_key(settings), self.now.wall),
            age_seconds: None,
            language: template::language(&settings.policy, StatusCode::OK, &fields),
            last_modified: None,
            fields,
        };
        (part, file.body(0..file.size()))
    }

    /// What is known of a fragment.
    ///
    /// # Errors
    /// A look was lost.
    ///
    /// # Cancel safety
    /// As [`Self::in_stores`].
    pub(super) async fn fragment(
        &mut self,
        aim: &Aim,
        wanted: &WantedFragment,
    ) -> Result<LookedUp, ObjectsError> {
        let aimed = match aim.at(self.plan, &wanted.uri) {
            Ok(aimed) => aimed,
            Err(reason) => return Ok(LookedUp::Refused(reason)),
        };
        let site = self.plan.router.at(aimed.site);
        let settings = site.settings_at(aimed.rule);
        let takes_errors = wanted.takes_errors && aim.settings().error_bodies;
        let entry = match self.plan.roots.get(aimed.site) {
            Some(Some(root)) => root.find(&aimed.head).await,
            _ => RootEntry::Nothing,
        };
        let part = match entry {
            RootEntry::File(file) => Some(self.of_file(&file, settings)),
            RootEntry::Directory(_) => return Ok(found(FoundPart::Failing(IncludeFailure::Redirect))),
            RootEntry::Nothing if site.settings.origin.is_none() => {
                return Ok(found(FoundPart::Failing(IncludeFailure::Origin)));
            }
            RootEntry::Nothing if settings.passes_by(&Method::GET).is_some() => None,
            RootEntry::Nothing => self.in_stores(&aimed.head, settings).await?,
        };
        Ok(found(match part {
            Some(part) => self.judged(part, (&aimed.head, settings), takes_errors).await?,
            None => FoundPart::Missing,
        }))
    }

    /// What a page makes of a part, where the content of a 4xx or 5xx goes into it or not.
    async fn judged(
        &mut self,
        (part, body): OpenedPart,
        asked: (&RequestHead, &RuleSettings),
        takes_errors: bool,
    ) -> Result<FoundPart, ObjectsError> {
        let is_error = part.status.is_client_error() || part.status.is_server_error();
        let failed = failure_of(part.status, &CacheStatus::new(Outcome::Hit));
        if let Some(reason) = failed.filter(|_| !(takes_errors && is_error)) {
            return Ok(FoundPart::Failing(reason));
        }
        let content = match self.content(&part, body).await {
            Ok(content) => content,
            Err(NoContent::Coding) => return Ok(FoundPart::Failing(IncludeFailure::Coding)),
            Err(NoContent::TooLarge | NoContent::Gone) => return Ok(FoundPart::Missing),
        };
        let template = self.template(&part, asked, content.copy()).await?;
        Ok(FoundPart::There {
            said: part.said,
            is_at_once: true,
            is_empty: content.is_empty(),
            body: Some(content),
            template: template.filter(|template| template.program.has_operations()),
        })
    }

    /// All content of a part, without its content coding.
    ///
    /// # Errors
    /// It cannot be had.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub(super) async fn content(&mut self, part: &PartAtRest, body: Body) -> Result<PartBody, NoContent> {
        if matches!(part.status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT) {
            return Ok(PartBody::default());
        }
        match coding_of(&part.fields) {
            Err(_) => Err(NoContent::Coding),
            Ok(None) => self.stored_content(body).await,
            Ok(Some(coding)) => {
                let stream = decoded(coding, PartBody::new(body).into_stream());
                self.held(PartBody::new(Body::Stream { length: None, stream }), NoContent::Coding).await
            }
        }
    }

    /// The same as it is stored.
    ///
    /// # Errors
    /// It cannot be had.
    ///
    /// # Cancel safety
    /// As [`Self::content`].
    pub(super) async fn stored_content(&mut self, body: Body) -> Result<PartBody, NoContent> {
        self.held(PartBody::new(body), NoContent::Gone).await
    }

    /// All of a body in memory.
    async fn held(&mut self, mut body: PartBody, broken: NoContent) -> Result<PartBody, NoContent> {
        body.read_beyond(self.room_bytes).await.map_err(|_| broken)?;
        match self.room_bytes.checked_sub(body.ahead_bytes()).filter(|_| body.is_whole()) {
            Some(left) => {
                self.room_bytes = left;
                Ok(body)
            }
            None => {
                self.is_full = true;
                Err(NoContent::TooLarge)
            }
        }
    }

    /// A part with this content as a template, where it is one.
    ///
    /// # Errors
    /// The thread that compiled it was lost.
    ///
    /// # Cancel safety
    /// As [`Self::in_stores`].
    pub(super) async fn template(
        &self,
        part: &PartAtRest,
        (head, settings): (&RequestHead, &RuleSettings),
        content: Option<PartBody>,
    ) -> Result<Option<TemplateAtHand>, ObjectsError> {
        let whole = content.and_then(PartBody::into_whole);
        let Some((language, (chunks, owner))) = part.language.zip(whole) else { return Ok(None) };
        let body = match chunks.len() {
            1 => chunks.into_iter().next().unwrap_or_default(),
            _ => chunks.iter().flat_map(|chunk| chunk.iter().copied()).collect::<Bytes>(),
        };
        let (uri, text) = (uri_of(head), body.clone());
        // The admin address has other work.
        let program = match body.len() > GOOD_BYTES {
            true => blocking(move || compile(language, uri, &text)).await?,
            false => compile(language, uri, &text),
        };
        let (last_modified, is_strict) = (part.last_modified, settings.policy.templates.strict);
        Ok(Some(TemplateAtHand { program, body, last_modified, arrives: false, is_strict, owner }))
    }
}

/// A fragment that is not there.
pub(super) fn missing() -> LookedUp {
    found(FoundPart::Missing)
}

fn found(part: FoundPart) -> LookedUp {
    LookedUp::Found(Box::new(FoundFragment { told: None, detail: None, part }))
}

/// The language of what is stored. Whether a file by hand is a template is its rule's to say.
pub(super) fn language_of(entry: &ListedResponse, policy: &CachePolicy) -> Option<Language> {
    let head = &entry.head;
    match is_by_hand(entry) {
        true => template::language(policy, head.status, &head.fields.map),
        false => head.language().filter(|_| policy.templates.is_on()),
    }
}

fn is_by_hand(entry: &ListedResponse) -> bool {
    entry.file.as_ref().is_some_and(|file| file.is_by_hand)
}

/// What goes first.
type Rank = (bool, Reverse<usize>, bool, Fit, WallTime);

/// The whole response that a request selects in the stores of its rule: what is fresh before what is stale, then by the order of stores,
/// what a person put there first, and of those that fit alike the newest. Waits for disks.
fn selected(
    proxy: &Proxy,
    rule: &RuleSettings,
    head: &RequestHead,
    now: Now,
) -> Option<(Arc<Store>, ListedResponse)> {
    let versions = rule.versions.as_ref().map(|versions| versions.last(head));
    let key = key::key(head, &rule.key, versions.as_ref().map(|versions| versions.key_text()), b"");
    let mut best: Option<(Rank, Arc<Store>, ListedResponse)> = None;
    for (place, (store, _)) in rule.stores().enumerate() {
        for entry in store.under(&key, now) {
            let Some(entry) = of_scheme(entry, head.scheme) else { continue };
            let (stored, by_hand) = (&entry.head, is_by_hand(&entry));
            let is_ours = match by_hand {
                // Under a key that tells visitors apart no file is looked at.
                true => rule.key.cookies.is_empty() && rule.key.fields.is_empty(),
                false => entry.key == key && is_usable(proxy, rule, head, (&entry, now)),
            };
            let fit = stored.vary.fit(&head.fields).filter(|_| is_ours && stored.part.is_none());
            let Some(fit) = fit else { continue };
            let is_fresh = by_hand || stored.freshness.is_fresh(now);
            let received = stored.freshness.received.wall;
            let rank = (is_fresh, Reverse(place), by_hand, fit, received);
            if best.as_ref().is_none_or(|(other, ..)| rank > *other) {
                best = Some((rank, Arc::clone(store), entry));
            }
        }
    }
    best.map(|(_, store, entry)| (store, entry))
}

/// Whether nothing but its age stands against the use of a response.
fn is_usable(
    proxy: &Proxy,
    rule: &RuleSettings,
    head: &RequestHead,
    (entry, now): (&ListedResponse, Now),
) -> bool {
    let verdict = proxy.invalidations.verdict_of(&entry.key, &entry.head, entry.number);
    let reuse = larder_cache::reuse(&entry.head, head, now, &rule.policy);
    verdict == Verdict::Good
        && !matches!(reuse, Reuse::Unusable(_) | Reuse::Validate(ValidateReason::OtherRules))
}

/// An entry as what is asked for by `scheme`, where it answers that: a file by hand answers both.
pub(super) fn of_scheme(mut entry: ListedResponse, scheme: Scheme) -> Option<ListedResponse> {
    if is_by_hand(&entry) {
        entry.scheme = scheme;
    }
    Some(entry).filter(|entry| entry.scheme == scheme)
}

/// Runs what may wait for a disk.
pub(super) async fn blocking<T: Send + 'static>(
    look: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ObjectsError> {
    tokio::task::spawn_blocking(look).await.map_err(|_| ObjectsError::Lost)
}
