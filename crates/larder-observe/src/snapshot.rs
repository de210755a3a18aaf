//! The sums over all workers at one moment, for `/metrics` and `/stats`.
//!
//! Reading takes no lock that a worker could wait for. Counts by site leave out the combinations that never occurred;
//! counts by reason are all there, zeros included, so that a rate exists before the first event.

use std::sync::{Arc, OnceLock};

use larder_http::time::WallTime;

use crate::assembly::{AssemblySnapshot, PageHow};
use crate::cells::Cells;
use crate::exposition::Exposition;
use crate::family;
use crate::histogram::HistogramSnapshot;
use crate::label::{CodeClass, Label, MethodLabel, Served, Vocabulary};
use crate::metrics::Metrics;
use crate::rules::RuleSnapshot;
use crate::sums::{Count, add_counts, counts, sum, sum_histograms};
use crate::worker::{ABORTED, BODY_BYTES, LET_GO, REQUEST_PLACES, WorkerMetrics};

/// One site.
#[derive(Clone, Debug)]
pub struct RouteSnapshot {
    /// As registered.
    pub name: Arc<str>,
    /// Method, class of status code, requests; those that occurred.
    pub requests: Vec<(&'static str, &'static str, u64)>,
    /// Response body bytes handed to the kernel.
    pub body_bytes: u64,
    /// Responses that were cut.
    pub aborted: u64,
    /// Pages that were put together, by how; empty where there was none.
    pub pages: Vec<Count>,
}

/// One store, as far as requests are concerned.
#[derive(Clone, Debug)]
pub struct CacheSnapshot {
    /// As registered.
    pub name: Arc<str>,
    /// `hit`, then every forward reason.
    pub lookups: Vec<Count>,
    /// Requests that joined another's fetch.
    pub collapsed: u64,
    /// Responses stored.
    pub stored: u64,
    /// Hits that were files which somebody put there.
    pub by_hand: u64,
    /// What pages asked for: `hit`, then every forward reason.
    pub fragments: Vec<Count>,
    /// Requests that found nothing under their URL, by what became of it.
    pub before: Vec<Count>,
}

/// One origin. Its exchanges in flight and its errors are counted by larder-origin, which sees where they end.
#[derive(Clone, Debug)]
pub struct OriginSnapshot {
    /// As registered.
    pub name: Arc<str>,
    /// Until the final head.
    pub duration: HistogramSnapshot,
}

/// Everything that is counted.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When the process started.
    pub started: WallTime,
    /// larder's version.
    pub version: &'static str,
    /// Sites; `other` only where something was counted under it.
    pub routes: Vec<RouteSnapshot>,
    /// Rules, each with one of its stores; likewise.
    pub rules: Vec<RuleSnapshot>,
    /// Stores: sums over the rules. `other` only where a rule counts under it.
    pub caches: Vec<CacheSnapshot>,
    /// Origins; likewise.
    pub origins: Vec<OriginSnapshot>,
    /// Time to the end of the response, by where it came from.
    pub latency: Vec<(&'static str, HistogramSnapshot)>,
    /// Time spent waiting for another's fetch.
    pub lock_wait: HistogramSnapshot,
    /// By reason.
    pub not_stored: Vec<Count>,
    /// By kind.
    pub invalidations: Vec<Count>,
    /// Fetches that nobody waits for, by kind.
    pub refreshes: Vec<Count>,
    /// Requests that would not wait for another's fetch any longer.
    pub went_alone: u64,
    /// Clients that read a large body so slowly that its store let go of it, by what became of them.
    pub let_go: Vec<Count>,
    /// Requests that found something invalidated.
    pub requests_invalidated: u64,
    /// Fetches that nobody waits for and that did not begin.
    pub refreshes_put_off: u64,
    /// Answers with cookies for their own client alone, whose stored responses are without them.
    pub cookies_withheld: u64,
    /// Pages that were put together.
    pub assembly: AssemblySnapshot,
    /// Tasks alive, by worker; 0 where a worker does not tell.
    pub tasks: Vec<usize>,
    /// Reloads that took effect, and those that did not.
    pub reloads: (u64, u64),
}

/// For each name, the cells that workers have made for it. The name `other` is skipped while it has none.
fn slots<'a, T: 'a, N>(
    workers: &'a [Arc<WorkerMetrics>],
    names: Vec<N>,
    of: impl Fn(&'a WorkerMetrics) -> &'a [OnceLock<Box<T>>],
) -> Vec<(N, Vec<&'a T>)> {
    let mut rows = Vec::with_capacity(names.len());
    for (index, name) in names.into_iter().enumerate() {
        let made = workers.iter().filter_map(|worker| of(worker).get(index)?.get().map(|cells| &**cells));
        let cells: Vec<_> = made.collect();
        if index > 0 || !cells.is_empty() {
            rows.push((name, cells));
        }
    }
    rows
}

impl Metrics {
    /// The sums over all workers. Numbers that belong together may be one event apart.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(self)
    }

    /// Adds every family that is counted here, and those about the process.
    pub fn expose(&self, out: &mut Exposition) {
        self.snapshot().expose(out);
        crate::process::expose(out);
    }
}

impl Snapshot {
    pub(crate) fn of(metrics: &Metrics) -> Self {
        let Metrics { workers, vocabulary, .. } = metrics;
        let routes = slots(workers, metrics.routes.all(), |w| &w.routes).into_iter().map(|(name, cells)| {
            let sums = sum(cells.iter().map(|c| &c.requests), REQUEST_PLACES);
            let flow = sum(cells.iter().map(|c| &c.flow), 2);
            let places =
                MethodLabel::TOKENS.iter().flat_map(|m| CodeClass::TOKENS.iter().map(move |c| (*m, *c)));
            let requests = places.zip(sums).filter(|(_, n)| *n > 0).map(|((m, c), n)| (m, c, n)).collect();
            let how = sum(cells.iter().map(|c| &c.pages), PageHow::TOKENS.len());
            let has_pages = how.iter().any(|n| *n > 0);
            let pages = if has_pages { counts(PageHow::TOKENS.iter().copied(), how) } else { Vec::new() };
            RouteSnapshot { name, requests, body_bytes: flow[BODY_BYTES], aborted: flow[ABORTED], pages }
        });
        let rules: Vec<RuleSnapshot> = slots(workers, metrics.rules.all(), |w| &w.rules)
            .into_iter()
            .map(|(name, cells)| RuleSnapshot::of(name, &cells, vocabulary))
            .collect();
        let caches = CacheSnapshot::all(metrics.caches.all(), &rules, vocabulary);
        let not_stored = RuleSnapshot::all_not_stored(&rules, vocabulary.not_stored);
        let origins =
            slots(workers, metrics.origins.all(), |w| &w.origins).into_iter().map(|(name, cells)| {
                OriginSnapshot { name, duration: sum_histograms(cells.iter().map(|c| &c.duration)) }
            });
        let by_reason = |tokens: &'static [&'static str], of: fn(&WorkerMetrics) -> &Cells| {
            let all = workers.iter().chain(std::iter::once(&metrics.process));
            counts(tokens.iter().copied(), sum(all.map(|w| of(w)), tokens.len()))
        };
        let served = Served::TOKENS.iter().enumerate();
        Self {
            started: metrics.started,
            version: metrics.version,
            routes: routes.collect(),
            rules,
            caches,
            origins: origins.collect(),
            latency: served
                .map(|(i, t)| (*t, sum_histograms(workers.iter().map(|w| &w.latency[i]))))
                .collect(),
            lock_wait: sum_histograms(workers.iter().map(|w| &w.lock_wait)),
            not_stored,
            invalidations: by_reason(vocabulary.invalidation, |w| &w.invalidations),
            refreshes: by_reason(vocabulary.refresh, |w| &w.refreshes),
            requests_invalidated: sum(workers.iter().map(|w| &w.requests_invalidated), 1)[0],
            went_alone: sum(workers.iter().map(|w| &w.went_alone), 1)[0],
            let_go: by_reason(&LET_GO, |w| &w.let_go),
            refreshes_put_off: sum(workers.iter().map(|w| &w.put_off), 1)[0],
            cookies_withheld: sum(workers.iter().map(|w| &w.cookies_withheld), 1)[0],
            assembly: {
                let cells: Vec<_> = workers.iter().map(|worker| &worker.assembly).collect();
                AssemblySnapshot::of(&cells, vocabulary)
            },
            tasks: workers.iter().map(|w| w.tasks.get().map_or(0, |count| count())).collect(),
            reloads: metrics.reloads(),
        }
    }

    /// The rules, each with all its stores.
    pub fn by_rule(&self) -> Vec<RuleSnapshot> {
        RuleSnapshot::by_name(&self.rules)
    }

    /// Adds every family that is counted by larder's workers.
    pub fn expose(&self, out: &mut Exposition) {
        let mut by_reason = |family: &family::Family, counts: &[Count]| {
            let mut samples = out.family(family);
            for Count { token, count } in counts {
                samples.value(&[(family.labels[0], token)], *count);
            }
        };
        by_reason(&family::NOT_STORED, &self.not_stored);
        by_reason(&family::INVALIDATIONS, &self.invalidations);
        by_reason(&family::REFRESHES, &self.refreshes);
        by_reason(&family::LET_GO, &self.let_go);
        out.family(&family::INVALIDATED).value(&[], self.requests_invalidated);
        out.family(&family::COLLAPSE_ALONE).value(&[], self.went_alone);
        out.family(&family::REFRESHES_PUT_OFF).value(&[], self.refreshes_put_off);
        out.family(&family::COOKIES_WITHHELD).value(&[], self.cookies_withheld);
        self.assembly.expose(out);
        self.routes.iter().for_each(|route| route.expose(out));
        self.caches.iter().for_each(|cache| cache.expose(out));
        self.by_rule().iter().for_each(|rule| rule.expose(out));
        self.origins.iter().for_each(|origin| origin.expose(out));
        for (served, histogram) in &self.latency {
            out.family(&family::REQUEST_SECONDS).histogram(&[("served", served)], histogram);
        }
        out.family(&family::LOCK_WAIT_SECONDS).histogram(&[], &self.lock_wait);
        for (worker, tasks) in self.tasks.iter().enumerate() {
            out.family(&family::TASKS).value(&[("worker", &worker.to_string())], *tasks);
        }
        let (ok, failed) = self.reloads;
        out.family(&family::CONFIG_RELOADS)
            .value(&[("result", "ok")], ok)
            .value(&[("result", "error")], failed);
        out.family(&family::BUILD_INFO).value(&[("version", self.version)], 1_u64);
        out.family(&family::PROCESS_START_SECONDS).value(&[], self.started.0 as f64 / 1e3);
    }
}

impl RouteSnapshot {
    fn expose(&self, out: &mut Exposition) {
        let route = ("site", &*self.name);
        for (method, class, count) in &self.requests {
            out.family(&family::REQUESTS).value(&[route, ("method", method), ("code_class", class)], *count);
        }
        out.family(&family::RESPONSE_BYTES).value(&[route], self.body_bytes);
        out.family(&family::RESPONSES_ABORTED).value(&[route], self.aborted);
        for Count { token, count } in &self.pages {
            out.family(&family::PAGES).value(&[route, ("how", token)], *count);
        }
    }
}

impl CacheSnapshot {
    /// The sums over the rules of each store.
    fn all(names: Vec<Arc<str>>, rules: &[RuleSnapshot], vocabulary: &Vocabulary) -> Vec<Self> {
        let outcomes = || std::iter::once("hit").chain(vocabulary.forward.iter().copied());
        let none = || outcomes().map(Count::none).collect();
        let mut caches = Vec::with_capacity(names.len());
        for (index, name) in names.into_iter().enumerate() {
            let of_store = || rules.iter().filter(|rule| rule.store.index() == index);
            if index == 0 && of_store().next().is_none() {
                continue;
            }
            let mut lookups: Vec<Count> = none();
            let mut fragments: Vec<Count> = none();
            let mut before: Vec<Count> = vocabulary.before.iter().copied().map(Count::none).collect();
            for rule in of_store() {
                if let Some((hits, forwarded)) = lookups.split_first_mut() {
                    hits.count += rule.hits();
                    add_counts(forwarded, &rule.forwarded);
                }
                add_counts(&mut fragments, &rule.fragments);
                add_counts(&mut before, &rule.before);
            }
            let total = |of: fn(&RuleSnapshot) -> u64| of_store().map(of).sum();
            caches.push(Self {
                name,
                lookups,
                collapsed: total(RuleSnapshot::joined),
                stored: total(|rule| rule.stored),
                by_hand: total(|rule| rule.by_hand),
                fragments,
                before,
            });
        }
        caches
    }

    fn expose(&self, out: &mut Exposition) {
        let cache = ("store", &*self.name);
        for Count { token, count } in &self.lookups {
            out.family(&family::LOOKUPS).value(&[cache, ("status", token)], *count);
        }
        for Count { token, count } in &self.before {
            out.family(&family::MISSES).value(&[cache, ("before", token)], *count);
        }
        out.family(&family::COLLAPSED).value(&[cache], self.collapsed);
        out.family(&family::STORED).value(&[cache], self.stored);
        out.family(&family::FILES_BY_HAND).value(&[cache], self.by_hand);
        for Count { token, count } in &self.fragments {
            out.family(&family::FRAGMENTS).value(&[cache, ("status", token)], *count);
        }
    }
}

impl OriginSnapshot {
    fn expose(&self, out: &mut Exposition) {
        let upstream = ("origin", &*self.name);
        out.family(&family::ORIGIN_SECONDS).histogram(&[upstream], &self.duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Method, StatusCode};
    use larder_http::fields::cache_status::RequestResult;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    struct Reason(usize);

    impl Label for Reason {
        const NAME: &'static str = "reason";
        const TOKENS: &'static [&'static str] = &["uri-miss", "stale"];

        fn index(&self) -> usize {
            self.0
        }
    }

    fn metrics() -> Metrics {
        let vocabulary = Vocabulary::of::<Reason, Reason, Reason, Reason>();
        Metrics::new(2, vocabulary, WallTime(1500), "1.2.3")
    }

    #[test]
    fn workers_are_summed_by_name_and_reason() {
        let metrics = metrics();
        let (a, b) = (metrics.worker(0), metrics.worker(1));
        let (route, cache, origin) = (metrics.route("shop"), metrics.cache("default"), metrics.origin("app"));
        let rule = metrics.rule("shop", "/a/*", cache);
        let elsewhere = metrics.rule("shop", "/a/*", metrics.cache("media"));
        for (worker, result) in [(&a, RequestResult::Memory), (&b, RequestResult::Stale)] {
            worker.request((route, rule), &Method::GET, StatusCode::OK, result);
            worker.request((route, rule), &Method::GET, StatusCode::OK, RequestResult::Joined);
            worker.forwarded(rule, &Reason(1));
            worker.not_stored(rule, &Reason(0));
            worker.delivered((route, rule), Served::Hit, Duration::from_millis(2), 100, false);
        }
        a.collapsed(Duration::from_millis(3));
        a.stored(rule);
        a.stored(elsewhere);
        b.by_hand(rule);
        b.origin_answered(origin, rule, Duration::from_millis(4));
        for (worker, rule, bytes) in [(&a, rule, 30), (&b, rule, 4), (&b, elsewhere, 5)] {
            worker.received_by(rule).unwrap().fetch_add(bytes, Ordering::Relaxed);
        }
        a.fragment_hits(rule, 3);
        b.fragment_forwarded(rule, &Reason(0));
        a.watch_tasks(|| 7);
        let snapshot = metrics.snapshot();
        assert_eq!(snapshot.routes.len(), 1);
        assert_eq!(snapshot.routes[0].requests, [("GET", "2xx", 4)]);
        assert_eq!((snapshot.routes[0].body_bytes, snapshot.routes[0].aborted), (200, 2));
        assert_eq!(snapshot.caches[0].lookups.iter().map(|c| c.count).collect::<Vec<_>>(), [2, 0, 2]);
        let of_cache = &snapshot.caches[0];
        assert_eq!((of_cache.collapsed, of_cache.stored, of_cache.by_hand), (2, 1, 1));
        assert_eq!(of_cache.fragments.iter().map(|c| c.count).collect::<Vec<_>>(), [3, 1, 0]);
        assert_eq!((&*snapshot.caches[1].name, snapshot.caches[1].stored), ("media", 1));
        assert_eq!(snapshot.not_stored.iter().map(|c| c.count).collect::<Vec<_>>(), [2, 0]);
        let rules = snapshot.by_rule();
        assert_eq!(rules.len(), 1, "a rule with two stores is one");
        let rule = &rules[0];
        assert_eq!((rule.requests(), rule.hits(), rule.joined(), rule.asked(), rule.stored), (4, 2, 2, 0, 2));
        assert_eq!((rule.origin_answers, rule.origin_time), (1, Duration::from_millis(4)));
        assert_eq!(rule.received, 39);
        assert_eq!(rule.bytes.iter().map(|c| c.count).collect::<Vec<_>>(), [200, 0, 0]);
        assert_eq!(snapshot.origins[0].duration.count(), 1);
        assert_eq!(snapshot.latency[0].1.count(), 2);
        assert_eq!(snapshot.tasks, [7, 0]);
    }

    #[test]
    fn a_registered_name_is_exposed_before_its_first_event_and_other_only_after() {
        let metrics = metrics();
        metrics.cache("default");
        let text = |metrics: &Metrics| {
            let mut out = Exposition::default();
            metrics.expose(&mut out);
            out.finish()
        };
        let before = text(&metrics);
        assert!(
            before.contains("larder_cache_lookups_total{store=\"default\",status=\"hit\"} 0\n"),
            "{before}"
        );
        assert!(before.contains("larder_build_info{version=\"1.2.3\"} 1\n"), "{before}");
        assert!(before.contains("process_start_time_seconds 1.5\n"), "{before}");
        assert!(before.contains("process_resident_memory_bytes "), "{before}");
        assert!(!before.contains("\"other\""), "{before}");
        let (method, status) = (Method::POST, StatusCode::NOT_FOUND);
        metrics.worker(0).request(Default::default(), &method, status, RequestResult::Own);
        let after = text(&metrics);
        assert!(
            after.contains("larder_requests_total{site=\"other\",method=\"POST\",code_class=\"4xx\"} 1\n")
        );
    }

    #[test]
    fn every_exposed_family_is_declared_with_these_labels() {
        let metrics = metrics();
        let (route, cache, origin) = (metrics.route("s"), metrics.cache("c"), metrics.origin("o"));
        let worker = metrics.worker(0);
        let rule = metrics.rule("s", "r", cache);
        worker.request((route, rule), &Method::GET, StatusCode::OK, RequestResult::Memory);
        worker.page(route, PageHow::Kept);
        worker.origin_answered(origin, rule, Duration::ZERO);
        worker.forwarded(rule, &Reason(0));
        worker.not_stored(rule, &Reason(0));
        worker.stored(rule);
        worker.delivered((route, rule), Served::Forwarded, Duration::ZERO, 1, true);
        let mut out = Exposition::default();
        metrics.expose(&mut out);
        let text = out.finish();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            let stem = |n: &str| {
                ["_bucket", "_sum", "_count"].iter().find_map(|s| n.strip_suffix(s)).map(str::to_owned)
            };
            let declared =
                family::ALL.iter().find(|f| f.name == name || Some(f.name) == stem(name).as_deref());
            let declared = declared.unwrap_or_else(|| panic!("undeclared: {line}"));
            for label in declared.labels {
                assert!(line.contains(&format!("{label}=\"")), "{label} missing: {line}");
            }
        }
    }
}
