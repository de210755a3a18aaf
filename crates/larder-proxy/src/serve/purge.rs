//! A request that purges, at a listener: in whatever words a plugin sends it, answered by larder and never passed on.
//!
//! In: a request before anything of it was changed. Out: `None` where it is no purge, or its site passes purges on; else its answer,
//! once the purge holds. The order is fixed: which site, who may, what is asked, and only then the content, which is dropped. So a
//! sender who may not purge learns nothing. The answer has the status and the words that the plugin expects, and `Larder-Receipt`.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use larder_cache::purge::{Expression, Mode, PatternText, Selector};
use larder_http::body::Body;
use larder_http::fields::cache_status::{CacheStatus, Outcome, RequestResult};
use larder_http::message::{Peer, RequestHead, Response, ResponseHead};
use larder_observe::{LogRecord, Served};

use super::content;
use crate::exchange::tell_head;
use crate::plan::Plan;
use crate::purge::{self, PurgeAnswer, PurgeRequest, Reading, Wanted};
use crate::purges::access::{Access, Admitted, AskedSite, Asking, admit};
use crate::purges::{AuditEntry, Order, PurgeError, PurgeRefusal, Sender, here};
use crate::receipt::{Account, Logged, Receipt};
use crate::route;
use crate::sampled::{SampledClient, sample_own};
use crate::settings::SiteSettings;
use crate::worker::Worker;

/// Content of a request for a purge that is read and dropped, in bytes. Beyond it the connection is closed.
const CONTENT_MAX: usize = 64 * 1024;
/// Names the purge.
const RECEIPT: HeaderName = HeaderName::from_static("larder-receipt");
/// Seconds after which a purge that was refused or may not hold is worth another try.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("60");

/// Whether a request may be a purge: by its method, or, where a site has a location for that, by its path.
#[inline(always)]
pub(super) fn may_be_one(plan: &Plan, head: &RequestHead) -> bool {
    match head.method {
        Method::GET => plan.has_purge_locations,
        Method::HEAD | Method::POST => false,
        _ => purge::is_purge_method(head.method.as_str()),
    }
}

/// A request that purges.
pub(super) struct PurgeCall {
    asking: AskingPeer,
    body: Body,
}

/// Its head, and who sent it to which site.
struct AskingPeer {
    head: RequestHead,
    peer: Peer,
    own: Option<usize>,
}

/// Whether it is a purge that larder answers: not where its site passes purges on.
pub(super) fn is_one(plan: &Plan, head: &RequestHead) -> bool {
    let access = own_site(plan, head).map(|own| &plan.router.at(own).settings.purge);
    match (&head.method, access) {
        (&Method::GET, _) => {
            location_of(access).is_some_and(|location| is_below(head.target.path(), location))
        }
        (_, Some(Access::Pass)) => false,
        _ => true,
    }
}

fn own_site(plan: &Plan, head: &RequestHead) -> Option<usize> {
    plan.router.site(head.authority.host()).map(|(index, _)| index)
}

fn location_of(access: Option<&Access>) -> Option<&str> {
    match access {
        Some(Access::Open(rules)) => rules.location.as_deref(),
        _ => None,
    }
}

fn is_below(path: &str, location: &str) -> bool {
    path.strip_prefix(location.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

impl PurgeCall {
    /// One, as it came.
    pub(super) fn new(plan: &Plan, head: RequestHead, body: Body, peer: Peer) -> Box<Self> {
        let own = own_site(plan, &head);
        Box::new(Self { asking: AskingPeer { head, peer, own }, body })
    }

    /// Answers it.
    ///
    /// # Cancel safety
    /// Dropped, a purge that has begun goes on.
    pub(super) async fn answer(self: Box<Self>, worker: Arc<Worker>) -> (Response, Receipt) {
        let Self { asking, body } = *self;
        let plan = Arc::clone(&worker.worker_plan.load().plan);
        let said = asking.act(&worker, &plan).await;
        let is_drained = matches!(content::take(body, CONTENT_MAX).await, Ok(content::Taken::All(_)));
        let mut response = response_of(&said);
        response.close = !is_drained;
        let receipt = asking.tell(&worker, &plan, &mut response, said.detail);
        (response, receipt)
    }
}

/// How a request reads, with the purge location of its site.
pub(super) fn read_as_purge(head: &RequestHead, location: Option<&str>) -> Reading {
    purge::read(&request(head, location))
}

fn request<'a>(head: &'a RequestHead, location: Option<&'a str>) -> PurgeRequest<'a> {
    PurgeRequest {
        method: head.method.as_str(),
        target: head.target.as_str(),
        fields: &head.fields,
        location,
    }
}

/// The client that a trusted proxy names. Only X-Forwarded-For is believed: a proxy that adds another field names nobody.
pub(super) fn named_client(plan: &Plan, head: &RequestHead, peer: IpAddr) -> Option<IpAddr> {
    let line = head.fields.get_all("x-forwarded-for").iter().next_back()?.as_bytes();
    let nearest = line.rsplit(|byte| *byte == b',').next()?;
    std::str::from_utf8(nearest.trim_ascii()).ok()?.parse::<IpAddr>().ok()?;
    (plan.trusted)(peer).then(|| route::client_of(head, peer, &*plan.trusted))
}

impl AskingPeer {
    async fn act(&self, worker: &Arc<Worker>, plan: &Plan) -> Said {
        let request = self.request(plan);
        let admitted = match self.admit(plan) {
            Ok(admitted) => admitted,
            Err(why) => return self.refuse(worker, why, &request),
        };
        let wanted = match purge::read(&request) {
            Reading::Wanted(wanted) => wanted,
            Reading::Bad { words, .. } => {
                worker.proxy.purges.counts.refused(PurgeRefusal::Bad);
                return Said::of(PurgeAnswer::bad(words), "purge-bad");
            }
            Reading::Refresh(_) | Reading::NotOurs => {
                return self.refuse(worker, PurgeRefusal::NotAllowed, &request);
            }
        };
        let absent = admitted.rules.absent;
        let sender = Sender { dialect: wanted.dialect, peer: Some(self.peer.remote.ip()), by: admitted.by };
        let order = self.order(&wanted, admitted);
        match worker.purge(&order, sender).await {
            Ok(receipt) => {
                let is_url = |selector: &Selector| matches!(selector, Selector::Here(_) | Selector::Url(_));
                // How much any other name concerns is not known at once.
                let is_known = wanted.selectors.iter().all(is_url) && order.mode == Mode::Hard;
                let stored = is_known.then_some(receipt.removed > 0);
                let answer = PurgeAnswer::done(wanted.manner, stored, absent);
                Said { receipt: Some(named(&receipt)), ..Said::of(answer, "purged") }
            }
            Err(PurgeError::Wrong(wrong)) => {
                let why = wrong.0.first().map_or_else(String::new, |(_, why)| why.to_string());
                Said::of(PurgeAnswer::bad(why), "purge-bad")
            }
            Err(PurgeError::Busy) => Said::of(PurgeAnswer::too_many(), "purge-busy"),
            Err(PurgeError::NotHeld { receipt, why }) => {
                let receipt = Some(named(&receipt));
                Said { receipt, ..Said::of(PurgeAnswer::not_held(why), "purge-not-held") }
            }
            Err(PurgeError::Incomplete { receipt, why }) => {
                let receipt = Some(named(&receipt));
                Said { receipt, ..Said::of(PurgeAnswer::not_held(why), "purge-incomplete") }
            }
            Err(error @ PurgeError::Lost) => {
                Said::of(PurgeAnswer::not_held(error.to_string()), "purge-not-held")
            }
        }
    }

    fn request<'a>(&'a self, plan: &'a Plan) -> PurgeRequest<'a> {
        request(&self.head, location_of(self.own.map(|own| &plan.router.at(own).settings.purge)))
    }

    fn admit(&self, plan: &Plan) -> Result<Admitted, PurgeRefusal> {
        let asking = Asking {
            fields: &self.head.fields,
            peer: self.peer.remote.ip(),
            client: named_client(plan, &self.head, self.peer.remote.ip()),
        };
        let sites: Vec<AskedSite<'_>> = plan
            .router
            .sites()
            .map(|site| AskedSite { hosts: &site.settings.hosts, access: &site.settings.purge })
            .collect();
        // The site of all other hosts is the own one of a host that no config names: the cache's own name, perhaps.
        let own = self.own.filter(|own| !plan.router.at(*own).settings.hosts.is_empty());
        admit(&asking, &sites, own)
    }

    fn order(&self, wanted: &Wanted, admitted: Admitted) -> Order {
        let (host, port) = (&self.head.authority, self.peer.local.port());
        let here = match self.own {
            Some(_) => here(host, port, &admitted.scope),
            None => Vec::new(),
        };
        let is_at_host = !here.is_empty() && matches!(self.head.method.as_str(), "PURGE" | "GET");
        let selectors = wanted.selectors.iter().cloned();
        let selectors = match is_at_host {
            true => selectors.map(|selector| at_host(selector, host.host())).collect(),
            false => selectors.collect(),
        };
        Order {
            selectors,
            mode: if admitted.rules.soft { Mode::Soft } else { wanted.mode },
            scope: admitted.scope,
            here,
            takes_patterns: admitted.rules.patterns,
            wait: None,
        }
    }

    fn refuse(&self, worker: &Worker, why: PurgeRefusal, request: &PurgeRequest<'_>) -> Said {
        let proxy = &worker.proxy;
        let why = match why {
            PurgeRefusal::Token
                if proxy.wrong_secrets.note(self.peer.remote.ip(), proxy.clock.now().monotonic) =>
            {
                PurgeRefusal::TooManyTokens
            }
            why => why,
        };
        proxy.purges.counts.refused(why);
        proxy.tell_of_refusal(self.peer.remote.ip(), &self.head, why);
        match why {
            PurgeRefusal::TooManyTokens => Said::of(PurgeAnswer::too_many(), "purge-busy"),
            _ => Said::of(PurgeAnswer::refused(request), "purge-refused"),
        }
    }

    /// Counts it and writes its line, as for every answer.
    fn tell(
        &self,
        worker: &Arc<Worker>,
        plan: &Plan,
        response: &mut Response,
        detail: &'static str,
    ) -> Receipt {
        let started = worker.proxy.clock.now();
        let of_site = |settings: &SiteSettings| (settings.route, settings.otherwise.rule_id);
        let counted = self.own.map(|own| of_site(&plan.router.at(own).settings)).unwrap_or_default();
        worker.metrics.request(counted, &self.head.method, response.head.status, RequestResult::Own);
        let status = CacheStatus { detail: Some(detail), ..CacheStatus::new(Outcome::Own) };
        let log = worker.proxy.log_format().map(|format| {
            let mut record = LogRecord::new(started.wall, self.client());
            record.status = response.head.status;
            record.cache_status = Some(&status);
            record.tls = self.peer.tls.as_deref();
            record.rule = self.own.map(|own| &plan.router.at(own).settings.otherwise.logged);
            tell_head(&self.head, &self.head.target, &mut record);
            Logged { line: record.line(format), stored: false, storing: None, page: None }
        });
        let tls = self.peer.tls.as_deref().map(|tls| tls.version);
        let client = SampledClient { started, client: self.client(), tls };
        let sample = sample_own(worker, &self.head, client, (response, &status));
        response.head.cache_status = Some(status);
        Receipt(Some(Account { counted, started, served: Served::Local, log, sample }))
    }

    fn client(&self) -> IpAddr {
        self.peer.remote.ip()
    }
}

/// What the path of a PURGE names is at the host of the request, as a URL is. With BAN it is at all hosts: clients that send it have a
/// cache's own name as Host, or a VCL that compares no hosts.
fn at_host(selector: Selector, host: &str) -> Selector {
    match selector {
        Selector::Prefix { host: None, path } => Selector::Prefix { host: Some(host.into()), path },
        Selector::Pattern(text) if text.host.is_none() && is_of_path(&text) => {
            let own = Expression { text: format!("^{}$", regex::escape(host)).into(), at_start: false };
            Selector::Pattern(PatternText { host: Some(own), ..text })
        }
        other => other,
    }
}

/// Expressions in fields match anywhere.
fn is_of_path(text: &PatternText) -> bool {
    text.target.as_ref().is_some_and(|target| target.at_start)
}

/// What is answered.
struct Said {
    answer: PurgeAnswer,
    receipt: Option<String>,
    detail: &'static str,
}

impl Said {
    fn of(answer: PurgeAnswer, detail: &'static str) -> Self {
        Self { answer, receipt: None, detail }
    }
}

/// What the field says of a purge.
fn named(receipt: &AuditEntry) -> String {
    format!("{}; removed={}", receipt.id, receipt.removed)
}

fn response_of(said: &Said) -> Response {
    let PurgeAnswer { status, reason, body, content_type } = &said.answer;
    let mut fields = HeaderMap::with_capacity(6);
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(content_type) = content_type {
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    match *status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            fields.insert(RETRY_AFTER, RETRY_SECONDS);
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            fields.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        _ => {}
    }
    if let Some(receipt) = said.receipt.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
        fields.insert(RECEIPT, receipt);
    }
    let body = Bytes::copy_from_slice(body.as_bytes());
    let body = if body.is_empty() { Body::Empty } else { Body::Full(body) };
    let head = ResponseHead { reason: *reason, ..ResponseHead::new(*status, fields) };
    Response::new(head, body)
}
