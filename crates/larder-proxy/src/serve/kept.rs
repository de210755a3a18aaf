//! Whole pages that a worker keeps, because it is asked for them again and again.
//!
//! In: a whole page that was made of look-ups alone, and what was found. Out: the same page for another request, as long as each
//! look-up finds the same response, fresh, for that request. So a kept page is what the look-ups alone would give: it saves running
//! the template and writing the head, and those look-ups that can come to nothing else. An invalidation, an expiry, a refresh that
//! is due and a reload all show, and each part is used as if the page had been put together.
//! Of the request's fields, those have to be the same that values and conditions of the template have read, or else its run has to
//! take the same steps ([`rehearsal`]). Where a rule, a key or an edit of a fragment may depend on others, or a store has more than
//! memory, the fragment is aimed anew.
//! A page that says the time or the client's address is for one request. Its parts are kept all the same: the next page of the template
//! has them without aiming at each.
//! A worker has 64 slots, by the template, for up to four pages each; the most asked stay. What a slot holds stays counted against
//! its stores until the slot is met again. Deliberately absent: pages beyond [`LENGTH_MAX`].

mod rehearsal;

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use http::header::{
    CACHE_CONTROL, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderMap, HeaderName, Method};
use larder_assemble::{FactsUsed, Template};
use larder_cache::page::PartSaid;
use larder_cache::{Reuse, Verdict};
use larder_http::body::{Body, Pieces};
use larder_http::fields::cache_status::CacheStatus;
use larder_http::message::{PreparedFields, RequestHead, Response, ResponseHead};
use larder_http::target::reference::DocumentUri;
use larder_http::time::Now;
use larder_observe::RuleId;
use larder_store::{CacheKey, Held, MemoryStore, StoredResponse};
use smallvec::SmallVec;

use super::aim::{Aim, Aimed};
use super::page_answer::page_answer;
use super::refresh;
use crate::assemble::{AnyPage, Fragment, FragmentTemplate, PAGES_MAX, PartBody, WholePage};
use crate::detail::ASSEMBLED;
use crate::exchange::{Exchange, Reply};
use crate::fill::coding_of;
use crate::invalidation::Judge;
use crate::key;
use crate::lookup::{Lookup, LookupResult};
use crate::settings::RuleSettings;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;
use rehearsal::Rehearsal;

/// The longest page that is kept, in bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// No state of an index.
const NEVER: u64 = u64::MAX;

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
    /// Whether every request that gets this page would find the same here.
    is_for_all: bool,
    /// The state of the index in which it was [settled](larder_store::MemoryStore::settled) last.
    settled: AtomicU64,
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
        let key = exchange.asked.key(b"");
        let settings = exchange.settings();
        let depends_on_fields = depends_on_fields || settings.stores().any(|(store, _)| store.looks_beside());
        let is_for_all = !depends_on_fields
            && settings.places.is_empty()
            && stored.head.vary.fits_all()
            && stored.head.freshness.source.is_explicit();
        let has_no_coding = matches!(coding_of(&stored.head.fields.map), Ok(None));
        Self {
            uri,
            key,
            depends_on_fields,
            is_for_all,
            settled: AtomicU64::new(NEVER),
            said: fragment.said.clone(),
            template: fragment.template.clone(),
            cookies: fragment.cookies,
            is_as_stored: has_no_coding && fragment.body.has_length(stored.body.length()),
            exchange,
            stored,
        }
    }

    /// Whether a look-up for a page's request finds the same, fresh, and no refresh is due.
    fn is_found(&self, page: &PageAim<'_>, worker: &Arc<Worker>, now: Now) -> bool {
        self.is_unchanged((page.bare, page.has_wishes), worker, now)
            || self.found(page.aim(), worker, now).is_some()
    }

    /// The same by the last look-up, where nothing that it came to can have changed since. False where that is not known. Of the page's
    /// request, it is told one without fields, and whether those may say how old a response may be.
    fn is_unchanged(&self, (bare, has_wishes): (&RequestHead, bool), worker: &Arc<Worker>, now: Now) -> bool {
        // In this order: what is in the index now has been found since the judge was asked.
        let judge = Judge::new(&worker.proxy.invalidations, None);
        let settings = self.exchange.settings();
        let is_unchanged = self.is_for_all
            && !has_wishes
            && self.is_settled(settings.store.memory())
            && judge.verdict(&self.key, &self.stored) == Verdict::Good
            && self.stored.body.is_there()
            && match larder_cache::reuse(&self.stored.head, bare, now, &settings.policy) {
                Reuse::Fresh { ttl, .. } => self.may_be_used(&self.stored, ttl),
                _ => false,
            };
        #[cfg(test)]
        model::UNCHANGED.set(model::UNCHANGED.get() + u64::from(is_unchanged));
        is_unchanged
    }

    fn is_settled(&self, memory: &MemoryStore) -> bool {
        memory.change(&self.key) == self.settled.load(Ordering::Relaxed)
    }

    /// Whether what a look-up found goes into the page as it is.
    fn may_be_used(&self, stored: &Arc<StoredResponse>, ttl: Duration) -> bool {
        Arc::ptr_eq(stored, &self.stored)
            && !ttl.is_zero()
            && !stored.body.is_by_hand()
            && !refresh::is_due_ahead(&self.exchange, stored, ttl)
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
            route.is(site, rule) && key::key(&head, &self.exchange.settings().key, None, b"") == self.key;
        leads_there.then(|| self.found_for(&head, worker, now))?
    }

    fn found_for(&self, request: &RequestHead, worker: &Arc<Worker>, now: Now) -> Option<(Held, Duration)> {
        let judge = Judge::new(&worker.proxy.invalidations, None);
        let (rule, hot, key) = (self.exchange.settings(), Some(&worker.hot), &self.key);
        match (Lookup { rule, hot, key, request, judge }).look_up(now) {
            LookupResult::Fresh { stored, age, ttl } if self.may_be_used(&stored, ttl) => {
                let memory = rule.store.memory();
                if self.is_for_all && !self.is_settled(memory) {
                    let settled = memory.settled(key, &stored, now.monotonic);
                    self.settled.store(settled.unwrap_or(NEVER), Ordering::Relaxed);
                }
                Some((stored, age))
            }
            _ => None,
        }
    }
}

/// The request for a page, as look-ups for its fragments need it.
struct PageAim<'a> {
    exchange: &'a Exchange,
    head: &'a RequestHead,
    /// It may say how old a response may be.
    has_wishes: bool,
    /// One that says nothing.
    bare: &'a RequestHead,
    /// Made for those look-ups that need it.
    aim: OnceCell<Aim>,
}

impl<'a> PageAim<'a> {
    fn new(exchange: &'a Exchange, bare: &'a RequestHead) -> Self {
        let head = &exchange.asked.head;
        let has_wishes = head.fields.contains_key(CACHE_CONTROL);
        Self { exchange, head, has_wishes, bare, aim: OnceCell::new() }
    }

    fn aim(&self) -> &Aim {
        let origin = self.exchange.site().settings.origin;
        self.aim.get_or_init(|| Aim::new(self.head, self.exchange.settings(), origin))
    }
}

/// What is needed to give a page once more.
pub(super) struct KeptPage {
    template: Arc<StoredResponse>,
    worker_plan: Arc<WorkerPlan>,
    settings: Arc<RuleSettings>,
    request: RequestHead,
    /// The same without fields.
    bare: RequestHead,
    /// What of the request values and conditions have read.
    used: FactsUsed,
    /// What the template does for the request; `None` where it has read nothing of it, or cannot be rehearsed.
    rehearsal: Option<Rehearsal>,
    parts: Vec<KeptLookup>,
    /// How many of them each rule answers.
    rules: Vec<(RuleId, u64)>,
    /// Where each of them stands there.
    by_uri: HashMap<DocumentUri, usize, foldhash::fast::RandomState>,
    /// `None` where it says what is another for each request: then only its parts are of use.
    page: Option<Arc<WholePage>>,
    fields: Arc<PreparedFields>,
    /// When it was made, and what it said then.
    made: Now,
    age: Option<Duration>,
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
    let (all, is_wanted) = worker.kept_pages.find(template);
    if all.is_empty() {
        return Err(NotKept { is_wanted, other: None });
    }
    let pages: SmallVec<[Arc<KeptPage>; PAGES_MAX]> =
        all.into_iter().filter_map(|page| page.downcast::<KeptPage>().ok()).collect();
    let kept = page_for(&pages, exchange, template);
    let found = kept.filter(|kept| kept.has_its_parts(exchange, worker, now));
    let Some((kept, page)) = found.and_then(|kept| Some((kept, kept.page.as_ref()?))) else {
        let mut alike = pages.iter().filter(|page| page.is_alike(exchange, template));
        // Where one page was for a single request, the next will be.
        let replaces = kept.is_some() || alike.clone().any(|page| page.page.is_none());
        let is_wanted = is_wanted && worker.kept_pages.may_keep(template, replaces);
        let other = kept.or_else(|| alike.next());
        return Err(NotKept { is_wanted, other: other.cloned() });
    };
    if pages.len() > 1 && !Arc::ptr_eq(kept, &pages[0]) {
        let kept: AnyPage = Arc::clone(kept) as AnyPage;
        worker.kept_pages.note_used(template, &kept);
    }
    for (rule, count) in &kept.rules {
        worker.metrics.fragment_hits(*rule, *count);
    }
    #[cfg(test)]
    model::GIVEN.set(model::GIVEN.get() + 1);
    Ok(kept.reply(page, exchange, now))
}

/// The one of some pages that the template gives for an exchange's request.
fn page_for<'a>(
    pages: &'a [Arc<KeptPage>],
    exchange: &Exchange,
    template: &Arc<StoredResponse>,
) -> Option<&'a Arc<KeptPage>> {
    let head = &exchange.asked.head;
    let mut alike = pages
        .iter()
        .filter(|page| page.page.is_some() && page.is_alike(exchange, template) && page.is_for_target(head));
    if let Some(kept) = alike.clone().find(|page| page.is_for_values(head)) {
        return Some(kept);
    }
    let found = Rehearsal::find(alike.clone().filter_map(|page| page.rehearsal.as_ref()), exchange)?;
    alike.find(|page| page.rehearsal.as_ref().is_some_and(|one| std::ptr::eq(one, found)))
}

fn without_conditions(fields: &HeaderMap) -> HeaderMap {
    let mut fields = fields.clone();
    for name in OF_THE_ANSWER {
        fields.remove(name);
    }
    fields
}

/// Whether one of these fields is left out where requests are compared.
fn depends_on_conditions(fields: &[HeaderName]) -> bool {
    fields.iter().any(|name| OF_THE_ANSWER.contains(name))
}

/// A page that was made for a request, as it is kept.
pub(super) struct Made<'a> {
    pub(super) template: Arc<StoredResponse>,
    /// The same, as it is run.
    pub(super) program: Template,
    pub(super) parts: Vec<KeptLookup>,
    pub(super) page: &'a Arc<WholePage>,
    pub(super) fields: &'a HeaderMap,
    /// What of the request values and conditions have read.
    pub(super) used: &'a FactsUsed,
    pub(super) made: Now,
    pub(super) age_seconds: Option<u64>,
    pub(super) ttl_seconds: Option<i64>,
}

impl Made<'_> {
    /// The age of the page, which is that of one of its parts. The fraction of a second is the greatest of those that it may be of: a page
    /// never says that it is younger than it is.
    fn age(&self) -> Option<Duration> {
        let all = std::iter::once(&self.template).chain(self.parts.iter().map(|part| &part.stored));
        let ages = all.map(|stored| stored.head.freshness.age(self.made));
        let seconds = self.age_seconds?;
        Some(ages.filter(|age| age.as_secs() == seconds).max().unwrap_or(Duration::from_secs(seconds)))
    }
}

/// Keeps a whole page that was made of look-ups alone.
pub(super) fn keep(worker: &Worker, exchange: &Exchange, made: Made<'_>) {
    let head = &exchange.asked.head;
    if made.page.length() > LENGTH_MAX || head.method != Method::GET {
        return;
    }
    let is_for_one = made.used.clock || made.used.client || depends_on_conditions(&made.used.fields);
    let page = (!is_for_one).then(|| match exchange.settings().store.reserve(made.page.length()) {
        Some(room) => Arc::new(made.page.joined(Box::new(room))),
        None => Arc::clone(made.page),
    });
    let age = made.age();
    let has_read = !made.used.fields.is_empty() || made.used.start_line;
    let rehearsal = match has_read && !is_for_one {
        false => None,
        true => Rehearsal::of(made.program, exchange, |uri| {
            let part = made.parts.iter().find(|part| part.uri == *uri)?;
            part.template.is_none().then(|| part.stored.body.length() == 0)
        }),
    };
    let kept = KeptPage {
        rehearsal,
        template: made.template,
        worker_plan: Arc::clone(exchange.asked.route.worker_plan()),
        settings: Arc::clone(exchange.settings()),
        used: made.used.clone(),
        request: RequestHead { fields: without_conditions(&head.fields), ..head.clone() },
        bare: RequestHead { fields: HeaderMap::new(), ..head.clone() },
        by_uri: made.parts.iter().enumerate().map(|(index, part)| (part.uri.clone(), index)).collect(),
        rules: rules_of(&made.parts),
        parts: made.parts,
        page,
        fields: Arc::new(PreparedFields::new(made.fields.clone())),
        made: made.made,
        age,
        ttl_seconds: made.ttl_seconds,
    };
    let (template, kept) = (Arc::clone(&kept.template), Arc::new(kept));
    let replaces = |other: &AnyPage| other.downcast_ref().is_none_or(|other| kept.replaces(exchange, other));
    worker.kept_pages.keep(&template, Arc::clone(&kept) as AnyPage, replaces);
}

fn rules_of(parts: &[KeptLookup]) -> Vec<(RuleId, u64)> {
    let mut rules: Vec<(RuleId, u64)> = Vec::new();
    for id in parts.iter().map(|part| part.exchange.settings().rule_id) {
        match rules.iter_mut().find(|(rule, _)| *rule == id) {
            Some((_, count)) => *count += 1,
            None => rules.push((id, 1)),
        }
    }
    rules
}

impl KeptPage {
    /// Whether it was made of this template, for the same host, and under the same rule and plan.
    fn is_alike(&self, exchange: &Exchange, template: &Arc<StoredResponse>) -> bool {
        let head = &exchange.asked.head;
        Arc::ptr_eq(&self.template, template)
            && Arc::ptr_eq(&self.worker_plan, exchange.asked.route.worker_plan())
            && Arc::ptr_eq(&self.settings, exchange.settings())
            && self.request.scheme == head.scheme
            && self.request.authority == head.authority
    }

    /// Whether it was asked for in the same way. A HEAD, conditions and ranges are answered from the page.
    fn is_for_target(&self, now: &RequestHead) -> bool {
        let kept = &self.request;
        let is_same_start = match self.used.start_line {
            true => kept.version == now.version && kept.method == now.method,
            false => matches!(now.method, Method::GET | Method::HEAD),
        };
        is_same_start && kept.target == now.target
    }

    /// Whether all that the template has read of the request is the same.
    fn is_for_values(&self, now: &RequestHead) -> bool {
        let kept = &self.request;
        let is_same =
            |name: &HeaderName| kept.fields.get_all(name).iter().eq(now.fields.get_all(name).iter());
        self.used.fields.iter().all(is_same)
    }

    /// Whether it takes the place of another one, now that an exchange has made it.
    fn replaces(&self, exchange: &Exchange, other: &Self) -> bool {
        let is_same_run = match (&self.rehearsal, &other.rehearsal) {
            (Some(own), Some(other)) => own.is_same(other),
            _ => false,
        };
        let is_alike = other.is_alike(exchange, &self.template) && other.is_for_target(&self.request);
        let are_parts = self.page.is_none() && other.page.is_none();
        !is_alike || are_parts || is_same_run || other.is_for_values(&self.request)
    }

    /// Whether look-ups for this exchange's request find what it was made of.
    fn has_its_parts(&self, exchange: &Exchange, worker: &Arc<Worker>, now: Now) -> bool {
        let page = PageAim::new(exchange, &self.bare);
        self.parts.iter().all(|part| part.is_found(&page, worker, now))
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
        let has_wishes = aim.page().fields.contains_key(CACHE_CONTROL);
        let (stored, age) = match part.is_unchanged((&self.bare, has_wishes), worker, now) {
            true => (Held::Shared(Arc::clone(&part.stored)), part.stored.head.freshness.age(now)),
            false => part.found(aim, worker, now)?,
        };
        let length = stored.body.length();
        let said = part.said.at(age.as_secs(), stored.head.freshness.ttl_seconds(now));
        let body = PartBody::new(stored.into_body(0..length)?);
        worker.metrics.fragment_hits(part.exchange.settings().rule_id, 1);
        let (template, cookies) = (part.template.clone(), part.cookies);
        Some(Box::new(Fragment { said, body, template, passes: false, detail: None, cookies }))
    }

    fn reply(&self, page: &Arc<WholePage>, exchange: &Exchange, now: Now) -> Reply {
        let since = now.since(&self.made).as_secs();
        let status = CacheStatus {
            ttl_seconds: self.ttl_seconds.map(|ttl| ttl.saturating_sub_unsigned(since)),
            detail: Some(ASSEMBLED),
            ..CacheStatus::new(larder_http::fields::cache_status::Outcome::Hit)
        };
        let head = &exchange.asked.head;
        let length = page.length();
        let owner = Arc::clone(page) as Arc<dyn Pieces>;
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
                page_answer(exchange, fields, Arc::clone(page))
            }
        };
        response.head.age = self.age.map(|age| (age + now.since(&self.made)).as_secs());
        Reply::new(response, status)
    }
}

#[cfg(test)]
mod model;
