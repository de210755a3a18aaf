//! One worker's part: its plan, its connections to origins, its counters and the objects that it is asked for most.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use larder_observe::WorkerMetrics;
use larder_observe::tap::Tap;
use larder_origin::{Origin, SetupError};
use larder_store::HotCache;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use crate::assemble::KeptPages;
use crate::plan::Plan;
use crate::proxy::Proxy;
use crate::worker_plan::WorkerPlan;

/// Before an origin is looked after again whose tending has panicked.
const TENDING_PAUSE: Duration = Duration::from_secs(1);

/// A plan that one worker is ready to take over.
pub struct Prepared(Arc<WorkerPlan>);

/// One worker's part: its connections to origins and its counters.
pub struct Worker {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) metrics: Arc<WorkerMetrics>,
    /// Where samples of exchanges go.
    pub(crate) tap: Arc<Tap>,
    pub(crate) index: usize,
    pub(crate) worker_plan: ArcSwap<WorkerPlan>,
    /// Its own handles of what it is asked for most.
    pub(crate) hot: HotCache,
    /// Its own handles of pages that it is asked for most.
    pub(crate) kept_pages: KeptPages,
    /// Another plan has been taken over.
    adopted: Notify,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl Worker {
    /// Worker `index` of `proxy`, with connections of its own to every origin of `plan`.
    ///
    /// # Errors
    /// An origin's TLS cannot be set up.
    pub fn new(proxy: &Arc<Proxy>, index: usize, plan: Arc<Plan>) -> Result<Self, SetupError> {
        proxy.purges.limit(plan.purges);
        let worker_plan = WorkerPlan::new(plan, None)?;
        Ok(Self {
            proxy: Arc::clone(proxy),
            metrics: proxy.metrics.worker(index),
            tap: Arc::clone(proxy.tap()),
            index,
            worker_plan: ArcSwap::from_pointee(worker_plan),
            hot: HotCache::new(proxy.metrics.workers()),
            kept_pages: KeptPages::default(),
            adopted: Notify::new(),
        })
    }

    /// Makes everything that a new plan needs, without using it yet. Connections to origins that did not change are
    /// kept.
    ///
    /// # Errors
    /// An origin's TLS cannot be set up.
    pub fn prepare(&self, plan: Arc<Plan>) -> Result<Prepared, SetupError> {
        let before = self.worker_plan.load_full();
        Ok(Prepared(Arc::new(WorkerPlan::new(plan, Some(&before))?)))
    }

    /// Takes over what was prepared, for requests from now on.
    pub fn adopt(&self, prepared: Prepared) {
        self.proxy.purges.limit(prepared.0.plan.purges);
        self.worker_plan.store(prepared.0);
        self.kept_pages.forget_all();
        self.adopted.notify_one();
    }

    /// Looks after the origins of the plan in force: their health, their names. Those that a new plan keeps are looked
    /// after without a break. Never ends; for one worker of the process.
    ///
    /// # Cancel safety
    /// Ends all of it.
    pub async fn tend_origins(&self) {
        // Dropped with the future, and the tasks with it.
        let mut tasks = JoinSet::new();
        let mut tended: Vec<(Arc<Origin>, AbortHandle)> = Vec::new();
        loop {
            let worker_plan = self.worker_plan.load_full();
            tended.retain(|(origin, task)| {
                let is_in_force = worker_plan.origins().iter().any(|(_, other)| Arc::ptr_eq(origin, other));
                if !is_in_force {
                    task.abort();
                }
                is_in_force && !task.is_finished()
            });
            // What has ended is gone before the next begins, so that an origin's old checks say nothing after its new.
            while tasks.len() > tended.len() {
                let _ = tasks.join_next().await;
            }
            for (_, origin) in worker_plan.origins() {
                if !tended.iter().any(|(other, _)| Arc::ptr_eq(origin, other)) {
                    let tending = Arc::clone(origin);
                    let task = tasks.spawn(async move { tending.tend().await });
                    tended.push((Arc::clone(origin), task));
                }
            }
            drop(worker_plan);
            tokio::select! {
                () = self.adopted.notified() => {}
                // It has panicked, and is begun again.
                Some(_) = tasks.join_next() => tokio::time::sleep(TENDING_PAUSE).await,
            }
        }
    }

    /// Resolves every origin's names once. Returns what could not be resolved, for a warning.
    pub async fn probe_origins(&self) -> Vec<(String, String)> {
        let worker_plan = self.worker_plan.load_full();
        let mut unresolved = Vec::new();
        for (choice, origin) in worker_plan.origins() {
            for failed in origin.probe().await {
                unresolved
                    .push((choice.settings.name.clone(), format!("{}: {}", failed.server, failed.error)));
            }
        }
        unresolved
    }
}
