//! The statistics of `/stats`: the counters of [`Snapshot`] in the shape that people and scripts read.
//!
//! Everything that the counters know is filled by [`Stats::of`]; the rest (what listeners count, what stores hold,
//! what runs at the origins and what failed there, the log) is added by the binary, which alone knows it. Times are
//! seconds, sizes bytes; a ratio or percentile of nothing is null.

mod figures;
mod pages;
mod rules;

use std::collections::BTreeMap;

use larder_http::time::WallTime;
use larder_observe::{Count, Snapshot};
use serde::Serialize;

use crate::health::Health;
use figures::ratio;
pub use figures::{Counts, LatencyStats};
pub use pages::PageStats;
pub use rules::RuleStats;

/// Everything that `/stats` shows.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    /// larder's version.
    pub version: String,
    /// `ok`, `degraded` or `draining`.
    pub health: &'static str,
    /// Since the start of the process.
    pub uptime_seconds: f64,
    /// Addresses that are listened on.
    pub listeners: Vec<ListenerStats>,
    /// Networks whose word on scheme, host and client is believed, as the config has them.
    pub trusted: Vec<String>,
    /// One per worker.
    pub workers: Vec<WorkerStats>,
    /// Client connections open now.
    pub connections: u64,
    /// All requests answered.
    pub requests: u64,
    /// Hits among all look-ups, 0 to 1.
    pub hit_ratio: Option<f64>,
    /// Requests that no origin was asked for: `hits` and `collapsed`.
    pub saved: u64,
    /// Requests answered with a stored response.
    pub hits: u64,
    /// Requests that joined another's fetch.
    pub collapsed: u64,
    /// Time to the end of the response, by `hit`, `forwarded` and `local`.
    pub latency: BTreeMap<&'static str, LatencyStats>,
    /// Time spent waiting for another request's fetch.
    pub collapse_wait: LatencyStats,
    /// By site.
    pub sites: Vec<SiteStats>,
    /// By rule; those that have had a request.
    pub rules: Vec<RuleStats>,
    /// By store.
    pub stores: Vec<StoreStats>,
    /// By origin.
    pub origins: Vec<OriginStats>,
    /// Pages that were put together from fragments.
    pub pages: PageStats,
    /// Responses that were not stored, by reason.
    pub not_stored: Counts,
    /// Invalidations, by kind.
    pub invalidations: Counts,
    /// Fetches that nobody waits for, by kind.
    pub refreshes: Counts,
    /// Requests that would not wait for another's fetch any longer.
    pub collapse_went_alone: u64,
    /// Requests that the listeners refused, by rule.
    pub refused: Counts,
    /// Messages for standard error that were not written.
    pub messages_dropped: u64,
    /// The access log, where there is one.
    pub log: Option<LogStats>,
}

/// An address that is listened on.
#[derive(Clone, Debug, Serialize)]
pub struct ListenerStats {
    /// Address and port.
    pub address: String,
    /// `http` or `admin`.
    pub kind: &'static str,
}

/// One worker.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerStats {
    /// Tasks alive on its runtime.
    pub tasks: usize,
}

/// One site.
#[derive(Clone, Debug, Serialize)]
pub struct SiteStats {
    /// Its name or first host.
    pub name: String,
    /// Requests answered.
    pub requests: u64,
    /// The same by class of status code; those that occurred.
    pub by_code_class: Counts,
    /// The same by method; those that occurred.
    pub by_method: Counts,
    /// Response body bytes.
    pub body_bytes: u64,
    /// Responses that were cut.
    pub aborted: u64,
}

/// One store.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StoreStats {
    /// Its name.
    pub name: String,
    /// Hits among its look-ups, 0 to 1.
    pub hit_ratio: Option<f64>,
    /// Look-ups by `hit` and forward reason.
    pub lookups: Counts,
    /// Requests that joined another's fetch.
    pub collapsed: u64,
    /// Responses stored.
    pub stored: u64,
    /// Responses given up, by reason.
    pub evictions: Counts,
    /// The mean age of those that its memory gave up for room, in seconds.
    pub evicted_age: Option<f64>,
    /// Whether it goes on without a disk, or without its directory of files.
    pub degraded: bool,
    /// What it holds.
    pub tiers: Vec<TierStats>,
    /// Servers of memcached or Redis in which it looks values up, where it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<RemoteServerStats>,
}

/// One server of values.
#[derive(Clone, Debug, Serialize)]
pub struct RemoteServerStats {
    /// `memcached` or `redis`.
    pub kind: &'static str,
    /// Its address.
    pub server: String,
    /// `up`, or `left-alone` while it fails.
    pub state: &'static str,
    /// Look-ups, by what they came to.
    pub lookups: Counts,
    /// Values and deletions, by what became of them; those that occurred.
    pub writes: Counts,
    /// Bytes that wait to be written.
    pub queued_bytes: u64,
}

/// What one tier of a store holds.
#[derive(Clone, Debug, Serialize)]
pub struct TierStats {
    /// `memory`, `disk` or `files`.
    pub tier: &'static str,
    /// The directory of the disk, or of the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// Of a disk or of files: `ok`, `no-room` where others fill its file system, `failing` while it is left alone, `absent` while
    /// it cannot be opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// Bytes held.
    pub bytes: u64,
    /// Responses held.
    pub objects: u64,
    /// The most bytes it may hold.
    pub max_bytes: u64,
    /// The most bytes it has ever held.
    pub high_water_bytes: u64,
    /// Of a disk or of files: bytes that wait to be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_bytes: Option<u64>,
    /// What it did not take, by reason; those that occurred.
    pub refused: Counts,
}

/// One origin.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OriginStats {
    /// Its name.
    pub name: String,
    /// Requests whose response has not ended.
    pub in_flight: u64,
    /// Requests that got no final head.
    pub failed: u64,
    /// The same by reason; those that occurred.
    pub failures: Counts,
    /// Time to the final head, of those that got one.
    pub latency: LatencyStats,
    /// Requests that wait for a place among those in flight.
    pub queued: u64,
    /// Connections that are open, unused ones included.
    pub connections: u64,
    /// Its servers, one for each address; those that are leaving come last.
    pub servers: Vec<ServerStats>,
}

/// One address of one server of an origin.
#[derive(Clone, Debug, Serialize)]
pub struct ServerStats {
    /// As configured.
    pub server: String,
    /// Where it is reached now.
    pub address: String,
    /// `up`, `slow-start`, `ejected`, `unhealthy` or `draining`.
    pub state: &'static str,
    /// Its full share beside the others'; 0 once it drains.
    pub weight: u32,
    /// Whether it is asked only while others cannot be.
    pub backup: bool,
    /// Requests whose response has not ended.
    pub in_flight: u64,
    /// Requests it was given.
    pub requests: u64,
    /// Requests it failed.
    pub failures: u64,
    /// Final heads by class of status code; those that occurred.
    pub by_code_class: Counts,
    /// Bytes of content that it sent.
    pub body_bytes: u64,
    /// The median time to the final head, in seconds, since it is known; at most twice too high or half too low.
    pub p50: Option<f64>,
    /// The same for the 99th percentile.
    pub p99: Option<f64>,
    /// The last health check, where there was one.
    pub check: Option<CheckStats>,
}

/// The last health check of a server.
#[derive(Clone, Debug, Serialize)]
pub struct CheckStats {
    /// How long ago it ended.
    pub seconds_ago: f64,
    /// `good`, `bad` or `not-asked`.
    pub result: &'static str,
}

/// The access log.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LogStats {
    /// Lines written.
    pub written: u64,
    /// Lines dropped.
    pub dropped: u64,
}

fn counts(counts: &[Count]) -> Counts {
    counts.iter().map(|count| (count.token, count.count)).collect()
}

fn total(counts: &[Count]) -> u64 {
    counts.iter().map(|count| count.count).sum()
}

/// Hits and all look-ups.
fn hits(lookups: &[Count]) -> (u64, u64) {
    let hits = lookups.iter().filter(|count| count.token == "hit").map(|count| count.count).sum();
    (hits, total(lookups))
}

impl Stats {
    /// What the counters know at `now`. Listeners, connections, refusals, tiers, evictions, the origins' requests in
    /// flight and failures, and the log are left empty.
    pub fn of(snapshot: &Snapshot, health: Health, now: WallTime) -> Self {
        let all = snapshot.caches.iter().map(|cache| hits(&cache.lookups));
        let all = all.fold((0, 0), |sum, store| (sum.0 + store.0, sum.1 + store.1));
        let collapsed = snapshot.caches.iter().map(|cache| cache.collapsed).sum();
        let sites: Vec<_> = snapshot.routes.iter().map(SiteStats::from).collect();
        Self {
            version: snapshot.version.to_owned(),
            health: health.as_str(),
            uptime_seconds: now.since(snapshot.started).as_secs_f64(),
            listeners: Vec::new(),
            trusted: Vec::new(),
            workers: snapshot.tasks.iter().map(|tasks| WorkerStats { tasks: *tasks }).collect(),
            connections: 0,
            requests: sites.iter().map(|site| site.requests).sum(),
            hit_ratio: ratio(all),
            saved: all.0 + collapsed,
            hits: all.0,
            collapsed,
            latency: snapshot.latency.iter().map(|(served, histogram)| (*served, histogram.into())).collect(),
            collapse_wait: (&snapshot.lock_wait).into(),
            sites,
            rules: rules::rules(snapshot),
            stores: snapshot.caches.iter().map(StoreStats::from).collect(),
            origins: snapshot.origins.iter().map(OriginStats::from).collect(),
            pages: snapshot.into(),
            not_stored: counts(&snapshot.not_stored),
            invalidations: counts(&snapshot.invalidations),
            refreshes: counts(&snapshot.refreshes),
            collapse_went_alone: snapshot.went_alone,
            refused: Counts::new(),
            messages_dropped: 0,
            log: None,
        }
    }

    /// The store of that name, to add what it holds; made where the counters do not know it.
    pub fn store(&mut self, name: &str) -> &mut StoreStats {
        let index = self.stores.iter().position(|store| store.name == name).unwrap_or_else(|| {
            self.stores.push(StoreStats { name: name.to_owned(), ..StoreStats::default() });
            self.stores.len() - 1
        });
        &mut self.stores[index]
    }

    /// The origin of that name, to add what its connections count; made where the counters do not know it.
    pub fn origin(&mut self, name: &str) -> &mut OriginStats {
        let index = self.origins.iter().position(|origin| origin.name == name).unwrap_or_else(|| {
            self.origins.push(OriginStats { name: name.to_owned(), ..OriginStats::default() });
            self.origins.len() - 1
        });
        &mut self.origins[index]
    }
}

impl From<&larder_observe::RouteSnapshot> for SiteStats {
    fn from(route: &larder_observe::RouteSnapshot) -> Self {
        let (mut by_code_class, mut by_method) = (Counts::new(), Counts::new());
        for (method, class, count) in &route.requests {
            *by_code_class.entry(*class).or_default() += count;
            *by_method.entry(*method).or_default() += count;
        }
        Self {
            name: route.name.to_string(),
            requests: by_method.values().sum(),
            by_code_class,
            by_method,
            body_bytes: route.body_bytes,
            aborted: route.aborted,
        }
    }
}

impl From<&larder_observe::CacheSnapshot> for StoreStats {
    fn from(cache: &larder_observe::CacheSnapshot) -> Self {
        Self {
            name: cache.name.to_string(),
            hit_ratio: ratio(hits(&cache.lookups)),
            lookups: counts(&cache.lookups),
            collapsed: cache.collapsed,
            stored: cache.stored,
            evictions: Counts::new(),
            evicted_age: None,
            degraded: false,
            tiers: Vec::new(),
            servers: Vec::new(),
        }
    }
}

impl From<&larder_observe::OriginSnapshot> for OriginStats {
    fn from(origin: &larder_observe::OriginSnapshot) -> Self {
        Self { name: origin.name.to_string(), latency: (&origin.duration).into(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Method, StatusCode};
    use larder_http::fields::cache_status::RequestResult;
    use larder_observe::{Label, Metrics, PageHow, Served, Vocabulary};
    use std::time::Duration;

    struct Reason(usize);

    impl Label for Reason {
        const NAME: &'static str = "reason";
        const TOKENS: &'static [&'static str] = &["uri-miss", "stale"];

        fn index(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn the_counters_are_told_in_full() {
        let vocabulary = Vocabulary::of::<Reason, Reason, Reason, Reason>();
        let vocabulary = vocabulary.with_assembly::<Reason, Reason, Reason>(&[]);
        let metrics = Metrics::new(1, vocabulary, WallTime::from_secs(10), "1.2.3");
        let (site, store, origin) = (metrics.route("shop"), metrics.cache("default"), metrics.origin("app"));
        let worker = metrics.worker(0);
        let counted = (site, metrics.rule("shop", "/blog/*", store));
        let rule = counted.1;
        worker.request(counted, &Method::GET, StatusCode::OK, RequestResult::Memory);
        worker.request(counted, &Method::HEAD, StatusCode::OK, RequestResult::Disk);
        worker.request(counted, &Method::GET, StatusCode::NOT_FOUND, RequestResult::Stale);
        worker.request(counted, &Method::GET, StatusCode::OK, RequestResult::Joined);
        worker.delivered(counted, Served::Hit, Duration::from_millis(1), 10, true);
        worker.forwarded(rule, &Reason(0));
        worker.not_stored(rule, &Reason(1));
        worker.collapsed(Duration::from_millis(3));
        worker.origin_answered(origin, rule, Duration::from_millis(4));
        worker.page(site, PageHow::Open);
        worker.page(metrics.route("docs"), PageHow::Open);
        worker.fragment_hits(rule, 1);
        worker.fragment_hits(metrics.rule("shop", "/blog/*", metrics.cache("big")), 1);
        worker.fragment_failed(&Reason(1));
        worker.fragment_cookies_dropped(3);
        worker.page_waited(Duration::from_millis(5));
        worker.template_compiled(&Reason(0));
        worker.template_problem(&Reason(0), &Reason(1));
        let mut stats = Stats::of(&metrics.snapshot(), Health::Ok, WallTime::from_secs(12));
        let tier = TierStats {
            tier: "memory",
            disk: None,
            state: None,
            bytes: 1,
            objects: 2,
            max_bytes: 3,
            high_water_bytes: 2,
            queued_bytes: None,
            refused: Counts::new(),
        };
        stats.store("default").tiers.push(tier);
        stats.store("new").stored = 1;
        stats.origin("app").in_flight = 2;
        stats.origin("new").failures.insert("dns", 1);
        let json = serde_json::to_value(&stats).unwrap();
        for (pointer, expected) in [
            ("/version", serde_json::json!("1.2.3")),
            ("/health", serde_json::json!("ok")),
            ("/uptime_seconds", serde_json::json!(2.0)),
            ("/requests", serde_json::json!(4)),
            ("/hit_ratio", serde_json::json!(0.75)),
            ("/saved", serde_json::json!(4)),
            ("/hits", serde_json::json!(3)),
            ("/collapsed", serde_json::json!(1)),
            ("/sites/0/name", serde_json::json!("shop")),
            ("/sites/0/by_method", serde_json::json!({"GET": 3, "HEAD": 1})),
            ("/sites/0/by_code_class", serde_json::json!({"2xx": 3, "4xx": 1})),
            ("/sites/0/body_bytes", serde_json::json!(10)),
            ("/rules/0/site", serde_json::json!("shop")),
            ("/rules/0/rule", serde_json::json!("/blog/*")),
            ("/rules/0/requests", serde_json::json!(4)),
            ("/rules/0/hit_ratio", serde_json::json!(0.75)),
            ("/rules/0/results", serde_json::json!({"memory": 1, "disk": 1, "stale": 1, "joined": 1})),
            ("/rules/0/forwarded", serde_json::json!({"uri-miss": 1})),
            ("/rules/0/body_bytes", serde_json::json!({"store": 10})),
            ("/rules/0/not_stored", serde_json::json!({"stale": 1})),
            ("/rules/0/origin_mean", serde_json::json!(0.004)),
            ("/stores/0/lookups", serde_json::json!({"hit": 3, "uri-miss": 1, "stale": 0})),
            ("/stores/0/tiers/0/max_bytes", serde_json::json!(3)),
            ("/stores/0/tiers/0/high_water_bytes", serde_json::json!(2)),
            ("/stores/2/name", serde_json::json!("new")),
            ("/origins/0/latency/count", serde_json::json!(1)),
            ("/origins/0/in_flight", serde_json::json!(2)),
            ("/origins/0/failures", serde_json::json!({})),
            ("/origins/1/name", serde_json::json!("new")),
            ("/origins/1/failures", serde_json::json!({"dns": 1})),
            ("/latency/hit/count", serde_json::json!(1)),
            ("/latency/hit/mean", serde_json::json!(0.001)),
            ("/latency/local/p99", serde_json::Value::Null),
            ("/pages/by_how", serde_json::json!({"kept": 0, "whole": 0, "open": 2})),
            ("/pages/fragments", serde_json::json!({"hit": 2})),
            ("/pages/failures", serde_json::json!({"stale": 1})),
            ("/pages/cookies_dropped", serde_json::json!(3)),
            ("/pages/wait/count", serde_json::json!(1)),
            ("/pages/templates", serde_json::json!({"uri-miss": 1})),
            ("/pages/problems", serde_json::json!({"uri-miss": {"stale": 1}})),
            ("/log", serde_json::Value::Null),
        ] {
            assert_eq!(json.pointer(pointer), Some(&expected), "{pointer}");
        }
        assert_eq!(stats.rules.len(), 1, "a rule with two stores is one");
    }

    #[test]
    fn a_ratio_of_nothing_is_null() {
        let metrics = Metrics::new(1, Vocabulary::default(), WallTime(0), "1");
        metrics.cache("default");
        let stats = Stats::of(&metrics.snapshot(), Health::Draining, WallTime(0));
        assert_eq!((stats.hit_ratio, stats.stores[0].hit_ratio, stats.health), (None, None, "draining"));
    }
}
