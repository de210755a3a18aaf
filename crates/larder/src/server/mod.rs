//! A running larder: workers, listeners, the admin address, reload and drain.
//!
//! In: a checked config. Out: a [`Server`] that runs until it is drained. Each worker is a thread with a
//! single-threaded runtime of its own and its own listening sockets; the admin address is served by a thread apart, so
//! that a scrape never waits behind traffic and traffic never behind a scrape.
//!
//! **Invariant**: a reload either takes effect as a whole or changes nothing.

mod about;
mod addresses;
mod admin;
mod admin_address;
mod at_start;
mod certificates;
mod certificates_tended;
mod changed;
mod check;
mod config;
pub(crate) mod descriptors;
mod error;
mod examine;
mod fleet;
mod objects;
mod ordering;
mod purges;
mod records;
mod reload;
pub(crate) mod runtime;
mod standing;
mod stores;
mod versions;
mod worker;

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use larder_config::{Checked, Config, ListenEntry};
use larder_http::message::Scheme;
use larder_http::time::Clock;
use larder_listen::{Bound, Drain, Listener, Slots};
use larder_observe::tap::Tap;
use larder_observe::watch::{FigureSource, Watch, WatchThread};
use larder_observe::{AccessLog, AccessLogOptions, Diagnostics, Format, LogTarget, Metrics};
use larder_proxy::{Plan, Proxy, Worker};
use larder_remote::fleet::Fleet;
use tokio::sync::mpsc;

use crate::wire::acme::{OrderedCertificates, Proofs};
use crate::wire::{WireError, Wiring};
use admin_address::AdminServer;
use at_start::AtStart;
use certificates::CertificateWatch;
use descriptors::{Limit, Shares};
use ordering::Ordering;
use runtime::usable_cpus;
use worker::{WorkerHandle, WorkerListener};

pub(crate) use admin::Insight;
pub(crate) use certificates::{CertificateList, CertificateTold};
pub(crate) use check::{Promised, build, check};
pub use error::ServerError;
pub(crate) use examine::{Found, servers};
pub(crate) use fleet::FleetTold;
#[cfg(test)]
pub(crate) use fleet::OtherTold;
pub use reload::Postponed;

/// A running larder. Dropping it stops everything at once; [`Server::drain`] ends it in good order.
pub struct Server {
    proxy: Arc<Proxy>,
    metrics: Arc<Metrics>,
    diagnostics: Diagnostics,
    wiring: Wiring,
    workers: Vec<WorkerHandle>,
    listeners: HashMap<ListenEntry, OpenListener>,
    /// Listeners that a reload took away, while their last connections finish.
    closing: Vec<OpenListener>,
    admin: Option<AdminServer>,
    insight: Arc<Insight>,
    access_log: Option<(AccessLog, larder_config::Log)>,
    /// Limits for connections accepted from now on.
    listener_settings: Arc<ArcSwap<larder_listen::Settings>>,
    tls: CertificateWatch,
    ordering: Ordering,
    config: Config,
    clock: Clock,
    limit: Limit,
    shares: Shares,
    slots: Arc<Slots>,
    fleet: Option<Arc<Fleet>>,
    /// Takes samples from the workers, until it is dropped.
    _watching: Option<WatchThread>,
    at_start: AtStart,
}

struct OpenListener {
    /// As the config asks for it.
    asked: Listener,
    /// With the real address, where the config asked for any port.
    bound: Listener,
    drain: Drain,
    /// Ends when no worker accepts there any more. Nothing is ever sent.
    accepting: mpsc::Receiver<Infallible>,
}

impl OpenListener {
    /// After the start of its drain: resolves when nothing is accepted there any more and every connection is gone.
    /// The order matters: what waits in the kernel becomes a connection only while the last of it is accepted.
    async fn drained(&mut self) {
        let _ = self.accepting.recv().await;
        self.drain.drained().await;
    }

    fn is_drained(&self) -> bool {
        self.accepting.is_closed() && self.drain.connections() == 0
    }
}

impl Server {
    /// Opens every socket, then starts the workers. Blocks for as long as that takes; nothing is left behind on error.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn start(checked: Checked, clock: Clock, diagnostics: Diagnostics) -> Result<Self, ServerError> {
        let running = config::RunningConfig::of(&checked, clock.now().wall);
        let ordering = Ordering::new(OrderedCertificates::default(), clock.clone(), &diagnostics);
        let (tls, settings_of_sites) =
            CertificateWatch::start(&checked, ordering.ordered().clone(), clock.now().wall)?;
        let wanted = crate::wire::acme::settings(&checked.config, &checked.places);
        let wanted = wanted.map_err(ServerError::Certificates)?;
        let config = checked.config;
        let count = config.workers.unwrap_or_else(usable_cpus);
        let metrics = Arc::new(Metrics::new(
            count,
            larder_proxy::vocabulary(),
            clock.now().wall,
            env!("CARGO_PKG_VERSION"),
        ));
        let proxy = Proxy::new(clock.clone(), Arc::clone(&metrics), diagnostics.clone());
        proxy.prove_by(Arc::new(Proofs(Arc::clone(&ordering.ordered().challenges))));
        // Where nothing shows them, nothing is sampled.
        let tap = config.admin.address.map(|_| Arc::new(Tap::new(count)));
        let watch = tap.as_ref().map(|tap| {
            proxy.sample_to(Arc::clone(tap));
            let settings = crate::wire::live::watched(&config.live);
            Arc::new(Watch::new(Arc::clone(&metrics), Arc::clone(tap), settings))
        });
        let mut wiring =
            Wiring::new(Arc::clone(&metrics), clock.clone(), diagnostics.clone(), Arc::clone(proxy.reach()));
        let limit = Limit::raise();
        let shares = Shares::of(&config, limit.now, count)?;
        let (mut settings, draft) = wiring.draft(&config, &shares)?;
        settings.secure(settings_of_sites);
        proxy.recover(&settings.stores, &|store| wiring.heard(&draft, store));
        wiring.tell_of_findings(&draft);
        let plan = Plan::new(settings).map_err(WireError::from)?;
        let bound: Vec<_> = config
            .listen
            .iter()
            .map(|entry| {
                let asked = addresses::listener(entry, &config);
                asked.bind(count).map(|bound| (*entry, asked, bound))
            })
            .collect::<Result<_, _>>()?;
        ordering.order(wanted)?;
        let slots = Slots::new(shares.clients);
        let mut workers = Vec::with_capacity(count);
        for index in 0..count {
            let worker = Worker::new(&proxy, index, Arc::clone(&plan)).map_err(WireError::from)?;
            workers.push(WorkerHandle::start(index, worker, metrics.worker(index), Arc::clone(&slots))?);
        }
        wiring.commit(draft, &shares);
        let explaining = workers.first().ok_or(ServerError::WorkerGone)?;
        // After the stores: what lies in them is older than what their numbers are compared with from now on.
        let fleet = crate::wire::fleet::start(
            &config,
            wiring.standing(),
            (&proxy, explaining.worker()),
            &diagnostics,
        )
        .map_err(ServerError::Fleet)?;
        let insight = Insight::new(
            Arc::clone(&metrics),
            Arc::clone(&proxy),
            workers.iter().map(|worker| Arc::clone(worker.metrics())).collect(),
            Arc::clone(explaining.worker()),
            clock.clone(),
            diagnostics.clone(),
            Arc::clone(&slots),
        );
        let insight = Arc::new(insight.in_fleet(fleet.clone()).watching(watch.clone()));
        insight.run_by(running);
        insight.see_orders(ordering.running());
        insight.hear();
        let figures = Arc::clone(&insight) as Arc<dyn FigureSource>;
        let draining = watch.map(|watch| WatchThread::start(watch, clock.clone(), figures)).transpose()?;
        let mut server = Self {
            at_start: AtStart::of(&config),
            proxy,
            metrics,
            diagnostics,
            wiring,
            workers,
            listeners: HashMap::new(),
            closing: Vec::new(),
            admin: None,
            insight,
            access_log: None,
            listener_settings: Arc::new(ArcSwap::from_pointee(crate::wire::listener(
                &config,
                tls.server(),
                &clock,
            ))),
            tls,
            ordering,
            clock,
            config,
            limit,
            shares,
            slots,
            fleet,
            _watching: draining,
        };
        server.open_log()?;
        server.admin = server
            .config
            .admin
            .address
            .map(|address| {
                let (config, insight) = (&server.config, Arc::clone(&server.insight));
                AdminServer::start(address, config, insight, server.shares.admin)
            })
            .transpose()?;
        for (entry, asked, bound) in bound {
            server.open(entry, asked, bound)?;
        }
        server.refresh_insight();
        server.tell_of_stores();
        server.warn_of_descriptors();
        Ok(server)
    }

    fn open(&mut self, entry: ListenEntry, asked: Listener, bound: Bound) -> Result<(), ServerError> {
        let drain = Drain::new();
        let settings = &self.listener_settings;
        let (accepts, accepting) = mpsc::channel(1);
        for (worker, socket) in self.workers.iter().zip(bound.sockets) {
            let listener = WorkerListener {
                socket,
                settings: Arc::clone(settings),
                drain: drain.signal(),
                accepting: accepts.clone(),
            };
            worker.listen(listener)?;
        }
        let listener = OpenListener { asked, bound: bound.listener, drain, accepting };
        self.listeners.insert(entry, listener);
        Ok(())
    }

    fn open_log(&mut self) -> Result<(), ServerError> {
        let wanted = &self.config.log;
        if self.access_log.as_ref().is_some_and(|(_, open)| open == wanted) {
            return Ok(());
        }
        let target = match &wanted.access {
            larder_config::AccessLog::Off => None,
            larder_config::AccessLog::Stdout => Some(LogTarget::Stdout),
            larder_config::AccessLog::File(path) => Some(LogTarget::File(path.clone())),
        };
        let format = match wanted.format {
            larder_config::LogFormat::Json => Format::Json,
            larder_config::LogFormat::Combined => Format::Combined,
        };
        let log = target
            .map(|target| {
                let options =
                    AccessLogOptions { format, workers: self.workers.len(), ..AccessLogOptions::new(target) };
                AccessLog::open(&options, self.diagnostics.clone())
            })
            .transpose()?;
        self.proxy.log_to(log.clone().map(Arc::new));
        let before = self.access_log.take();
        self.access_log = log.map(|log| (log, wanted.clone()));
        if let Some((log, _)) = before {
            log.close(LOG_FLUSH);
        }
        Ok(())
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners().into_iter().map(|(_, address, _)| address).collect()
    }

    /// The same, each with what it accepts where its address alone does not say it.
    pub fn listeners(&self) -> Vec<(Scheme, SocketAddr, Option<&'static str>)> {
        let open = self.config.listen.iter().filter_map(|entry| self.listeners.get(entry));
        let told = |open: &OpenListener| {
            let Listener { transport, address, .. } = open.bound;
            (transport.scheme(), address, addresses::takes(&open.bound))
        };
        open.map(told).collect()
    }

    /// Where the admin is, if anywhere.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(AdminServer::address)
    }

    /// The config in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How many workers run.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// How many file descriptors there are, and what they allow.
    pub fn descriptors(&self) -> String {
        self.shares.told(self.limit)
    }

    fn warn_of_descriptors(&self) {
        if let Some(warning) = self.shares.warning() {
            self.diagnostics.warn("descriptors", "", warning);
        }
    }

    /// Figures and metrics, as the admin shows them.
    pub fn insight(&self) -> &Arc<Insight> {
        &self.insight
    }

    /// Resolves every origin's names once, for a warning; at most as long as the resolver takes.
    pub fn unresolved_origins(&self) -> impl Future<Output = Vec<(String, String)>> + Send + use<> {
        let worker = self.workers.first().map(|handle| Arc::clone(handle.worker()));
        async move {
            match worker {
                Some(worker) => worker.probe_origins().await,
                None => Vec::new(),
            }
        }
    }

    fn refresh_insight(&self) {
        self.show_certificates();
        let log = self.access_log.as_ref().map(|(log, _)| log.clone());
        self.insight.refresh(
            (self.wiring.stores(), self.wiring.remote_tiers(), self.wiring.versions().to_vec()),
            self.wiring.origins(),
            self.listeners().into_iter().map(|(scheme, address, _)| (address, scheme)).collect(),
            self.config.trusted.clone(),
            self.admin_address(),
            log,
        );
    }

    /// Opens the access log's file anew, after it was moved away.
    pub fn reopen_logs(&self) {
        if let Some((log, _)) = &self.access_log {
            log.reopen();
        }
    }

    /// Ends in good order: what has been accepted is served, nothing new is. Returns the number of connections that
    /// were still open when `limit` had passed.
    pub async fn drain(&mut self, limit: Duration) -> usize {
        self.insight.draining(limit);
        let mut ending: Vec<_> = self.listeners.values_mut().chain(&mut self.closing).collect();
        ending.iter().for_each(|listener| listener.drain.start());
        let all = async {
            for listener in &mut ending {
                listener.drained().await;
            }
        };
        let _ = tokio::time::timeout(limit, all).await;
        let left = ending.iter().map(|listener| listener.drain.connections()).sum();
        if let Some((log, _)) = &self.access_log {
            log.close(LOG_FLUSH);
        }
        if let Some(fleet) = &self.fleet {
            fleet.leave().await;
        }
        let stores = self.wiring.stores().into_iter().map(|(_, store)| store);
        let stores: Vec<_> = stores.chain(self.wiring.removed_stores()).collect();
        // Nothing is served any more, so that waiting for disks keeps nobody waiting.
        let closed = tokio::task::spawn_blocking(move || stores.iter().for_each(|store| store.close()));
        let _ = closed.await;
        self.tell_of_stores();
        left
    }

    /// Warnings and news for the operator.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }
}

/// How long the last lines of a log may take to be written.
const LOG_FLUSH: Duration = Duration::from_secs(2);

/// Reads and checks a config for a running server.
///
/// # Errors
/// Every problem found.
pub fn load(path: &Path) -> Result<Checked, larder_config::Errors> {
    larder_config::load(path)
}
