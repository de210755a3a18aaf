//! All workers' counters and the names they count by. One per process, made at start, kept over reloads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use larder_http::time::WallTime;

use crate::label::Vocabulary;
use crate::names::{CACHES_MAX, CacheId, Names, OTHER, OriginId, RouteId, RuleId};
use crate::rules::RuleNames;
use crate::worker::{ORIGINS_MAX, ROUTES_MAX, WorkerMetrics};

/// The process's counters.
#[derive(Debug)]
pub struct Metrics {
    pub(crate) workers: Box<[Arc<WorkerMetrics>]>,
    /// What the admin's thread counts: purges.
    pub(crate) process: Arc<WorkerMetrics>,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) started: WallTime,
    pub(crate) version: &'static str,
    pub(crate) routes: Names,
    pub(crate) caches: Names,
    pub(crate) rules: RuleNames,
    pub(crate) origins: Names,
    reloads_ok: AtomicU64,
    reloads_failed: AtomicU64,
}

impl Metrics {
    /// Counters for `workers` workers (at least one). `started` and `version` are reported as they are.
    pub fn new(workers: usize, vocabulary: Vocabulary, started: WallTime, version: &'static str) -> Self {
        Self {
            workers: (0..workers.max(1)).map(|_| Arc::new(WorkerMetrics::new(vocabulary))).collect(),
            process: Arc::new(WorkerMetrics::new(vocabulary)),
            vocabulary,
            started,
            version,
            routes: Names::new(ROUTES_MAX),
            caches: Names::new(CACHES_MAX),
            rules: RuleNames::new(),
            origins: Names::new(ORIGINS_MAX),
            reloads_ok: AtomicU64::new(0),
            reloads_failed: AtomicU64::new(0),
        }
    }

    /// For how many workers.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// The counters of worker `index`, which wraps around.
    pub fn worker(&self, index: usize) -> Arc<WorkerMetrics> {
        Arc::clone(&self.workers[index % self.workers.len()])
    }

    /// The counters of the one thread beside the workers: invalidations only.
    pub fn process(&self) -> &Arc<WorkerMetrics> {
        &self.process
    }

    /// The number of a site: its name or its first host. The same name always gives the same number; beyond 1024
    /// names it is that of `other`.
    pub fn route(&self, name: &str) -> RouteId {
        RouteId(self.routes.register(name))
    }

    /// The number of a store; `other` beyond 64 names.
    pub fn cache(&self, name: &str) -> CacheId {
        CacheId(self.caches.register(name))
    }

    /// The name of a store's number.
    pub fn cache_name(&self, id: CacheId) -> Arc<str> {
        self.caches.find(id.index()).unwrap_or_else(|| OTHER.into())
    }

    /// The number of a rule of a site, for what of it concerns one store. Beyond 1024 of them it is that of `other` with this store.
    pub fn rule(&self, site: &str, rule: &str, store: CacheId) -> RuleId {
        self.rules.register(site, rule, store)
    }

    /// The number of an origin; `other` beyond 256 names.
    pub fn origin(&self, name: &str) -> OriginId {
        OriginId(self.origins.register(name))
    }

    /// A reload of the configuration ended.
    pub fn config_reloaded(&self, ok: bool) {
        let count = if ok { &self.reloads_ok } else { &self.reloads_failed };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Reloads that took effect, and those that did not.
    pub(crate) fn reloads(&self) -> (u64, u64) {
        (self.reloads_ok.load(Ordering::Relaxed), self.reloads_failed.load(Ordering::Relaxed))
    }
}
