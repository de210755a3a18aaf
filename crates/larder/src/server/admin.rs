//! What the admin address sees of the running larder.
//!
//! In: the parts of a running larder, anew after each reload. Out: figures, explanations and orders, as `larder_admin` asks for them.

mod figures;
mod server_totals;
mod statistics;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use larder_admin::{
    Answering, Explaining, Health, Larder, ListQuestion, ObjectQuestion, PurgeQuestion, PurgeReceipt,
    Purging, Shown, Stats, Unexplained,
};
use larder_config::Cidr;
use larder_http::message::Scheme;
use larder_http::time::{Clock, WallTime};
use larder_listen::{Metrics as ListenMetrics, Slots};
use larder_observe::watch::{Event, Watch, WatchSettings};
use larder_observe::{AccessLog, Diagnostics, Exposition, HistogramSnapshot, Kind, Metrics, family};
use larder_proxy::explain::{ExplainError, Question};
use larder_proxy::objects::Stores;
use larder_proxy::{Proxy, Worker};
use larder_remote::fleet::Fleet;
use larder_remote::versions::Versions;
use parking_lot::{Mutex, RwLock};

use super::about::About;
use super::certificates::{CertificatesTold, ShownCertificates};
use super::config::{self, RunningConfig};
use super::fleet::FleetTold;
use super::ordering::RunningOrders;
use super::standing::Standings;
use super::{objects, purges};
use crate::wire::RemoteTier;

/// What the admin, the demo and the tests see of a running larder.
pub struct Insight {
    metrics: Arc<Metrics>,
    proxy: Arc<Proxy>,
    listening: Vec<Arc<ListenMetrics>>,
    pub(super) clock: Clock,
    started: WallTime,
    diagnostics: Diagnostics,
    slots: Arc<Slots>,
    draining: AtomicBool,
    /// Whose plan explanations go by.
    worker: Arc<Worker>,
    /// What a reload changes; held for the length of a look.
    view: RwLock<View>,
    fleet: Option<Arc<Fleet>>,
    /// How servers of origins stood a second ago.
    standings: Mutex<Standings>,
    /// The config in force.
    running: config::InForce,
    /// What is seen of requests, where the admin address shows it.
    watch: Option<Arc<Watch>>,
    servers: server_totals::ServerTotals,
    /// What TLS clients are shown.
    shown: CertificatesTold,
}

/// Values of stores, by the store's name.
type NamedTiers = Vec<(String, RemoteTier)>;

#[derive(Default)]
struct View {
    stores: Stores,
    remote: NamedTiers,
    versions: Vec<Arc<Versions>>,
    origins: Vec<(String, Arc<larder_origin::OriginState>)>,
    listeners: Vec<(SocketAddr, Scheme)>,
    trusted: Vec<Cidr>,
    admin: Option<SocketAddr>,
    log: Option<AccessLog>,
}

impl Insight {
    pub(super) fn new(
        metrics: Arc<Metrics>,
        proxy: Arc<Proxy>,
        listening: Vec<Arc<ListenMetrics>>,
        worker: Arc<Worker>,
        clock: Clock,
        diagnostics: Diagnostics,
        slots: Arc<Slots>,
    ) -> Self {
        let (draining, view) = (AtomicBool::new(false), RwLock::default());
        Self {
            metrics,
            proxy,
            listening,
            started: clock.now().wall,
            clock,
            diagnostics,
            slots,
            draining,
            worker,
            view,
            fleet: None,
            standings: Mutex::default(),
            running: config::InForce::default(),
            watch: None,
            servers: server_totals::ServerTotals::default(),
            shown: CertificatesTold::default(),
        }
    }

    /// The same, with what is seen of requests.
    pub(super) fn watching(self, watch: Option<Arc<Watch>>) -> Self {
        Self { watch, ..self }
    }

    /// Certificates are ordered by this.
    pub(super) fn see_orders(&self, orders: RunningOrders) {
        self.shown.see_orders(orders);
    }

    /// These certificates are shown from now on, and these keys seal tickets.
    pub(super) fn show(&self, shown: ShownCertificates) {
        self.shown.set(shown);
    }

    /// Another config is in force.
    pub(super) fn run_by(&self, running: RunningConfig) {
        self.running.run_by(running);
    }

    /// Changes what may be kept of requests.
    pub(super) fn keep(&self, settings: WatchSettings) {
        if let Some(watch) = &self.watch {
            watch.configure(settings);
        }
    }

    /// Something happened to larder itself, for those who look on.
    pub(super) fn tell(&self, kind: &'static str, subject: &str, text: String) {
        if let Some(watch) = &self.watch {
            watch.tell(Event { at: self.clock.now().wall, kind, subject: subject.to_owned(), text });
        }
    }

    /// From now on, messages of larder's own are events.
    pub(super) fn hear(&self) {
        if let Some(watch) = &self.watch {
            let watch = Arc::downgrade(watch);
            self.diagnostics.hear(move |said| {
                if let Some(watch) = watch.upgrade() {
                    watch.said(said);
                }
            });
        }
    }

    /// Tells which servers of origins are left out since it was asked last, or are back; to be called every second.
    pub(super) fn tell_of_origins(&self) {
        let origins = self.view.read().origins.clone();
        let servers = origins.into_iter().map(|(name, state)| (name, state.servers())).collect();
        for (kind, origin, text) in self.standings.lock().look(servers) {
            self.tell(kind, &origin, text);
        }
    }

    /// The same, in a fleet where there is one.
    pub(super) fn in_fleet(self, fleet: Option<Arc<Fleet>>) -> Self {
        Self { fleet, ..self }
    }

    pub(super) fn refresh(
        &self,
        (stores, remote, versions): (Stores, NamedTiers, Vec<Arc<Versions>>),
        origins: Vec<(String, Arc<larder_origin::OriginState>)>,
        listeners: Vec<(SocketAddr, Scheme)>,
        trusted: Vec<Cidr>,
        admin: Option<SocketAddr>,
        log: Option<AccessLog>,
    ) {
        *self.view.write() = View { stores, remote, versions, origins, listeners, trusted, admin, log };
    }

    /// From now on nothing new is taken, and what runs may take this long.
    pub(super) fn draining(&self, limit: Duration) {
        self.draining.store(true, Ordering::Relaxed);
        let (open, seconds) = (self.connections(), limit.as_secs());
        let text =
            format!("larder ends: connections that are open: {open}; they may finish within {seconds} s");
        self.tell("drain", "", text);
    }

    /// Client connections open now, on all workers.
    pub fn connections(&self) -> u64 {
        self.listen_metrics().open.value()
    }

    /// The text of `/metrics`.
    pub fn metrics_text(&self) -> String {
        let mut out = Exposition::default();
        self.expose(&mut out);
        out.finish()
    }

    /// The stores in force, by name.
    fn stores(&self) -> Stores {
        self.view.read().stores.clone()
    }

    /// Takes what purges have ended out of the stores; to be called every second.
    pub(super) fn sweep_purged(&self) {
        self.worker.sweep_purged();
    }

    fn expose_purges(&self, out: &mut Exposition) {
        let mut purges = out.family(&family::PURGES);
        self.proxy.each_purge(|labels, count| {
            purges.value(&labels, count);
        });
        let mut seconds = out.family(&family::PURGE_SECONDS);
        self.proxy.each_purge_part(|part, histogram| {
            seconds.histogram(&[("part", part)], histogram);
        });
        let mut refused = out.family(&family::PURGES_REFUSED);
        self.proxy.each_purge_refused(|reason, count| {
            refused.value(&[("reason", reason)], count);
        });
        out.family(&family::PURGED_OBJECTS).value(&[], self.proxy.purged_objects());
        let counts = self.worker.predicates();
        let mut predicates = out.family(&family::PURGE_PREDICATES);
        predicates.value(&[("kind", "name")], counts.names);
        predicates.value(&[("kind", "pattern")], counts.patterns);
        out.family(&family::PURGE_FLOOR_RAISED).value(&[], counts.raised);
        out.family(&family::PURGE_RETIRED).value(&[], counts.retired);
        out.family(&family::PURGE_HEADS).value(&[], self.proxy.purge_heads());
    }

    /// The listener's counters, summed over the workers.
    fn listen_metrics(&self) -> ListenMetrics {
        let sum = ListenMetrics::default();
        self.listening.iter().for_each(|worker| sum.absorb(worker));
        sum
    }
}

impl Larder for Insight {
    fn health(&self) -> Health {
        if self.draining.load(Ordering::Relaxed) {
            return Health::Draining;
        }
        let is_degraded = self.view.read().stores.iter().any(|(_, store)| store.is_degraded());
        if is_degraded { Health::Degraded } else { Health::Ok }
    }

    fn watch(&self) -> Option<&Watch> {
        self.watch.as_deref()
    }

    fn expose(&self, out: &mut Exposition) {
        self.metrics.expose(out);
        if let Some(watch) = &self.watch {
            watch.expose(out);
        }
        self.shown.expose(out);
        let view = self.view.read();
        let usages: Vec<_> = view.stores.iter().map(|(name, store)| (name, store.usage())).collect();
        let tiers = [
            (&family::CACHE_BYTES, (|usage| usage.bytes) as fn(&larder_store::Usage) -> u64),
            (&family::CACHE_OBJECTS, |usage| usage.objects),
            (&family::CACHE_MAX_BYTES, |usage| usage.max_bytes),
            (&family::CACHE_HIGH_WATER_BYTES, |usage| usage.high_water_bytes),
        ];
        for (family, figure) in tiers {
            let mut samples = out.family(family);
            for (name, usage) in &usages {
                samples.value(&[("store", name.as_str()), ("tier", "memory")], figure(usage));
            }
        }
        let mut evictions = out.family(&family::EVICTIONS);
        for (name, usage) in &usages {
            evictions.value(&[("store", name.as_str()), ("reason", "room")], usage.evicted_for_room);
            evictions.value(&[("store", name.as_str()), ("reason", "variants")], usage.evicted_variants);
            evictions.value(&[("store", name.as_str()), ("reason", "idle")], usage.evicted_idle);
        }
        let mut ages = out.family(&family::EVICTED_SECONDS);
        for (name, usage) in &usages {
            ages.value(&[("store", name.as_str())], usage.evicted_ages.as_secs_f64());
        }
        let mut promotions = out.family(&family::PROMOTIONS);
        for (name, usage) in &usages {
            promotions.value(&[("store", name.as_str())], usage.promoted);
        }
        let mut degraded = out.family(&family::STORE_DEGRADED);
        for (name, store) in &view.stores {
            degraded.value(&[("store", name.as_str())], u64::from(store.is_degraded()));
        }
        for (name, store) in &view.stores {
            for figures in store.figures() {
                let labels = [("store", name.as_str()), (figures.label, &*figures.path.to_string_lossy())];
                foreign(out, &labels, |visit| (figures.for_each)(visit));
            }
        }
        for (name, remote) in &view.remote {
            remote.expose(name, out);
        }
        super::records::expose(&view.remote, out);
        super::versions::expose(&view.versions, out);
        let gauges = self.proxy.gauges();
        out.family(&family::FLIGHTS).value(&[], gauges.flights);
        out.family(&family::FLIGHTS_WAITING).value(&[], gauges.waiting);
        foreign(out, &[], |visit| self.listen_metrics().for_each(visit));
        let (mut full, mut resumed) = (HistogramSnapshot::default(), HistogramSnapshot::default());
        for worker in &self.listening {
            full.add(&worker.full_handshakes);
            resumed.add(&worker.resumed_handshakes);
        }
        let mut handshakes = out.family(&family::TLS_HANDSHAKE_SECONDS);
        handshakes.histogram(&[("resumed", "false")], &full).histogram(&[("resumed", "true")], &resumed);
        let mut turned_away = out.family(&family::REQUESTS_TURNED_AWAY);
        self.proxy.turned_away(|reason, count| {
            turned_away.value(&[("reason", reason)], count);
        });
        self.expose_purges(out);
        if let Some(fleet) = &self.fleet {
            super::fleet::expose(&fleet.report(), out);
        }
        for (name, state) in &view.origins {
            foreign(out, &[("origin", name)], |visit| state.for_each(visit));
        }
        if let Some(log) = &view.log {
            log.expose(out);
        }
        self.diagnostics.expose(out);
        out.family(&family::CONNECTIONS_MAX).value(&[], self.slots.max() as u64);
    }

    fn stats(&self) -> Stats {
        self.gather_stats()
    }

    fn explain(&self, asked: larder_admin::Question) -> Explaining {
        let worker = Arc::clone(&self.worker);
        Box::pin(async move { explain(worker, &asked).await })
    }

    fn list(&self, asked: ListQuestion) -> Answering<Bytes> {
        Box::pin(objects::list(Arc::clone(&self.worker), self.stores(), asked))
    }

    fn object(&self, asked: ObjectQuestion) -> Answering<Shown> {
        Box::pin(objects::object(Arc::clone(&self.worker), self.stores(), asked))
    }

    fn remove(&self, url: String) -> Answering<PurgeReceipt> {
        Box::pin(purges::remove(Arc::clone(&self.worker), url))
    }

    fn purge(&self, asked: PurgeQuestion) -> Purging {
        Box::pin(purges::purge(Arc::clone(&self.worker), asked))
    }

    fn fleet(&self) -> Option<Bytes> {
        self.fleet.as_ref().map(|fleet| purges::json(&FleetTold::from(fleet.report())))
    }

    fn about(&self, may_change: bool) -> Bytes {
        let about = About {
            running: &self.running.load(),
            watch: self.watch(),
            health: self.health(),
            workers: self.listening.len(),
            started: self.started,
            now: self.clock.now().wall,
            may_change,
        };
        about.json()
    }

    fn certificates(&self) -> Bytes {
        self.shown.json(self.clock.now().wall)
    }

    fn renew_certificate(&self, name: &str) -> bool {
        self.shown.renew(name)
    }

    fn config(&self) -> Answering<Bytes> {
        self.running.told()
    }

    fn purges(&self) -> Bytes {
        purges::json(&self.worker.purges())
    }

    fn purge_of(&self, id: &str) -> Option<Bytes> {
        self.worker.purge_of(id).map(|receipt| purges::json(&receipt))
    }
}

async fn explain(worker: Arc<Worker>, asked: &larder_admin::Question) -> Result<Bytes, Unexplained> {
    let unexplained = |error: ExplainError| Unexplained { token: error.token(), message: error.to_string() };
    let fields = asked.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let content = Bytes::copy_from_slice(asked.content.as_bytes());
    let question = Question::parse(&asked.method, &asked.url, fields, content, asked.offline);
    let explanation = worker.explain(question.map_err(unexplained)?, true).await.map_err(unexplained)?;
    let broken = |error: serde_json::Error| Unexplained { token: "broken", message: error.to_string() };
    serde_json::to_vec_pretty(&explanation).map(Bytes::from).map_err(broken)
}

type Visit<'a> = &'a mut dyn FnMut(&'static str, &'static str, &[(&str, &str)], u64);

/// Adds families that a crate below counts itself, which come as name, help, labels and value.
fn foreign(out: &mut Exposition, own: &[(&'static str, &str)], visit: impl FnOnce(Visit<'_>)) {
    visit(&mut |name, help, labels, value| {
        let labels: Vec<(&str, &str)> = own.iter().copied().chain(labels.iter().copied()).collect();
        out.foreign(name, Kind::of(name), help).value(&labels, value);
    });
}
