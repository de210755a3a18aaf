//! Whole pages that a worker keeps, because it is asked for them again and again.
//!
//! In: a whole page that was made of look-ups alone, and what was found. Out: the same page for another request, as long as each
//! look-up finds the same response, fresh, for that request. So a kept page is what the look-ups alone would give, at the
//! price of the look-ups: it saves running the template and writing the head. An invalidation, an expiry, a refresh that is due and a
//! reload all show in the look-ups, and each part is used by them as if the page had been put together.
//! Of the request's fields, those have to be the same that values and conditions of the template have read. Where a rule, a key or an
//! edit of a fragment may depend on others, or a store has more than memory, the fragment is aimed anew.
//! A worker has 64 slots, by the template; the most asked stay. What a slot holds stays counted against its stores until the
//! slot is met again. Deliberately absent: pages that say the time or the client's address, and pages beyond [`LENGTH_MAX`].

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use http::header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE};
use http::{HeaderMap, HeaderName, Method};
use larder_assemble::FactsUsed;
use larder_cache::page::PartSaid;
use larder_http::body::{Body, Pieces};
use larder_http::fields::cache_status::CacheStatus;
use larder_http::message::{PreparedFields, RequestHead, Response, ResponseHead};
use larder_http::target::reference::DocumentUri;
use larder_http::time::Now;
use larder_store::{CacheKey, Held, StoredResponse};

use super::aim::{Aim, Aimed};
use super::page_answer::page_answer;
use super::refresh;
use crate::assemble::{Fragment, FragmentTemplate, PartBody, WholePage};
use crate::detail::ASSEMBLED;
use crate::exchange::{Exchange, Reply};
use crate::fill::coding_of;
use crate::invalidation::Judge;
use crate::key;
use crate::lookup::{Lookup, LookupResult};
use crate::settings::RuleSettings;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;

/// The longest page that is kept, in bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// Fields of a request that are answered from the page, and change nothing of it.
const OF_THE_ANSWER: [HeaderName; 6] =
    [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];

/// A response that a look-up found for a page.
pub(super) struct KeptLookup {
    uri: DocumentUri,
    exchange: Exchange,
    key: CacheKey,
    stored: Arc<StoredResponse>,
    /// Whether a request with other fields may lead elsewhere.
    depends_on_fields: bool,
    /// What it said to caches behind larder then.
    said: PartSaid,
    template: Option<FragmentTemplate>,
    cookies: usize,
    /// Whether its body went into the page as it is stored.
    is_as_stored: bool,
}

/// Where a look-up was made for a page, and what it found.
pub(super) struct FoundLookup {
    pub(super) uri: DocumentUri,
    pub(super) exchange: Exchange,
    pub(super) stored: Arc<StoredResponse>,
    /// [`Aimed`]'s.
    pub(super) depends_on_fields: bool,
}

impl KeptLookup {
    /// With the fragment that was made of what was found.
    pub(super) fn new(found: FoundLookup, fragment: &Fragment) -> Self {
        let FoundLookup { uri, exchange, stored, depends_on_fields } = found;
        let key = key::key(&exchange.asked.head, &exchange.settings().key, b"");
        let looks_beside = exchange.settings().stores().any(|(store, _)| store.looks_beside());
        let has_no_coding = matches!(coding_of(&stored.head.fields.map), Ok(None));
        Self {
            uri,
            key,
            depends_on_fields: depends_on_fields || looks_beside,
            said: fragment.said.clone(),
            template: fragment.template.clone(),
            cookies: fragment.cookies,
            is_as_stored: has_no_coding && fragment.body.has_length(stored.body.length()),
            exchange,
            stored,
        }
    }

    /// What a look-up for a page's request finds, with its age, where that is the same, fresh, and no refresh is due. `aim` is that
    /// page's.
    fn found(&self, aim: &Aim, worker: &Arc<Worker>, now: Now) -> Option<(Held, Duration)> {
        if !self.depends_on_fields {
            // Of a head, nothing but method and fields counts for what is in memory.
            return self.found_for(aim.page(), worker, now);
        }
        let route = &self.exchange.asked.route;
        let Aimed { head, site, rule, .. } = aim.at(&route.worker_plan().plan, &self.uri).ok()?;
        let leads_there =
            route.is(site, rule) && key::key(&head, &self.exchange.settings().key, b"") == self.key;
        leads_there.then(|| self.found_for(&head, worker, now))?
    }

    fn found_for(&self, request: &RequestHead, worker: &Arc<Worker>, now: Now) -> Option<(Held, Duration)> {
        let judge = Judge::new(&worker.proxy.invalidations, None);
        let (rule, hot, key) = (self.exchange.settings(), Some(&worker.hot), &self.key);
        match (Lookup { rule, hot, key, request, judge }).look_up(now) {
            LookupResult::Fresh { stored, age, ttl } => {
                let is_it = Arc::ptr_eq(&stored, &self.stored)
                    && !ttl.is_zero()
                    && !stored.body.is_by_hand()
                    && !refresh::is_due_ahead(&self.exchange, &stored, ttl);
                is_it.then_some((stored, age))
            }
            LookupResult::Refresh { .. } | LookupResult::Miss(_) => None,
        }
    }
}

/// What is needed to give a page once more.
pub(super) struct KeptPage {
    template: Arc<StoredResponse>,
    worker_plan: Arc<WorkerPlan>,
    settings: Arc<RuleSettings>,
    request: RequestHead,
    /// What of the request values and conditions have read.
    used: FactsUsed,
    parts: Vec<KeptLookup>,
    /// Where each of them stands there.
    by_uri: HashMap<DocumentUri, usize, foldhash::fast::RandomState>,
    page: Arc<WholePage>,
    fields: Arc<PreparedFields>,
    /// When it was made, and what it said then.
    made: Now,
    age_seconds: Option<u64>,
    ttl_seconds: Option<i64>,
}

/// What there is of a template that has no kept page for this request.
pub(super) struct NotKept {
    /// Whether the page that is put together should be kept.
    pub(super) is_wanted: bool,
    /// A page for other requests, whose fragments may be this one's.
    pub(super) other: Option<Arc<KeptPage>>,
}

/// The kept page of a stored template, where it is still the page of this request.
pub(super) fn find(
    worker: &Arc<Worker>,
    exchange: &Exchange,
    template: &Arc<StoredResponse>,
    now: Now,
) -> Result<Reply, NotKept> {
    let (kept, is_wanted) = worker.kept_pages.find(template);
    let Some(kept) = kept.and_then(|kept| kept.downcast::<KeptPage>().ok()) else {
        return Err(NotKept { is_wanted, other: None });
    };
    let head = &exchange.asked.head;
    let is_alike = Arc::ptr_eq(&kept.template, template)
        && Arc::ptr_eq(&kept.worker_plan, exchange.asked.route.worker_plan())
        && Arc::ptr_eq(&kept.settings, exchange.settings())
        && kept.request.scheme == head.scheme
        && kept.request.authority == head.authority;
    if !(is_alike && kept.is_for(head) && kept.has_its_parts(exchange, worker, now)) {
        let is_wanted = is_wanted && worker.kept_pages.may_replace(template);
        return Err(NotKept { is_wanted, other: is_alike.then_some(kept) });
    }
    for part in &kept.parts {
        worker.metrics.fragment_hit(part.exchange.settings().store_id);
    }
    #[cfg(test)]
    model::GIVEN.set(model::GIVEN.get() + 1);
    Ok(kept.reply(exchange, now))
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
    /// What of the request values and conditions have read.
    pub(super) used: &'a FactsUsed,
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
        settings: Arc::clone(exchange.settings()),
        used: made.used.clone(),
        request: RequestHead { fields: without_conditions(&head.fields), ..head.clone() },
        by_uri: made.parts.iter().enumerate().map(|(index, part)| (part.uri.clone(), index)).collect(),
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
    /// Whether the template gives the same for this request. A HEAD, conditions and ranges are answered from the page.
    fn is_for(&self, now: &RequestHead) -> bool {
        let kept = &self.request;
        let is_same_start = match self.used.start_line {
            true => kept.version == now.version && kept.method == now.method,
            false => matches!(now.method, Method::GET | Method::HEAD),
        };
        let is_same =
            |name: &HeaderName| kept.fields.get_all(name).iter().eq(now.fields.get_all(name).iter());
        is_same_start && kept.target == now.target && self.used.fields.iter().all(is_same)
    }

    /// Whether look-ups for this exchange's request find what it was made of.
    fn has_its_parts(&self, exchange: &Exchange, worker: &Arc<Worker>, now: Now) -> bool {
        let origin = exchange.site().settings.origin;
        let aim = Aim::new(&exchange.asked.head, exchange.settings(), origin);
        self.parts.iter().all(|part| part.found(&aim, worker, now).is_some())
    }

    /// The fragment of a URI as a look-up for another page's request finds it, where that is the one that this page was made of. `aim`
    /// is that page's.
    pub(super) fn fragment(
        &self,
        uri: &DocumentUri,
        aim: &Aim,
        worker: &Arc<Worker>,
        now: Now,
    ) -> Option<Box<Fragment>> {
        let part = self.parts.get(*self.by_uri.get(uri)?).filter(|part| part.is_as_stored)?;
        let (stored, age) = part.found(aim, worker, now)?;
        let length = stored.body.length();
        let said = part.said.at(age.as_secs(), stored.head.freshness.ttl_seconds(now));
        let body = PartBody::new(stored.into_body(0..length)?);
        worker.metrics.fragment_hit(part.exchange.settings().store_id);
        let (template, cookies) = (part.template.clone(), part.cookies);
        Some(Box::new(Fragment { said, body, template, passes: false, detail: None, cookies }))
    }

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
        let has_conditions = OF_THE_ANSWER.iter().any(|name| head.fields.contains_key(name));
        let is_plain = head.method == Method::GET && !has_conditions;
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
