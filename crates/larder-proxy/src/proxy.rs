//! What all workers share, for the life of the process.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::{ArcSwapOption, Guard};
use larder_http::message::RequestHead;
use larder_http::time::Clock;
use larder_observe::tap::Tap;
use larder_observe::{AccessLog, CacheId, Diagnostics, Ending, Format, HistogramSnapshot, LogLine, Metrics};
use larder_store::store::{Admit, Needed};
use larder_store::{CacheKey, Fates, Note, Store};
use tokio::sync::Semaphore;

use crate::background::Background;
use crate::collapse::Flights;
use crate::failure::TurnedAway;
use crate::fleet::{FleetReceipt, Membership};
use crate::invalidation::{Belief, Heard, Invalidations, Joined, Reach, Trust, durable};
use crate::losses::Losses;
use crate::not_stored::NotStored;
use crate::purges::access::WrongSecrets;
use crate::purges::{AuditEntry, PurgeRefusal, Purges, Sweeps};
use crate::route::Site;
use crate::settings::HttpProofs;
use crate::settings::ProxySettings;
use crate::uses::Uses;

/// Pages that are put together for people at a time: each is held in memory, and who asks for another one waits.
const PAGES_FOR_PEOPLE_MAX: usize = 2;

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
    /// What stores did not take.
    pub(crate) losses: Losses,
    /// What became of URLs that are not stored.
    pub(crate) fates: Arc<Fates>,
    /// Fetches under way that nobody waits for.
    pub(crate) background: Background,
    access_log: ArcSwapOption<AccessLog>,
    /// How the lines of the log look, [`NO_LOG`] without one: all that most exchanges ask.
    log_format: AtomicU8,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) diagnostics: Diagnostics,
    tap: OnceLock<Arc<Tap>>,
    pub(crate) turned_away: TurnedAway,
    /// Proofs for authorities of certificates, where some are ordered.
    pub(crate) proofs: OnceLock<Arc<dyn HttpProofs>>,
    pub(crate) purges: Purges,
    pub(crate) wrong_secrets: WrongSecrets,
    pub(crate) sweeps: Sweeps,
    /// The fleet, where there is one.
    pub(crate) fleet: OnceLock<Arc<dyn Membership>>,
    /// Places for pages that are put together for people.
    pub(crate) pages_for_people: Arc<Semaphore>,
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
            fates: Arc::default(),
            tap: OnceLock::new(),
            background: Background::default(),
            access_log: ArcSwapOption::empty(),
            log_format: AtomicU8::new(NO_LOG),
            metrics,
            diagnostics,
            turned_away: TurnedAway::default(),
            proofs: OnceLock::new(),
            purges: Purges::default(),
            wrong_secrets: WrongSecrets::default(),
            sweeps: Sweeps::default(),
            fleet: OnceLock::new(),
            pages_for_people: Arc::new(Semaphore::new(PAGES_FOR_PEOPLE_MAX)),
        })
    }

    /// Purges together with a fleet from now on. Once only, and before anything is served.
    pub fn join(&self, fleet: Arc<dyn Membership>) {
        let _ = self.fleet.set(fleet);
    }

    /// Without a lease nothing that was fetched before this moment is used without asking the origin, until there is one again: then
    /// everything is in force that others have purged meanwhile.
    /// To be called when a request comes, and again when it has waited. False where there is no lease.
    #[inline(always)]
    pub(crate) fn heed_lease(&self) -> bool {
        match self.fleet.get() {
            None => true,
            Some(fleet) => self.heed_lease_of(fleet),
        }
    }

    /// Whether there is a lease, for what is said of a request. It puts nothing in doubt.
    pub(crate) fn has_lease(&self) -> bool {
        self.fleet.get().is_none_or(|fleet| fleet.may_use())
    }

    #[inline(never)]
    fn heed_lease_of(&self, fleet: &Arc<dyn Membership>) -> bool {
        self.invalidations.heed(|| fleet.may_use())
    }

    /// The number of the last invalidation.
    pub fn last_invalidation(&self) -> u64 {
        self.invalidations.current()
    }

    /// The log may have had purges that were never seen here.
    pub fn doubt_stored(&self) {
        self.invalidations.raise_floor_to_now();
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

    /// What authorities of certificates are answered that look for proofs. To be called before there are workers, and once.
    pub fn prove_by(&self, proofs: Arc<dyn HttpProofs>) {
        let _ = self.proofs.set(proofs);
    }

    /// Where samples of exchanges go. To be called before there are workers, and once; without it there are no samples.
    pub fn sample_to(&self, tap: Arc<Tap>) {
        let _ = self.tap.set(tap);
    }

    /// The tap, which may be off.
    pub(crate) fn tap(&self) -> &Arc<Tap> {
        self.tap.get_or_init(|| Arc::new(Tap::off()))
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

    /// A response under this key was not stored, whatever was expected of it.
    pub(crate) fn note_not_stored(&self, key: &CacheKey, why: NotStored) {
        self.fates.tell_time(self.clock.now().monotonic);
        self.fates.note(key.hash(), why.fate());
    }

    /// What became of a response that might be stored under `key`. What a store did not take is said once for each reason.
    pub(crate) fn note_outcome(&self, store: CacheId, key: &CacheKey, outcome: Result<(), NotStored>) {
        let Err(why) = outcome else { return };
        self.note_not_stored(key, why);
        let is_news = self.losses.note(store, why);
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

    /// How many purges there were, by kind, mode, dialect and result.
    pub fn each_purge(&self, visit: impl FnMut([(&'static str, &'static str); 4], u64)) {
        self.purges.counts.each_purge(visit);
    }

    /// How many requests for purges were refused, by reason.
    pub fn each_purge_refused(&self, visit: impl FnMut(&'static str, u64)) {
        self.purges.counts.each_refusal(visit);
    }

    /// How long purges took, by part.
    pub fn each_purge_part(&self, visit: impl FnMut(&'static str, &HistogramSnapshot)) {
        self.purges.counts.each_part(visit);
    }

    /// Responses that purges took out.
    pub fn purged_objects(&self) -> u64 {
        self.purges.counts.object_count()
    }

    /// Heads that were read in tiers to find what purges have ended.
    pub fn purge_heads(&self) -> u64 {
        self.sweeps.heads.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// A line for each purge.
    pub(crate) fn tell_of_purge(&self, receipt: &AuditEntry) {
        let AuditEntry { id, dialect, by, mode, what, removed, .. } = receipt;
        let peer = receipt.peer.as_deref().unwrap_or("-");
        let line = format_args!("purge {id} by {peer} ({dialect}, {by}): {mode}, {what}; {removed} removed");
        let missing = receipt.fleet.as_ref().and_then(FleetReceipt::why);
        match &receipt.why {
            None if let Some(missing) = missing => self.diagnostics.warn(
                "purge-incomplete",
                id,
                format_args!("{line}; not everywhere: {missing}"),
            ),
            None => self.diagnostics.info("purge", id, line),
            Some(why) => {
                self.diagnostics.warn("purge-not-held", id, format_args!("{line}; it may not hold: {why}"))
            }
        }
    }

    /// Tells the operator why a request for a purge was refused; floods of them are thinned out.
    pub(crate) fn tell_of_refusal(&self, peer: IpAddr, head: &RequestHead, why: PurgeRefusal) {
        let (method, host) = (head.method.as_str().escape_debug(), head.authority.as_str());
        let hint = match why {
            PurgeRefusal::NotAllowed => {
                "; `purge` in the site says who may, and `purge = \"pass\"` passes it to the origin"
            }
            PurgeRefusal::Forwarded => {
                "; a proxy passed it on: list that in `trusted`, or purge with a token"
            }
            _ => "",
        };
        let line = format_args!("{method} for {host} by {peer} was refused: {}{hint}", why.token());
        // Thinned out by reason: a client may name any number of hosts.
        self.diagnostics.warn("purge-refused", why.token(), line);
    }

    /// Has invalidations reach these stores from now on, opens the disks of those that are new, and takes over what they and
    /// directories of files remember: the numbers of invalidations, and which groups went. One that has not heard of
    /// everything is not believed; `heard` says how far each has that was open before in this process, and of others their journals
    /// tell. Waits for the disks. Before anything is asked of the stores.
    pub fn recover(self: &Arc<Self>, stores: &[Arc<Store>], heard: &dyn Fn(&Arc<Store>) -> Option<Heard>) {
        let needed: Arc<Needed> = {
            let proxy = Arc::downgrade(self);
            Needed::new(move |notes, lost| match proxy.upgrade() {
                Some(proxy) => {
                    let of_periods = proxy.reach.note(proxy.invalidations.current());
                    durable::needed(&proxy.invalidations, (notes, lost), of_periods)
                }
                None => notes,
            })
        };
        let joined = self.reach.join(stores, heard);
        let number = self.invalidations.current();
        for Joined { store, .. } in &joined {
            store.hears_from(number);
            store.memory().note_fates(&self.fates);
        }
        // All of them, before any is used: each may have heard of something that another has missed.
        for Joined { store, .. } in joined.iter().filter(|joined| joined.trust == Trust::Unknown) {
            store.look_ahead(&mut |last, notes| self.reach.look_at(last, notes));
        }
        // While directories were away, the fleet may have purged what lies there.
        let was_away = |joined: &Joined| joined.trust != Trust::Heard && joined.store.has_directories();
        let is_doubted = self.fleet.get().is_some() && joined.iter().any(was_away);
        for Joined { store, trust } in joined {
            let proxy = Arc::downgrade(self);
            let readmit: Arc<Admit> = Arc::new(move |last, notes| {
                let proxy = proxy.upgrade()?;
                let is_believed = trust == Trust::Heard || proxy.believes(last, &notes);
                is_believed.then(|| durable::readmit(&proxy.invalidations, last, notes, proxy.clock.now()))
            });
            store.open(&readmit, trust != Trust::Missed);
            store.take_stock_by(&needed);
            self.reach.welcome(&store, self.invalidations.current());
        }
        if is_doubted {
            self.doubt_stored();
        }
    }

    /// Whether what lies beside a journal may be used. What is in use already is not proven any more where the journal has heard of
    /// something that the others have missed.
    fn believes(&self, last: u64, notes: &[Note]) -> bool {
        let Belief { is_believed, is_ahead } = self.reach.belief(last, notes);
        // Also where it is given up: its journal may stay, and new numbers are to be above those in it.
        let _ = self.invalidations.continue_after(last.saturating_add(1));
        if is_ahead {
            let number = self.invalidations.current();
            self.invalidations.restore_all(number);
            let floor = Note { number, ..Note::default() };
            let stores = self.reach.stores();
            for store in stores.iter().filter_map(Weak::upgrade) {
                store.mark(&floor);
                self.reach.welcome(&store, number);
            }
        }
        is_believed
    }

    /// Begins an invalidation: all stores that it has to reach.
    pub(crate) fn begin_invalidation(&self) -> Vec<Arc<Store>> {
        self.reach.begin(self.invalidations.current())
    }

    /// Which stores there are, for whoever closes one.
    pub fn reach(&self) -> &Arc<Reach> {
        &self.reach
    }

    /// Has the disks of these stores tried again that are absent, off the workers; what one knows that is back is taken over before
    /// it is used. To be called every second.
    pub fn try_absent_disks<'a>(self: &Arc<Self>, stores: impl Iterator<Item = &'a Arc<Store>>) {
        let proxy = Arc::clone(self);
        let admit: Arc<Admit> = Arc::new(move |last, notes| {
            let is_believed = proxy.believes(last, &notes);
            is_believed.then(|| durable::admit(&proxy.invalidations, last, notes, proxy.clock.now()))?
        });
        stores.for_each(|store| store.try_absent(&admit));
    }

    /// Figures at this moment.
    pub fn gauges(&self) -> Gauges {
        Gauges { flights: self.flights.len() as u64, waiting: self.flights.waiting() as u64 }
    }
}
