//! Whole pages that a worker keeps, because it is asked for them again and again.
//!
//! In: a whole page that was made of look-ups alone, and what was found. Out: the same page for a request that is the same in all its
//! fields and has the same rule, as long as each look-up still finds the same response, fresh. So a kept page is what the look-ups
//! alone would give, at the price of the look-ups: it saves running the template and writing the head. An invalidation, an expiry, a
//! refresh that is due and a reload all show in the look-ups, and each part is used by them as if the page had been put together.
//! A worker has 64 slots, by the template; the most asked stay. What a slot holds stays counted against its stores until the
//! slot is met again. Deliberately absent: pages that say the time or the client's address, and pages beyond [`LENGTH_MAX`].

use std::sync::Arc;

use http::header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE};
use http::{HeaderMap, HeaderName, Method};
use larder_http::body::{Body, Pieces};
use larder_http::fields::cache_status::CacheStatus;
use larder_http::message::{PreparedFields, RequestHead, Response, ResponseHead};
use larder_http::time::Now;
use larder_store::{CacheKey, StoredResponse};

use super::context::RequestContext;
use super::look::Look;
use super::page_answer::page_answer;
use super::used::Used;
use crate::assemble::WholePage;
use crate::detail::ASSEMBLED;
use crate::exchange::{Exchange, Reply};
use crate::settings::RuleNumber;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;

/// The longest page that is kept, in bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// Fields of a request that are answered from the page, and change nothing of it.
const OF_THE_ANSWER: [HeaderName; 6] =
    [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];

/// A response that a look-up found for a page.
pub(super) struct KeptLookup {
    pub(super) exchange: Exchange,
    pub(super) origin: usize,
    pub(super) key: CacheKey,
    pub(super) stored: Arc<StoredResponse>,
}

impl KeptLookup {
    /// Whether a look-up finds the same, fresh.
    fn is_there(&self, worker: &Arc<Worker>, now: Now) -> bool {
        let context = RequestContext {
            worker,
            worker_plan: self.exchange.asked.route.worker_plan(),
            origin: self.origin,
            content: Default::default(),
        };
        let since = worker.proxy.invalidations.forgotten();
        let look = Look {
            context: &context,
            exchange: &self.exchange,
            key: &self.key,
            arrived: None,
            since,
            now,
            has_asked: false,
        };
        let found = look.at_once();
        matches!(
            &found,
            Ok(Used::Stored { stored, detail: None, .. }) if Arc::ptr_eq(stored, &self.stored)
        )
    }
}

/// What is needed to give a page once more.
pub(super) struct KeptPage {
    template: Arc<StoredResponse>,
    worker_plan: Arc<WorkerPlan>,
    rule: RuleNumber,
    request: RequestHead,
    /// A value or a condition read the method, or what stands beside it.
    reads_start_line: bool,
    parts: Vec<KeptLookup>,
    page: Arc<WholePage>,
    fields: Arc<PreparedFields>,
    /// When it was made, and what it said then.
    made: Now,
    age_seconds: Option<u64>,
    ttl_seconds: Option<i64>,
}

/// The kept page of a stored template, where it is still the page of this request. Else whether the page that is put together
/// should be kept.
pub(super) fn find(
    worker: &Arc<Worker>,
    exchange: &Exchange,
    template: &Arc<StoredResponse>,
    now: Now,
) -> Result<Reply, bool> {
    let (kept, is_wanted) = worker.kept_pages.find(template);
    let Some(kept) = kept.and_then(|kept| kept.downcast::<KeptPage>().ok()) else { return Err(is_wanted) };
    let is_it = Arc::ptr_eq(&kept.template, template)
        && Arc::ptr_eq(&kept.worker_plan, exchange.asked.route.worker_plan())
        // Of the same request: rules may match by the method, by a condition or by a range.
        && kept.rule == exchange.settings().number
        && is_same_request(&kept, &exchange.asked.head)
        && kept.parts.iter().all(|part| part.is_there(worker, now));
    if !is_it {
        return Err(is_wanted && worker.kept_pages.may_replace(template));
    }
    for part in &kept.parts {
        worker.metrics.fragment_hit(part.exchange.settings().store_id);
    }
    Ok(kept.reply(exchange, now))
}

/// Whether a page is the one of this request: all is the same but what is answered from the page, and the method, which may be
/// HEAD where no part of the page tells it.
fn is_same_request(page: &KeptPage, now: &RequestHead) -> bool {
    let kept = &page.request;
    let is_same = kept.scheme == now.scheme
        && kept.version == now.version
        && kept.authority == now.authority
        && kept.target == now.target
        && (now.method == Method::GET || (now.method == Method::HEAD && !page.reads_start_line));
    is_same && (kept.fields == now.fields || kept.fields == without_conditions(&now.fields))
}

fn without_conditions(fields: &HeaderMap) -> HeaderMap {
    let mut fields = fields.clone();
    for name in OF_THE_ANSWER {
        fields.remove(name);
    }
    fields
}

/// Whether one of these fields is left out where requests are compared.
pub(super) fn depends_on_conditions(fields: &[HeaderName]) -> bool {
    fields.iter().any(|name| OF_THE_ANSWER.contains(name))
}

/// A page that was made for a request, as it is kept.
pub(super) struct Made<'a> {
    pub(super) template: Arc<StoredResponse>,
    pub(super) parts: Vec<KeptLookup>,
    pub(super) page: &'a Arc<WholePage>,
    pub(super) fields: &'a HeaderMap,
    pub(super) reads_start_line: bool,
    pub(super) made: Now,
    pub(super) age_seconds: Option<u64>,
    pub(super) ttl_seconds: Option<i64>,
}

/// Keeps a whole page that was made of look-ups alone.
pub(super) fn keep(worker: &Worker, exchange: &Exchange, made: Made<'_>) {
    let head = &exchange.asked.head;
    if made.page.length() > LENGTH_MAX || head.method != Method::GET {
        return;
    }
    let room = exchange.settings().store.reserve(made.page.length());
    let page = match room {
        Some(room) => Arc::new(made.page.joined(Box::new(room))),
        None => Arc::clone(made.page),
    };
    let kept = KeptPage {
        template: made.template,
        worker_plan: Arc::clone(exchange.asked.route.worker_plan()),
        rule: exchange.settings().number,
        request: RequestHead { fields: without_conditions(&head.fields), ..head.clone() },
        reads_start_line: made.reads_start_line,
        parts: made.parts,
        page,
        fields: Arc::new(PreparedFields::new(made.fields.clone())),
        made: made.made,
        age_seconds: made.age_seconds,
        ttl_seconds: made.ttl_seconds,
    };
    worker.kept_pages.keep(&Arc::clone(&kept.template), Arc::new(kept));
}

impl KeptPage {
    fn reply(&self, exchange: &Exchange, now: Now) -> Reply {
        let since = now.since(&self.made).as_secs();
        let status = CacheStatus {
            ttl_seconds: self.ttl_seconds.map(|ttl| ttl.saturating_sub_unsigned(since)),
            detail: Some(ASSEMBLED),
            ..CacheStatus::new(larder_http::fields::cache_status::Outcome::Hit)
        };
        let head = &exchange.asked.head;
        let length = self.page.length();
        let owner = Arc::clone(&self.page) as Arc<dyn Pieces>;
        let is_plain = head.method == Method::GET && self.request.fields.len() == head.fields.len();
        let mut response = match is_plain && length > 0 {
            true => {
                let fields = Some(Arc::clone(&self.fields) as Arc<_>);
                let head = ResponseHead::from_stored(self.template.head.status, fields, HeaderMap::new());
                Response::new(head, Body::Pieces { owner, range: 0..length })
            }
            false => {
                let fields = (self.template.head.status, self.fields.map.clone());
                page_answer(exchange, fields, Arc::clone(&self.page))
            }
        };
        response.head.age = self.age_seconds.map(|age| age + since);
        Reply::new(response, status)
    }
}

#[cfg(test)]
mod model;
