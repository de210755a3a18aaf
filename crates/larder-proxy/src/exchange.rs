//! One client's exchange: what it asked, under which rule, and what is said about how it went.
//!
//! The one [`CacheStatus`] that the steps fill in is what the field, the access log and the metrics are made from, so
//! they cannot disagree.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, REFERER, SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use larder_cache::directives;
use larder_http::fields::cache_status::{CACHE_STATUS, CacheStatus, Forward, Outcome};
use larder_http::message::{RequestHead, Response, ResponseHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Now;
use larder_observe::tap::{PendingSample, SampleHead, SampleTexts, Weight};
use larder_observe::{Fetched, Label, LogRecord, Served, Text};
use larder_origin::ServerTag;

use crate::asked::{Asked, Asker};
use crate::assemble::{PageTold, Sheet};
use crate::before::Before;
use crate::collapse::Storing;
use crate::detail::BY_HAND;
use crate::key;
use crate::labels::ForwardLabel;
use crate::not_stored::NotStored;
use crate::receipt::{Account, Logged, Receipt};
use crate::route::Site;
use crate::sampled::{Sampled, SampledClient, sample_head, sample_texts};
use crate::settings::{OriginChoice, RuleSettings};
use crate::worker::Worker;

/// What FOSHttpCache and many others look at to tell a hit.
const X_CACHE: HeaderName = HeaderName::from_static("x-cache");

/// An exchange from the moment that its site and rule are known: what is asked, who asks, and how it went. A request of
/// larder's own making has the same two parts.
pub(crate) struct Exchange {
    pub(crate) asked: Asked,
    pub(crate) asker: Asker,
    /// The origin that was asked, or whose answer to another request was waited for.
    pub(crate) origin: Option<Arc<str>>,
    /// Whether its client may purge, and has asked to be shown what a cache knows of the answer.
    pub(crate) shows: bool,
    /// Whether it was looked up under a key.
    pub(crate) keyed: bool,
    /// Whether only what is stored may answer it, whatever its own rule makes of `only-if-cached`.
    pub(crate) cached_only: bool,
    pub(crate) started: Now,
    /// How long it waited for another's fetch.
    pub(crate) collapse_wait: Option<Duration>,
    /// How asking the origin went, for this request or for the one that it waited for.
    pub(crate) fetched: Option<Arc<Fetched>>,
    /// What its URL was before, where a look-up has found nothing under it.
    pub(crate) before: Option<Before>,
    /// Whether the response that it is sent is stored, where that is known only at the end.
    pub(crate) storing: Option<Arc<Storing>>,
    /// What became of the fragments of a page, which is known at its end.
    pub(crate) page: Option<Arc<PageTold>>,
}

/// A response and how it came about.
pub(crate) struct Reply {
    pub(crate) response: Response,
    pub(crate) status: CacheStatus,
    /// Where the response is a template, of which a page is made: then it has all fields and the whole body.
    pub(crate) sheet: Option<Box<Sheet>>,
}

impl Reply {
    /// An answer as it is.
    pub(crate) fn new(response: Response, status: CacheStatus) -> Self {
        Self { response, status, sheet: None }
    }
}

impl Exchange {
    /// At the beginning. Inlined, because both parts are large.
    #[inline(always)]
    pub(crate) fn new(asked: Asked, asker: Asker, started: Now) -> Self {
        Self {
            asked,
            asker,
            origin: None,
            shows: false,
            keyed: false,
            cached_only: false,
            started,
            collapse_wait: None,
            fetched: None,
            before: None,
            storing: None,
            page: None,
        }
    }

    pub(crate) fn settings(&self) -> &Arc<RuleSettings> {
        self.asked.route.settings()
    }

    pub(crate) fn site(&self) -> &Arc<Site> {
        self.asked.route.site()
    }

    /// Whether the answer shows the tags of a stored response.
    #[inline(always)]
    pub(crate) fn shows_tags(&self) -> bool {
        self.shows || self.settings().debug
    }

    /// Keeps the client at the server that answered it, and it alone: an answer that other caches may give to others is left
    /// as it is.
    pub(crate) fn stay(&self, choice: Option<&OriginChoice>, met: ServerTag, fields: &mut HeaderMap) {
        let name = choice.and_then(|choice| choice.sticky.as_ref());
        let is_new = self.asker.server != Some(met);
        let Some(name) = name.filter(|_| is_new && !directives::invites_sharing(fields)) else {
            return;
        };
        let secure = if self.asked.head.scheme == Scheme::Https { "; Secure" } else { "" };
        let cookie = format!("{name}={met}; Path=/; HttpOnly; SameSite=Lax{secure}");
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            fields.append(SET_COOKIE, cookie);
        }
    }

    /// Completes a response: the rule's edits, Cache-Status, counters, log.
    pub(crate) fn close(&self, worker: &Worker, reply: Reply) -> (Response, Receipt) {
        let Reply { mut response, status, .. } = reply;
        let receipt = self.close_in_place(worker, &mut response, status);
        (response, receipt)
    }

    /// The same where the response lies, which is 300 bytes to copy.
    pub(crate) fn close_in_place(
        &self,
        worker: &Worker,
        response: &mut Response,
        status: CacheStatus,
    ) -> Receipt {
        let edits = &self.settings().response;
        if !edits.is_empty() {
            let status = response.head.status;
            let before = std::mem::replace(&mut response.head, ResponseHead::new(status, HeaderMap::new()));
            response.head.fields = before.into_fields();
            edits.apply(&mut response.head.fields);
        }
        let with_key = (self.keyed && self.settings().debug).then(|| {
            status.value_with_key(&key::text(
                &self.asked.head,
                &self.settings().key,
                self.asked.versions.as_deref(),
            ))
        });
        worker.count(self, response.head.status, &status);
        let log = worker.proxy.log_format().map(|format| {
            let mut record = LogRecord::new(self.started.wall, self.asker.client);
            record.status = response.head.status;
            record.cache_status = Some(&status);
            self.tell(&mut record);
            if let Some(value) = &with_key {
                record.set(Text::CacheStatus, value.as_bytes());
            }
            let (storing, page) = (self.storing.clone(), self.page.clone());
            Logged { line: record.line(format), stored: status.stored, storing, page }
        });
        if self.asked.head.scheme == Scheme::Https
            && let Some(fields) = self.asked.route.secure_fields()
        {
            response.head.site = Some(Arc::clone(fields));
        }
        if self.shows {
            let word = if status.outcome == Outcome::Hit { "HIT" } else { "MISS" };
            response.head.fields.insert(X_CACHE, HeaderValue::from_static(word));
        }
        match with_key {
            Some(value) => drop(response.head.fields.append(CACHE_STATUS, value)),
            None => response.head.cache_status = Some(status),
        }
        let served = match status.outcome {
            Outcome::Hit => Served::Hit,
            Outcome::Forwarded(_) => Served::Forwarded,
            Outcome::Own => Served::Local,
        };
        let counted = (self.site().settings.route, self.settings().rule_id);
        let weight = worker.tap.weigh(worker.index, status.result().is_hit());
        let sample = weight.map(|weight| self.sample(weight, response, &status));
        Receipt(Some(Account { counted, started: self.started, served, log, sample }))
    }

    /// What its URL was before, where that is why the origin was asked.
    fn told_before(&self, said: Option<&CacheStatus>) -> Option<Before> {
        let is_it = said.is_some_and(|said| said.outcome == Outcome::Forwarded(Forward::UriMiss));
        self.before.filter(|_| is_it)
    }

    /// What is known of it for those who look on.
    #[inline(never)]
    fn sample(&self, weight: Weight, response: &Response, status: &CacheStatus) -> Sampled {
        let is_hit = status.outcome == Outcome::Hit;
        let of_origin = self.fetched.as_ref().filter(|_| !is_hit);
        let tls = self.asker.hop.peer.tls.as_deref().map(|tls| tls.version);
        let client = SampledClient { started: self.started, client: self.asker.client, tls };
        let head = SampleHead {
            rule: self.settings().rule_id,
            forward: match status.outcome {
                Outcome::Forwarded(reason) => Some(reason),
                Outcome::Hit | Outcome::Own => None,
            },
            before: self.told_before(Some(status)).map(|before| before.token()),
            not_stored: status.detail.filter(|word| !is_hit && NotStored::TOKENS.contains(word)),
            collapse_wait: self.collapse_wait,
            fetched: of_origin.cloned(),
            ..sample_head(&self.asked.head, client, weight, (response, status))
        };
        let of_stored = || response.head.stored.as_ref()?.prepared().map.get(CONTENT_TYPE);
        let content_type = response.head.fields.get(CONTENT_TYPE).or_else(of_stored);
        let texts = SampleTexts {
            content_type: content_type.map_or(&[][..], HeaderValue::as_bytes),
            ..sample_texts(&self.asked.head, self.asked.raw_target())
        };
        let (stored, storing) = (status.stored, self.storing.clone());
        Sampled { sample: PendingSample::new(head, &texts), stored, storing }
    }

    /// What a line in the log says of the exchange beside its answer. Filled in where it lies: it is 300 bytes.
    #[inline(always)]
    fn tell<'a>(&'a self, record: &mut LogRecord<'a>) {
        record.tls = self.asker.hop.peer.tls.as_deref();
        record.collapse_wait = self.collapse_wait;
        record.rule = Some(&self.settings().logged);
        record.set(Text::Origin, self.origin.as_deref().unwrap_or_default().as_bytes());
        // What a request has asked before it found something after all is no part of a hit.
        if record.cache_status.is_none_or(|said| said.outcome != Outcome::Hit) {
            record.fetched = self.fetched.as_deref();
            record.before = self
                .told_before(record.cache_status)
                .map(|before| (before.token(), before.not_stored().map(NotStored::token)));
        }
        tell_head(&self.asked.head, self.asked.raw_target(), record);
    }
}

/// What a line in the log says of a request.
#[inline(always)]
pub(crate) fn tell_head<'a>(head: &'a RequestHead, target: &'a Target, record: &mut LogRecord<'a>) {
    record.scheme = head.scheme;
    record.version = head.version;
    record.set_target(target.path().as_bytes(), target.query().map(str::as_bytes));
    record.set(Text::Method, head.method.as_str().as_bytes());
    record.set(Text::Host, head.authority.as_str().as_bytes());
    let fields = &head.fields;
    if !fields.is_empty() {
        let field = |name| fields.get(name).map_or(&[][..], HeaderValue::as_bytes);
        record.set(Text::UserAgent, field(USER_AGENT));
        record.set(Text::Referer, field(REFERER));
    }
}

impl Worker {
    #[inline]
    fn count(&self, exchange: &Exchange, status: StatusCode, said: &CacheStatus) {
        let rule = exchange.settings().rule_id;
        let counted = (exchange.site().settings.route, rule);
        self.metrics.request(counted, &exchange.asked.head.method, status, said.result());
        match said.outcome {
            Outcome::Hit if said.detail == Some(BY_HAND) => self.metrics.by_hand(rule),
            Outcome::Forwarded(reason) => {
                self.metrics.forwarded(rule, &ForwardLabel(reason));
                if let Some(before) = exchange.told_before(Some(said)) {
                    self.metrics.missed(rule, &before);
                }
            }
            Outcome::Hit | Outcome::Own => {}
        }
        if let Some(waited) = exchange.collapse_wait.filter(|_| said.collapsed) {
            self.metrics.collapsed(waited);
        }
    }
}
