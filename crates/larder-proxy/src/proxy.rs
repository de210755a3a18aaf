//! What lives as long as the process, what each worker has of its own, and the service between the two.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use larder_http::message::{Delivery, Peer, Request};
use larder_http::time::Clock;
use larder_listen::{Interims, Refusal, Service};
use larder_observe::{
    AccessLog, CacheId, Diagnostics, Ending, Format, LogLine, LogRecord, Metrics, WorkerMetrics,
};
use larder_origin::{Origin, SetupError};
use larder_store::store::Admit;
use larder_store::{CacheKey, HotCache, Store};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use crate::background::Background;
use crate::collapse::Flights;
use crate::exchange::NotStored;
use crate::failure::TurnedAway;
use crate::invalidation::{Heard, Invalidations, Joined, Reach, durable};
use crate::losses::{Losses, Lost};
use crate::plan::Plan;
use crate::receipt::Receipt;
use crate::route::Site;
use crate::serve::Serving;
use crate::settings::{OriginChoice, ProxySettings};
use crate::uses::Uses;

/// Before an origin is looked after again whose tending has panicked.
const TENDING_PAUSE: Duration = Duration::from_secs(1);

const NO_LOG: u8 = u8::MAX;
const JSON: u8 = Format::Json as u8;
const COMBINED: u8 = Format::Combined as u8;

/// What all workers share, for the life of the process.
pub struct Proxy {
    pub(crate) clock: Clock,
    pub(crate) flights: Arc<Flights>,
    pub(crate) invalidations: Invalidations,
    /// Every store that is in use, be it by requests of a config that is not in force any more.
    pub(crate) reach: Arc<Reach>,
    pub(crate) uses: Uses,
    /// What was not stored lately.
    pub(crate) losses: Losses,
    /// Fetches under way that nobody waits for.
    pub(crate) background: Background,
    access_log: ArcSwapOption<AccessLog>,
    /// How the lines of the log look, [`NO_LOG`] without one: all that most exchanges ask.
    log_format: AtomicU8,
    pub(crate) metrics: Arc<Metrics>,
    diagnostics: Diagnostics,
    pub(crate) turned_away: TurnedAway,
}

/// Figures that must come back to where they were when nothing is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    /// Origin fetches of GET and HEAD in flight.
    pub flights: u64,
    /// Clients that wait for one of them.
    pub waiting: u64,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
}

impl Proxy {
    /// A proxy without workers yet.
    pub fn new(clock: Clock, metrics: Arc<Metrics>, diagnostics: Diagnostics) -> Arc<Self> {
        Arc::new(Self {
            clock,
            flights: Flights::new(ProxySettings::WAITERS_PER_KEY),
            invalidations: Invalidations::default(),
            reach: Arc::default(),
            uses: Uses::default(),
            losses: Losses::default(),
            background: Background::default(),
            access_log: ArcSwapOption::empty(),
            log_format: AtomicU8::new(NO_LOG),
            metrics,
            diagnostics,
            turned_away: TurnedAway::default(),
        })
    }

    /// How often requests were turned away before they had a site, by the word of `Cache-Status` and the log.
    pub fn turned_away(&self, visit: impl FnMut(&'static str, u64)) {
        self.turned_away.for_each(visit);
    }

    /// Where finished exchanges are logged from now on.
    pub fn log_to(&self, access_log: Option<Arc<AccessLog>>) {
        let format = access_log.as_ref().map_or(NO_LOG, |log| log.format() as u8);
        self.log_format.store(format, Ordering::Relaxed);
        self.access_log.store(access_log);
    }

    /// How a line is to look that is begun now, where there is a log.
    pub(crate) fn log_format(&self) -> Option<Format> {
        match self.log_format.load(Ordering::Relaxed) {
            JSON => Some(Format::Json),
            COMBINED => Some(Format::Combined),
            _ => None,
        }
    }

    pub(crate) fn access_log(&self) -> Guard<Option<Arc<AccessLog>>> {
        self.access_log.load()
    }

    /// Writes a line of the access log, where there is one. From any worker, or none.
    pub(crate) fn log(&self, worker: usize, line: LogLine, ending: &Ending) {
        if let Some(log) = self.access_log().as_ref() {
            log.write(worker, line, ending);
        }
    }

    /// The name of a store.
    pub(crate) fn store_name(&self, id: CacheId) -> Arc<str> {
        self.metrics.cache_name(id)
    }

    /// Tells the operator of an origin's failure; floods of the same one are thinned out.
    pub(crate) fn complain(&self, origin: &str, error: &larder_origin::OriginError) {
        self.diagnostics.warn(error.token(), origin, format_args!("origin {origin}: {error}"));
    }

    /// What became of a response that might be stored under `key`. What a store did not take is said once for each reason.
    pub(crate) fn note_outcome(&self, store: CacheId, key: &CacheKey, outcome: Result<(), NotStored>) {
        let Err(why) = outcome else { return self.losses.forget(|| key.full_hash()) };
        let is_news = self.losses.note(key.full_hash(), store, Lost { why, at: self.clock.now().wall });
        if let Some(sentence) = why.says_of_store().filter(|_| is_news) {
            let (name, url) = (self.store_name(store), key.base().escape_ascii());
            let what = format_args!("store {name} did not store {url}: {}: {sentence}", why.token());
            self.diagnostics.warn("not-stored", &format!("{name} {}", why.token()), what);
        }
    }

    /// Tells the operator, once per site and config, that clients ask for WebSockets which the site does not pass on.
    pub(crate) fn complain_of_upgrade(&self, site: &Site) {
        if site.has_refused_upgrade.swap(true, Ordering::Relaxed) {
            return;
        }
        let name = &site.settings.name;
        self.diagnostics.warn(
            "websocket-off",
            name,
            format_args!(
                "site {name}: a client asked for a WebSocket, and got an ordinary answer; `websocket = true` in the site passes them on"
            ),
        );
    }

    /// Has invalidations reach these stores from now on, opens the disks of those that are new, and takes over what they and
    /// directories of files remember: the numbers of invalidations, and which groups went. One that has not heard of
    /// everything that was invalidated since larder started is not believed; `heard` says how far each has that was open before. Waits for the
    /// disks. Before anything is asked of the stores.
    pub fn recover(self: &Arc<Self>, stores: &[Arc<Store>], heard: &dyn Fn(&Arc<Store>) -> Heard) {
        let readmit: Arc<Admit> = {
            let proxy = Arc::downgrade(self);
            Arc::new(move |last, notes| {
                proxy
                    .upgrade()
                    .map(|proxy| durable::readmit(&proxy.invalidations, last, notes, proxy.clock.now()))
            })
        };
        for Joined { store, is_believed } in self.reach.join(stores, heard) {
            store.open(&readmit, is_believed);
        }
    }

    /// Which stores there are, for whoever closes one.
    pub fn reach(&self) -> &Arc<Reach> {
        &self.reach
    }

    /// Has the disks of these stores tried again that are absent, off the workers; what one knows that is back is taken over before
    /// it is used. To be called every second.
    pub fn try_absent_disks<'a>(self: &Arc<Self>, stores: impl Iterator<Item = &'a Arc<Store>>) {
        let proxy = Arc::clone(self);
        let admit: Arc<Admit> =
            Arc::new(move |last, notes| durable::admit(&proxy.invalidations, last, notes, proxy.clock.now()));
        stores.for_each(|store| store.try_absent(&admit));
    }

    /// Figures at this moment.
    pub fn gauges(&self) -> Gauges {
        Gauges { flights: self.flights.len() as u64, waiting: self.flights.waiting() as u64 }
    }

    /// Worker `index`, with connections of its own to every origin of `plan`.
    ///
    /// # Errors
    /// An origin's TLS cannot be set up.
    pub fn worker(self: &Arc<Self>, index: usize, plan: Arc<Plan>) -> Result<Worker, SetupError> {
        let worker_plan = WorkerPlan::new(plan, None)?;
        Ok(Worker {
            proxy: Arc::clone(self),
            metrics: self.metrics.worker(index),
            index,
            worker_plan: ArcSwap::from_pointee(worker_plan),
            hot: HotCache::new(self.metrics.workers()),
            adopted: Notify::new(),
        })
    }
}

/// A plan with this worker's connections.
pub(crate) struct WorkerPlan {
    pub(crate) plan: Arc<Plan>,
    origins: Vec<(OriginChoice, Arc<Origin>)>,
}

impl WorkerPlan {
    fn new(plan: Arc<Plan>, before: Option<&Self>) -> Result<Self, SetupError> {
        let origins = plan.origins.iter().map(|choice| {
            let kept = before.and_then(|before| {
                before.origins.iter().find(|(old, _)| Arc::ptr_eq(&old.settings, &choice.settings))
            });
            let origin = match kept {
                Some((_, origin)) => Arc::clone(origin),
                None => Arc::new(Origin::new(Arc::clone(&choice.settings), Arc::clone(&choice.shared))?),
            };
            Ok::<_, SetupError>((choice.clone(), origin))
        });
        Ok(Self { origins: origins.collect::<Result<_, _>>()?, plan })
    }

    /// Whether an origin is known to be out of reach.
    pub(crate) fn is_down(&self, index: usize) -> bool {
        self.origin(index).is_some_and(|(_, origin)| origin.is_down())
    }

    /// Whether an origin has time for a request that nobody waits for: it is there, or may be there again, and no client
    /// queues for it.
    pub(crate) fn has_prospect(&self, index: usize) -> bool {
        let has = |origin: &Origin| !origin.is_queueing() && (!origin.is_down() || origin.is_probe_due());
        self.origin(index).is_none_or(|(_, origin)| has(origin))
    }

    pub(crate) fn choice(&self, index: usize) -> Option<&OriginChoice> {
        self.origins.get(index).map(|(choice, _)| choice)
    }

    pub(crate) fn origin(&self, index: usize) -> Option<&(OriginChoice, Arc<Origin>)> {
        self.origins.get(index)
    }
}

/// A plan that one worker is ready to take over.
pub struct Prepared(Arc<WorkerPlan>);

/// One worker's part: its connections to origins and its counters.
pub struct Worker {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) metrics: Arc<WorkerMetrics>,
    pub(crate) index: usize,
    pub(crate) worker_plan: ArcSwap<WorkerPlan>,
    /// Its own handles of what it is asked for most.
    pub(crate) hot: HotCache,
    /// Another plan has been taken over.
    adopted: Notify,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl Worker {
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
        self.worker_plan.store(prepared.0);
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
                let is_in_force = worker_plan.origins.iter().any(|(_, other)| Arc::ptr_eq(origin, other));
                if !is_in_force {
                    task.abort();
                }
                is_in_force && !task.is_finished()
            });
            // What has ended is gone before the next begins, so that an origin's old checks say nothing after its new.
            while tasks.len() > tended.len() {
                let _ = tasks.join_next().await;
            }
            for (_, origin) in &worker_plan.origins {
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
        for (choice, origin) in &worker_plan.origins {
            for failed in origin.probe().await {
                unresolved
                    .push((choice.settings.name.clone(), format!("{}: {}", failed.server, failed.error)));
            }
        }
        unresolved
    }
}

/// The listener's side of a worker.
#[derive(Clone, Debug)]
pub struct ProxyService(pub Arc<Worker>);

impl Service for ProxyService {
    type Receipt = Receipt;

    type Call = Serving;

    fn call(&self, request: Request, interims: &Interims) -> Serving {
        crate::serve::serve(&self.0, request, interims)
    }

    fn delivered(&self, receipt: Receipt, delivery: Delivery) {
        if let Some(account) = receipt.0 {
            account.close(&self.0, delivery);
        }
    }

    /// What the parser refused has no head that could be believed: the line says who, when, and which rule.
    fn refused(&self, refusal: Refusal, peer: Option<Peer>) {
        let worker = &self.0;
        if let (Some(log), Some(peer)) = (worker.proxy.access_log().as_ref(), peer) {
            let mut record = LogRecord::new(worker.proxy.clock.now().wall, peer.remote.ip());
            record.status = refusal.status();
            record.refusal = Some(refusal.as_str());
            log.write(
                worker.index,
                record.line(log.format()),
                &Ending { complete: true, ..Ending::default() },
            );
        }
    }
}
