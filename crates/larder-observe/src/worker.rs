//! One worker's counters: what the steps of an exchange call when something has happened.
//!
//! Every call is a few adds in memory that only this worker writes; nothing waits, hashes or, after the first use of
//! a site, store or origin, allocates. Cells for a name are made when it first counts, so that unused numbers cost a
//! pointer. Reading is `snapshot`'s affair.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Method, StatusCode};
use larder_http::fields::cache_status::RequestResult;

use crate::assembly::{AssemblyCells, PageHow};
use crate::cells::{Cells, FixedCells};
use crate::histogram::Histogram;
use crate::label::{CodeClass, Label, MethodLabel, Served, Vocabulary};
use crate::names::{OriginId, RouteId, RuleId};
use crate::rules::{RULE_NUMBERS_MAX, RuleCells};

/// The most sites and origins that are told apart, over all configurations of one process.
pub(crate) const ROUTES_MAX: usize = 1024;
pub(crate) const ORIGINS_MAX: usize = 256;

/// Places in [`RouteCells::flow`].
pub(crate) const BODY_BYTES: usize = 0;
pub(crate) const ABORTED: usize = 1;

/// Of methods and classes.
pub(crate) const REQUEST_PLACES: usize = MethodLabel::TOKENS.len() * CodeClass::TOKENS.len();

#[derive(Default)]
pub(crate) struct RouteCells {
    /// By method, then class of status code.
    pub(crate) requests: FixedCells<REQUEST_PLACES>,
    pub(crate) flow: FixedCells<2>,
    pub(crate) pages: FixedCells<{ PageHow::TOKENS.len() }>,
}

pub(crate) struct OriginCells {
    pub(crate) duration: Histogram,
}

type Slots<T> = Box<[OnceLock<Box<T>>]>;
type TaskCount = Box<dyn Fn() -> usize + Send + Sync>;

/// What became of clients whose body was let go of.
pub(crate) const LET_GO: [&str; 2] = ["resumed", "cut"];

/// The counters that one worker writes and everybody may read. Shared by the worker's tasks through an `Arc`.
pub struct WorkerMetrics {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) routes: Slots<RouteCells>,
    pub(crate) rules: Slots<RuleCells>,
    pub(crate) origins: Slots<OriginCells>,
    pub(crate) latency: [Histogram; Served::TOKENS.len()],
    pub(crate) lock_wait: Histogram,
    pub(crate) invalidations: Cells,
    pub(crate) refreshes: Cells,
    pub(crate) went_alone: Cells,
    pub(crate) let_go: Cells,
    pub(crate) requests_invalidated: Cells,
    pub(crate) put_off: Cells,
    pub(crate) cookies_withheld: Cells,
    pub(crate) assembly: AssemblyCells,
    pub(crate) tasks: OnceLock<TaskCount>,
}

fn slots<T>(n: usize) -> Slots<T> {
    (0..n).map(|_| OnceLock::new()).collect()
}

/// The place of a method and class in [`RouteCells::requests`].
fn request_place(method: usize, class: usize) -> usize {
    method * CodeClass::TOKENS.len() + class
}

impl WorkerMetrics {
    pub(crate) fn new(vocabulary: Vocabulary) -> Self {
        Self {
            vocabulary,
            routes: slots(ROUTES_MAX),
            rules: slots(RULE_NUMBERS_MAX),
            origins: slots(ORIGINS_MAX),
            latency: Default::default(),
            lock_wait: Histogram::default(),
            invalidations: Cells::new(vocabulary.invalidation.len()),
            refreshes: Cells::new(vocabulary.refresh.len()),
            went_alone: Cells::new(1),
            let_go: Cells::new(LET_GO.len()),
            requests_invalidated: Cells::new(1),
            put_off: Cells::new(1),
            cookies_withheld: Cells::new(1),
            assembly: AssemblyCells::new(&vocabulary),
            tasks: OnceLock::new(),
        }
    }

    pub(crate) fn route(&self, id: RouteId) -> Option<&RouteCells> {
        let make = Box::<RouteCells>::default;
        self.routes.get(id.index()).map(|slot| &**slot.get_or_init(make))
    }

    pub(crate) fn rule(&self, id: RuleId) -> Option<&RuleCells> {
        let make = || Box::new(RuleCells::new(&self.vocabulary));
        self.rules.get(id.index()).map(|slot| &**slot.get_or_init(make))
    }

    fn origin(&self, id: OriginId) -> Option<&OriginCells> {
        let make = || Box::new(OriginCells { duration: Histogram::default() });
        self.origins.get(id.index()).map(|slot| &**slot.get_or_init(make))
    }

    /// A request has its final status, and it is known who answered it.
    #[inline(always)]
    pub fn request(
        &self,
        (route, rule): (RouteId, RuleId),
        method: &Method,
        status: StatusCode,
        result: RequestResult,
    ) {
        if let Some(cells) = self.route(route) {
            let place = request_place(MethodLabel::from(method).index(), CodeClass::from(status).index());
            cells.requests.add(place, 1);
        }
        if let Some(cells) = self.rule(rule) {
            cells.answered(result);
        }
    }

    /// A response has ended: `took` counts from the request's head, `complete` is false where it was cut.
    pub fn delivered(
        &self,
        (route, rule): (RouteId, RuleId),
        served: Served,
        took: Duration,
        body_bytes: u64,
        complete: bool,
    ) {
        self.latency[served.index()].observe(took);
        if let Some(cells) = self.route(route) {
            cells.flow.add(BODY_BYTES, body_bytes);
            cells.flow.add(ABORTED, u64::from(!complete));
        }
        if let Some(cells) = self.rule(rule) {
            cells.sent(served.bytes_from(), body_bytes);
        }
    }

    /// A hit was a plain file which a person put there.
    pub fn by_hand(&self, rule: RuleId) {
        if let Some(cells) = self.rule(rule) {
            cells.by_hand();
        }
    }

    /// A request was forwarded, or would have been had it not joined another's fetch.
    pub fn forwarded<L: Label>(&self, rule: RuleId, reason: &L) {
        debug_assert_eq!(L::TOKENS, self.vocabulary.forward);
        if let Some(cells) = self.rule(rule) {
            cells.forwarded(reason.index());
        }
    }

    /// A request found nothing under its URL; `before` says what had become of that.
    pub fn missed<L: Label>(&self, rule: RuleId, before: &L) {
        debug_assert_eq!(L::TOKENS, self.vocabulary.before);
        if let Some(cells) = self.rule(rule) {
            cells.missed(before.index(), L::TOKENS.len());
        }
    }

    /// A request got its head from another request's fetch, after waiting for `waited`.
    pub fn collapsed(&self, waited: Duration) {
        self.lock_wait.observe(waited);
    }

    /// A response was stored.
    pub fn stored(&self, rule: RuleId) {
        if let Some(cells) = self.rule(rule) {
            cells.stored();
        }
    }

    /// A response was not stored.
    pub fn not_stored<L: Label>(&self, rule: RuleId, reason: &L) {
        debug_assert_eq!(L::TOKENS, self.vocabulary.not_stored);
        if let Some(cells) = self.rule(rule) {
            cells.not_stored(reason.index(), L::TOKENS.len());
        }
    }

    /// A fetch began that nobody waits for.
    pub fn refreshed<L: Label>(&self, kind: &L) {
        debug_assert_eq!(L::TOKENS, self.vocabulary.refresh);
        self.refreshes.add(kind.index(), 1);
    }

    /// A refresh did not begin, because too many were under way.
    pub fn refresh_put_off(&self) {
        self.put_off.add(0, 1);
    }

    /// What is stored is without cookies that the origin set.
    pub fn cookies_withheld(&self) {
        self.cookies_withheld.add(0, 1);
    }

    /// A request waited long enough for somebody else's fetch.
    pub fn went_alone(&self) {
        self.went_alone.add(0, 1);
    }

    /// A client read a large body so slowly that its store let go of it: it went on from a new fetch, or was cut.
    pub fn let_go(&self, is_resumed: bool) {
        self.let_go.add(usize::from(!is_resumed), 1);
    }

    /// A request asked the origin because what is stored for it had been invalidated.
    pub fn request_invalidated(&self) {
        self.requests_invalidated.add(0, 1);
    }

    /// Something was invalidated.
    pub fn invalidated<L: Label>(&self, kind: &L) {
        debug_assert_eq!(L::TOKENS, self.vocabulary.invalidation);
        self.invalidations.add(kind.index(), 1);
    }

    /// A page was put together.
    pub fn page(&self, route: RouteId, how: PageHow) {
        if let Some(cells) = self.route(route) {
            cells.pages.add(how.index(), 1);
        }
    }

    /// So many fragments were answered from the store.
    pub fn fragment_hits(&self, rule: RuleId, count: u64) {
        if let Some(cells) = self.rule(rule) {
            cells.fragments(0, count, 1 + self.vocabulary.forward.len());
        }
    }

    /// A request for a fragment was forwarded, or joined another's fetch.
    pub fn fragment_forwarded<L: Label>(&self, rule: RuleId, reason: &L) {
        debug_assert_eq!(L::TOKENS, self.vocabulary.forward);
        if let Some(cells) = self.rule(rule) {
            cells.fragments(1 + reason.index(), 1, 1 + L::TOKENS.len());
        }
    }

    /// An include failed, whatever stands in for it.
    pub fn fragment_failed<L: Label>(&self, reason: &L) {
        debug_assert_eq!(L::TOKENS, self.vocabulary.fragment_failure);
        self.assembly.failed(reason.index());
    }

    /// Fields with cookies, so many, came with fragments and went nowhere.
    pub fn fragment_cookies_dropped(&self, count: u64) {
        self.assembly.dropped_cookies(count);
    }

    /// A page is sent from now on while parts of it are on their way.
    pub fn page_opened(&self) {
        self.assembly.opened();
    }

    /// A page that was opened is over.
    pub fn page_closed(&self) {
        self.assembly.closed();
    }

    /// For so long a page had nothing to send.
    pub fn page_waited(&self, waited: Duration) {
        self.assembly.waited(waited);
    }

    /// A template was compiled to its end.
    pub fn template_compiled<L: Label>(&self, language: &L) {
        debug_assert_eq!(L::TOKENS, self.vocabulary.language);
        self.assembly.compiled(language.index());
    }

    /// A template has a problem.
    pub fn template_problem<L: Label, F: Label>(&self, language: &L, problem: &F) {
        debug_assert_eq!(L::TOKENS, self.vocabulary.language);
        debug_assert_eq!(F::TOKENS, self.vocabulary.template_problem);
        self.assembly.problem(language.index() * self.vocabulary.template_problem.len() + problem.index());
    }

    /// An origin's final head arrived, `took` after it was asked for a request of `rule`.
    pub fn origin_answered(&self, origin: OriginId, rule: RuleId, took: Duration) {
        if let Some(cells) = self.origin(origin) {
            cells.duration.observe(took);
        }
        if let Some(cells) = self.rule(rule) {
            cells.origin_answered(took);
        }
    }

    /// To what the bytes of content are added that an origin sends for a request of `rule`. `None` for a rule that is not registered.
    pub fn received_by(&self, rule: RuleId) -> Option<Arc<AtomicU64>> {
        self.rule(rule).map(RuleCells::received)
    }

    /// How to count the tasks alive on this worker's runtime; called at each scrape, from another thread. Only the
    /// first call counts.
    pub fn watch_tasks(&self, count: impl Fn() -> usize + Send + Sync + 'static) {
        let _ = self.tasks.set(Box::new(count));
    }
}

impl fmt::Debug for WorkerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerMetrics").field("vocabulary", &self.vocabulary).finish_non_exhaustive()
    }
}
