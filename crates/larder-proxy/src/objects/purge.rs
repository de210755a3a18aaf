//! Purges: entered, written down, answered for.
//!
//! In: an [`Order`] of somebody who may purge. Out: an [`AuditEntry`], once every journal holds the purge, so that what it says holds
//! after a crash as well. The steps, in this order: numbers are taken and predicates entered, so that look-ups see the purge;
//! fetches under way are marked; URLs are taken out of the stores; notes go to the journals and are synced, all at once.
//! What a purge by anything but a URL concerns is found when it is asked for, so it takes the same time however much that is.
//! A purge that has begun is a task of its own: it does not end with its client. Where a journal does not confirm it, it is in force
//! all the same, the answer says that it may not hold, and it is tried on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use larder_cache::purge::{Mode, Predicate, Scope, What};
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::target::Target;
use larder_store::{CacheKey, Store};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::sharing::share;
use super::{StoredFile, StoredTree};
use crate::fleet::{self, Entry, FleetReceipt};
use crate::invalidation::{self, InvalidationKind, PredicateCounts, UnderWay, how, note_of};
use crate::key;
use crate::proxy::Proxy;
use crate::purges::{
    AuditEntry, Dialect, Order, PurgeEnd, PurgeError, PurgePart, PurgeRefusal, Record, Sender, by_fields,
    first_of, text_of,
};
use crate::worker::Worker;

/// How long a purge waits for the journals to confirm it.
const SYNC_TIME: Duration = Duration::from_secs(30);
/// How often one that was not confirmed is tried again, and how long after the first failure.
const TRIES_MAX: u32 = 60;
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// What lets in a purge of another larder of the fleet.
const BY_FLEET: &str = "fleet";

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Worker {
    /// Purges, and answers once that holds.
    ///
    /// # Errors
    /// Something is wrong with the order, too many are under way, or a journal did not confirm it in time.
    ///
    /// # Cancel safety
    /// Dropped before it was polled, nothing has happened; after that the purge goes on.
    pub async fn purge(self: &Arc<Self>, order: &Order, sender: Sender) -> Result<AuditEntry, PurgeError> {
        let purges = &self.proxy.purges;
        let predicates = order.resolve().map_err(|wrong| {
            purges.counts.refused(PurgeRefusal::Bad);
            PurgeError::Wrong(wrong)
        })?;
        let Some(place) = purges.place() else {
            purges.counts.refused(PurgeRefusal::Busy);
            return Err(PurgeError::Busy);
        };
        let (worker, mode, wait) = (Arc::clone(self), order.mode, order.wait.unwrap_or(SYNC_TIME));
        let purging = tokio::spawn(async move {
            let _place = place;
            let manner = (mode, wait, Shared::WithOthers);
            worker.apply(predicates, manner, sender).await
        });
        purging.await.unwrap_or(Err(PurgeError::Lost))
    }

    /// Applies what another larder of the fleet has purged; an entry of its log. Returns once that is in force. Nobody waits for the journals:
    /// after a crash everything that lies in stores is validated.
    ///
    /// # Cancel safety
    /// Dropped before it was polled, nothing has happened; after that the purge goes on.
    pub async fn purge_of_fleet(self: Arc<Self>, entry: &[u8]) {
        let predicates = match fleet::read(entry) {
            Entry::Purge(predicates) => predicates,
            Entry::Invalidation(predicates) => {
                // As where it was made, nobody waits for the journals, and it is in no list of purges.
                self.enter(&self.proxy.begin_invalidation(), &predicates);
                return;
            }
        };
        let mode = predicates.first().map_or(Mode::Hard, |predicate| predicate.mode);
        let sender = Sender { dialect: Dialect::Api, peer: None, by: BY_FLEET };
        let (entered, is_in_force) = oneshot::channel();
        let place = self.proxy.purges.place();
        let has_place = place.is_some();
        let applying = tokio::spawn(async move {
            let _place = place;
            // What does not hold was told of, and is tried on.
            let _ = self.apply(predicates, (mode, SYNC_TIME, Shared::FromOthers(entered)), sender).await;
        });
        // Where the task is lost, nothing comes.
        let _ = is_in_force.await;
        if !has_place {
            // As many as may be under way are: the log waits.
            let _ = applying.await;
        }
    }

    async fn apply(
        self: Arc<Self>,
        predicates: Vec<Predicate>,
        (mode, wait, shared): (Mode, Duration, Shared),
        sender: Sender,
    ) -> Result<AuditEntry, PurgeError> {
        let begun = Instant::now();
        let stores = self.proxy.begin_invalidation();
        let mut files = Vec::new();
        let mut filed = 0;
        for predicate in &predicates {
            if let Some(of_url) = self.files_of(&stores, predicate) {
                // A file system that hangs must not keep a purge of the fleet from being in force.
                if matches!(shared, Shared::WithOthers) {
                    filed += of_url.count().await;
                }
                files.push(of_url);
            }
        }
        let own = match shared {
            Shared::WithOthers => self.proxy.announce(),
            Shared::FromOthers(_) => None,
        };
        let first = self.proxy.invalidations.current() + 1;
        let removed = filed + self.enter(&stores, &predicates);
        let entered = Instant::now();
        let sharing = match shared {
            Shared::WithOthers => own.as_deref().map(|own| share(own, &predicates)),
            Shared::FromOthers(is_in_force) => {
                let _ = is_in_force.send(());
                None
            }
        };
        drop(own);
        let kind = InvalidationKind::Purge;
        match sender.by {
            // On the admin's thread, which counts in cells of its own.
            "admin" => self.proxy.metrics.process().invalidated(&kind),
            // On the fleet's, which has none.
            BY_FLEET => {}
            _ => self.metrics.invalidated(&kind),
        }
        let at = self.proxy.clock.now().wall;
        let record = Arc::new(Record {
            id: self.proxy.purges.id(at.0),
            at,
            sender,
            mode,
            what: text_of(&predicates),
            first: first_of(&predicates),
            count: predicates.len(),
            numbers: first..=self.proxy.invalidations.current(),
            removed: AtomicU64::new(removed),
            softened: AtomicU64::new(0),
            by_fields: by_fields(&predicates),
            by_hand: AtomicU64::new(0),
            ended: Mutex::default(),
            sharing,
        });
        let purges = &self.proxy.purges;
        purges.counts.objects(removed);
        purges.audit.add(Arc::clone(&record));
        let trees = predicates.iter().filter_map(|predicate| {
            let (proxy, record) = (Arc::downgrade(&self.proxy), Arc::clone(&record));
            StoredTree::of(&stores, predicate, move |files| {
                record.removed.fetch_add(files, Ordering::Relaxed);
                proxy.upgrade().into_iter().for_each(|proxy| proxy.purges.counts.objects(files));
            })
        });
        let filed = Filed { files, trees: trees.collect() };
        let held = written_down(&stores, &filed, wait).await;
        let not_held = held.as_ref().err().cloned();
        purges.counts.took([(PurgePart::Table, entered - begun), (PurgePart::Journal, entered.elapsed())]);
        *record.ended.lock() = Some(PurgeEnd { took: begun.elapsed(), not_held });
        for predicate in &predicates {
            purges.counts.purged(predicate.what.kind(), predicate.mode, record.sender.dialect, held.is_ok());
        }
        if let Some(sharing) = &record.sharing {
            self.proxy.await_fleet(sharing).await;
        }
        let receipt = self.proxy.purge_receipt(&record);
        self.proxy.tell_of_purge(&receipt);
        let missing = receipt.fleet.as_ref().and_then(FleetReceipt::why);
        match (held, missing) {
            (Ok(()), None) => Ok(receipt),
            (Ok(()), Some(why)) => Err(PurgeError::Incomplete { receipt: Box::new(receipt), why }),
            (Err(why), _) => {
                let receipt = Box::new(receipt);
                tokio::spawn(try_on(stores, filed, record));
                Err(PurgeError::NotHeld { receipt, why })
            }
        }
    }

    /// The plain files that a purge of a URL removes.
    fn files_of(&self, stores: &[Arc<Store>], predicate: &Predicate) -> Option<StoredFile> {
        let What::Url { authority, target } = &predicate.what else { return None };
        let is_hard = predicate.mode == Mode::Hard;
        is_hard.then(|| StoredFile::of(stores, authority, &Arc::new(self.named_forms(authority, target))))
    }

    /// Takes numbers, enters the predicates and takes URLs out of the stores; says how many responses those were. Plain calls: look-ups
    /// see all of it.
    fn enter(&self, stores: &[Arc<Store>], predicates: &[Predicate]) -> u64 {
        let (proxy, now) = (&self.proxy, self.proxy.clock.now());
        let (invalidations, flights) = (&proxy.invalidations, &proxy.flights);
        let mut removed = 0;
        for predicate in predicates {
            let since = Some(now.monotonic);
            match (&predicate.what, predicate.mode) {
                (What::Url { authority, target }, Mode::Hard) => {
                    let forms = self.named_forms(authority, target);
                    let under_way = UnderWay {
                        any: &|_| true,
                        tell: &|key: &_, number, how| flights.invalidate(key, number, how, None),
                    };
                    let manner = (InvalidationKind::Purge, how(Mode::Hard, since), now);
                    let done = invalidation::invalidate(
                        invalidations,
                        stores,
                        (authority, &forms),
                        manner,
                        &under_way,
                    );
                    removed += done.removed;
                }
                (What::Url { authority, target }, Mode::Soft) => {
                    for form in self.named_forms(authority, target) {
                        let what = What::Url { authority: authority.clone(), target: form.as_str().into() };
                        let of_form = Predicate { what, ..predicate.clone() };
                        let number = invalidations.enter(&of_form, since);
                        let key = CacheKey::new(authority, form.as_str());
                        flights.invalidate(&key, number, how(Mode::Soft, since), None);
                        let note = note_of(&of_form, number, now.wall);
                        stores.iter().for_each(|store| {
                            store.note(&note);
                            store.disown_base(&key);
                        });
                    }
                }
                _ => {
                    let number = invalidations.enter(predicate, since);
                    let note = note_of(predicate, number, now.wall);
                    stores.iter().for_each(|store| store.note(&note));
                }
            }
        }
        removed
    }

    /// A URL in every form in which its site may key it; none where it is no URL.
    pub(crate) fn named_forms(&self, authority: &str, target: &str) -> Vec<Target> {
        let authority = Authority::parse(Bytes::copy_from_slice(authority.as_bytes()), Scheme::Http);
        let target = Target::parse(Bytes::copy_from_slice(target.as_bytes()));
        match (authority, target) {
            (Ok(authority), Ok(target)) => self.forms(&authority, &target),
            _ => Vec::new(),
        }
    }

    /// A URL in every form in which its site may key it. One that no site takes any more may still be stored.
    pub(crate) fn forms(&self, authority: &Authority, target: &Target) -> Vec<Target> {
        let plan = Arc::clone(&self.worker_plan.load().plan);
        match plan.router.site(authority.host()) {
            Some((_, site)) => site.forms(target, key::normalise),
            None => vec![target.clone()],
        }
    }

    /// The hosts of the site that a host belongs to.
    pub fn scope_of(&self, host: &str) -> Option<Arc<Scope>> {
        let plan = Arc::clone(&self.worker_plan.load().plan);
        let (own, _) = plan.router.site(host)?;
        let (mut hosts, mut otherwise) = (Vec::new(), false);
        for (index, site) in plan.router.sites().enumerate() {
            otherwise |= index == own && site.settings.hosts.is_empty();
            hosts.extend(site.settings.hosts.iter().map(|host| (host.clone(), index == own)));
        }
        let hosts = hosts.iter().map(|(host, is_in)| (host.as_str(), *is_in));
        Some(Arc::new(Scope::of_sites(hosts, otherwise)))
    }

    /// The last purges, newest first.
    pub fn purges(&self) -> Vec<AuditEntry> {
        self.proxy.purges.audit.all().iter().map(|record| self.proxy.purge_receipt(record)).collect()
    }

    /// The purge of this name, where it is among the last.
    pub fn purge_of(&self, id: &str) -> Option<AuditEntry> {
        self.proxy.purges.audit.find(id).map(|record| self.proxy.purge_receipt(&record))
    }

    /// How many predicates are kept.
    pub fn predicates(&self) -> PredicateCounts {
        self.proxy.invalidations.predicate_counts()
    }
}

/// Whether the fleet is told of a purge, or has told it.
#[derive(Debug)]
enum Shared {
    WithOthers,
    /// Who has told it learns that it is in force.
    FromOthers(oneshot::Sender<()>),
}

impl Proxy {
    /// A purge as it is now.
    fn purge_receipt(&self, record: &Record) -> AuditEntry {
        record.receipt(self.fleet_receipt(record.sharing.as_ref()))
    }
}

/// The plain files that a purge removes at once.
struct Filed {
    files: Vec<StoredFile>,
    trees: Vec<StoredTree>,
}

/// Waits until every journal holds what was noted, and plain files are gone.
///
/// # Errors
/// Why one does not, in words.
async fn written_down(stores: &[Arc<Store>], filed: &Filed, wait: Duration) -> Result<(), String> {
    let synced = async {
        let removed = join_all(filed.files.iter().map(StoredFile::remove)).await;
        let cleared = join_all(filed.trees.iter().map(StoredTree::remove)).await;
        let synced = join_all(stores.iter().map(|store| store.sync())).await;
        removed.into_iter().chain(cleared).chain(synced).collect::<Result<(), Failure>>()
    };
    in_time(wait, synced).await
}

/// The same of any such wait.
async fn in_time(wait: Duration, synced: impl Future<Output = Result<(), Failure>>) -> Result<(), String> {
    match tokio::time::timeout(wait, synced).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(why)) => {
            let mut text = why.to_string();
            let mut cause = why.source();
            while let Some(error) = cause {
                text.push_str(&format!(": {error}"));
                cause = error.source();
            }
            Err(text)
        }
        Err(_) => Err(format!("a journal or a server has not confirmed it within {} s", wait.as_secs_f64())),
    }
}

/// Tries on until the journals hold it, or nobody can hope for that any more.
async fn try_on(stores: Vec<Arc<Store>>, filed: Filed, record: Arc<Record>) {
    let mut pause = PAUSE_MIN;
    for _ in 0..TRIES_MAX {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
        let not_held = written_down(&stores, &filed, SYNC_TIME).await.err();
        let is_held = not_held.is_none();
        if let Some(ended) = record.ended.lock().as_mut() {
            ended.not_held = not_held;
        }
        if is_held {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_purge_waits_for_its_journals_no_longer_than_it_was_told() {
        let (begun, wait) = (Instant::now(), Duration::from_millis(20));
        let why = in_time(wait, std::future::pending()).await;
        assert_eq!(why, Err("a journal or a server has not confirmed it within 0.02 s".to_owned()));
        assert!((wait..SYNC_TIME).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        assert_eq!(in_time(SYNC_TIME, std::future::ready(Ok(()))).await, Ok(()));
        let broken = std::future::ready(Err("the disk is gone".into()));
        assert_eq!(in_time(SYNC_TIME, broken).await, Err("the disk is gone".to_owned()));
    }
}
