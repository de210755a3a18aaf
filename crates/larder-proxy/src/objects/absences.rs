//! Stores that were away while something was invalidated: closed by a reload, or left out of the config at a start. Nothing that they hold
//! is used when they are back, whatever else has forgotten the purge meanwhile.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use larder_cache::Verdict;
use larder_cache::purge::{Mode, Predicate, Selector, What};
use larder_disk::engine::{DiskSettings, DiskSize};
use larder_disk::{Disks, Layout};
use larder_files::{FileStore, FilesSettings};
use larder_http::time::Clock;
use larder_store::Store;

use super::sweep::walk;
use super::sweeping::{SETTINGS, purge, put, tag};
use super::tests::Fixture;
use super::*;
use crate::invalidation::note_of;

/// In what the store lies that was away.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Disk,
    Files,
}

/// One of the stores that a larder may have, by their names.
fn store(folder: &Path, name: &str, kind: Kind, clock: &Clock) -> Arc<Store> {
    let path = folder.join(name);
    match kind {
        Kind::Disk => {
            let disk =
                DiskSettings { path, size: DiskSize::Bytes(64 << 20), idle: None, files: Default::default() };
            Store::new(&SETTINGS, Some(Disks::unopened(Layout::Single, vec![disk], 1 << 20, clock)))
        }
        Kind::Files => {
            let files = FileStore::open(&FilesSettings::new(path, 1 << 30)).unwrap();
            while files.refuses() == Some(larder_files::Refused::Counting) {
                std::thread::yield_now();
            }
            Store::new(&SETTINGS, Some(files))
        }
    }
}

/// A larder with these stores, as it is after a start.
struct Larder<'a> {
    folder: &'a Path,
    kind: Kind,
    fixture: Fixture,
}

impl<'a> Larder<'a> {
    fn start(folder: &'a Path, kind: Kind, names: &[&str]) -> Self {
        let clock = Clock::default();
        let named = |name: &&str| {
            // What stays is on a disk.
            let kind = if *name == "away" { kind } else { Kind::Disk };
            ((*name).to_owned(), store(folder, name, kind, &clock))
        };
        let mut stores: Vec<_> = names.iter().map(named).collect();
        if stores.is_empty() {
            stores.push(("memory".to_owned(), Store::in_memory(&SETTINGS)));
        }
        let fixture = Fixture::of(stores, clock, tempfile::tempdir().unwrap());
        Self { folder, kind, fixture }
    }

    /// The store that will be away, as a reload adds it: no plan has it, so it can be closed while this larder runs.
    fn add(&self) -> Arc<Store> {
        let added = store(self.folder, "away", self.kind, &self.fixture.clock);
        self.fixture.worker.proxy.recover(std::slice::from_ref(&added), &|_| Default::default());
        added
    }

    /// As a reload removes it.
    fn remove(&self, store: Arc<Store>) -> crate::Heard {
        let Ok((store, heard)) = self.fixture.worker.proxy.reach.part(store) else {
            unreachable!("nobody uses it")
        };
        store.close();
        heard
    }

    fn named(&self, name: &str) -> &Arc<Store> {
        self.fixture.stores.iter().find(|(other, _)| other == name).map(|(_, store)| store).unwrap()
    }

    /// Purges, and forgets that: a walk has met everything, and the journals have taken stock.
    async fn purge(&self, what: Selector) {
        purge(&self.fixture, what, Mode::Hard).await;
        walk(&Arc::downgrade(&self.fixture.worker));
        assert_eq!(self.fixture.worker.predicates().names, 0, "it has retired");
        self.fixture.stores.iter().for_each(|(_, store)| store.take_stock());
    }

    fn end(self) {
        self.fixture.stores.iter().for_each(|(_, store)| {
            assert!(store.settle());
            store.close();
        });
    }

    /// Whether what was stored there under this target is used.
    fn uses(&self, store: &Store, target: &str) -> bool {
        self.verdict(store, target) == Some(Verdict::Good)
    }

    fn verdict(&self, store: &Store, target: &str) -> Option<Verdict> {
        let (mut found, mut from) = (None, None);
        let key = larder_store::CacheKey::new("example.com", target);
        loop {
            let now = self.fixture.clock.now();
            let mut look = |met: &larder_store::walk::Met<'_>| {
                if met.key.base() == key.base() {
                    let invalidations = &self.fixture.worker.proxy.invalidations;
                    found = Some(invalidations.verdict_of(met.key, met.head, met.number));
                }
                false
            };
            let walked = store.walk_tier(0, from.as_deref(), now, &mut look).unwrap();
            from = walked.next;
            if from.is_none() {
                return found;
            }
        }
    }
}

const TAGGED: [(&str, &str); 1] = [("surrogate-key", "a")];

/// What was purged, by something that retires and by something that each store takes out itself.
fn purges() -> [Selector; 2] {
    [tag("a"), Selector::Url("http://example.com/a".into())]
}

const KINDS: [Kind; 2] = [Kind::Disk, Kind::Files];

#[tokio::test]
async fn a_store_that_a_reload_closed_is_believed_after_a_restart_only_if_it_missed_nothing() {
    for kind in KINDS {
        for others in [&["stays"][..], &[]] {
            for purged in purges().map(Some).into_iter().chain([None]) {
                let folder = tempfile::tempdir().unwrap();
                let larder = Larder::start(folder.path(), kind, others);
                let away = larder.add();
                put(&larder.fixture, &away, "/a", &TAGGED);
                // Of this it has heard.
                purge(&larder.fixture, tag("other"), Mode::Hard).await;
                assert!(away.settle() && larder.uses(&away, "/a"));
                larder.remove(away);
                let is_purged = purged.is_some();
                if let Some(purged) = purged {
                    larder.purge(purged).await;
                }
                larder.end();
                let all: Vec<&str> = others.iter().copied().chain(["away"]).collect();
                let larder = Larder::start(folder.path(), kind, &all);
                let is_used = larder.uses(larder.named("away"), "/a");
                // Where nobody else is left to tell, it may have missed something.
                assert_eq!(is_used, !is_purged && !others.is_empty(), "{kind:?} {others:?} {is_purged}");
                larder.end();
            }
        }
    }
}

#[tokio::test]
async fn a_store_that_a_reload_brought_back_unchanged_is_believed_by_the_next_start() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let larder = Larder::start(folder.path(), kind, &[]);
        let away = larder.add();
        put(&larder.fixture, &away, "/a", &TAGGED);
        purge(&larder.fixture, tag("other"), Mode::Hard).await;
        assert!(away.settle());
        let heard = larder.remove(away);
        let away = store(folder.path(), "away", kind, &larder.fixture.clock);
        larder.fixture.worker.proxy.recover(std::slice::from_ref(&away), &|_| Some(heard));
        assert!(larder.uses(&away, "/a"), "{kind:?}");
        away.close();
        drop(away);
        larder.end();
        let larder = Larder::start(folder.path(), kind, &["away"]);
        assert!(larder.uses(larder.named("away"), "/a"), "{kind:?}");
        larder.end();
    }
}

#[tokio::test]
async fn a_store_that_was_left_out_at_a_start_is_believed_only_if_it_missed_nothing() {
    for kind in KINDS {
        for purged in purges().map(Some).into_iter().chain([None]) {
            let folder = tempfile::tempdir().unwrap();
            let larder = Larder::start(folder.path(), kind, &["stays", "away"]);
            put(&larder.fixture, larder.named("away"), "/a", &TAGGED);
            put(&larder.fixture, larder.named("stays"), "/b", &[]);
            purge(&larder.fixture, tag("other"), Mode::Hard).await;
            larder.end();
            let larder = Larder::start(folder.path(), kind, &["stays"]);
            let is_purged = purged.is_some();
            if let Some(purged) = purged {
                larder.purge(purged).await;
            }
            larder.end();
            let larder = Larder::start(folder.path(), kind, &["stays", "away"]);
            assert_eq!(larder.uses(larder.named("away"), "/a"), !is_purged, "{kind:?}");
            assert!(larder.uses(larder.named("stays"), "/b"), "it has heard of everything");
            // What comes now is kept.
            put(&larder.fixture, larder.named("away"), "/c", &TAGGED);
            larder.end();
            let larder = Larder::start(folder.path(), kind, &["away", "stays"]);
            assert!(larder.uses(larder.named("away"), "/c") && larder.uses(larder.named("stays"), "/b"));
            larder.end();
        }
    }
}

#[tokio::test]
async fn of_stores_that_were_left_out_in_turn_none_is_believed() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let larder = Larder::start(folder.path(), kind, &["stays", "away"]);
        put(&larder.fixture, larder.named("away"), "/a", &TAGGED);
        put(&larder.fixture, larder.named("stays"), "/a", &TAGGED);
        purge(&larder.fixture, tag("other"), Mode::Hard).await;
        larder.end();
        for alone in ["stays", "away"] {
            let larder = Larder::start(folder.path(), kind, &[alone]);
            // Of something that the other has, and this one has not.
            larder.purge(tag("else")).await;
            larder.end();
        }
        let larder = Larder::start(folder.path(), kind, &["stays", "away"]);
        for name in ["stays", "away"] {
            assert!(!larder.uses(larder.named(name), "/a"), "{kind:?} {name}");
        }
        larder.end();
    }
}

/// The directory of a store that is not there for now.
struct Hidden {
    there: PathBuf,
    elsewhere: PathBuf,
}

impl Hidden {
    fn away(folder: &Path) -> Self {
        let hidden = Self { there: folder.join("away"), elsewhere: folder.join("elsewhere") };
        std::fs::rename(&hidden.there, &hidden.elsewhere).unwrap();
        std::fs::write(&hidden.there, "no directory").unwrap();
        hidden
    }

    /// Until it is in use.
    fn bring_back(self, larder: &Larder<'_>) {
        std::fs::remove_file(&self.there).unwrap();
        std::fs::rename(&self.elsewhere, &self.there).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let away = larder.named("away");
        while away.figures().iter().any(|figures| figures.state == "absent") {
            assert!(Instant::now() < until, "it is there again");
            larder.fixture.worker.proxy.try_absent_disks([away].into_iter());
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

#[tokio::test]
async fn a_directory_that_comes_late_notes_what_the_others_have_noted() {
    for kind in KINDS {
        for is_purged in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let larder = Larder::start(folder.path(), kind, &["stays", "away"]);
            put(&larder.fixture, larder.named("away"), "/a", &TAGGED);
            purge(&larder.fixture, tag("other"), Mode::Hard).await;
            larder.end();
            let hidden = Hidden::away(folder.path());
            let larder = Larder::start(folder.path(), kind, &["stays", "away"]);
            // An unsafe request for something that is not stored begins a period.
            larder.fixture.worker.proxy.begin_invalidation();
            if is_purged {
                let order = larder.fixture.worker.scope_of("example.com").unwrap();
                let predicate = Predicate { what: What::All, scope: order, mode: Mode::Hard };
                let number = larder.fixture.worker.proxy.invalidations.enter(&predicate, None);
                let note = note_of(&predicate, number, larder.fixture.clock.now().wall);
                larder.fixture.stores.iter().for_each(|(_, store)| store.note(&note));
            }
            hidden.bring_back(&larder);
            assert_eq!(larder.uses(larder.named("away"), "/a"), !is_purged, "{kind:?}");
            put(&larder.fixture, larder.named("away"), "/b", &TAGGED);
            larder.end();
            let larder = Larder::start(folder.path(), kind, &["stays", "away"]);
            assert_eq!(larder.uses(larder.named("away"), "/a"), !is_purged, "{kind:?}");
            assert!(larder.uses(larder.named("away"), "/b"), "{kind:?} {is_purged}");
            larder.end();
        }
    }
}

#[tokio::test]
async fn what_others_hold_is_unproven_where_a_disk_comes_late_that_has_heard_of_more() {
    let (folder, kind) = (tempfile::tempdir().unwrap(), Kind::Disk);
    let larder = Larder::start(folder.path(), kind, &["stays", "away"]);
    put(&larder.fixture, larder.named("away"), "/a", &TAGGED);
    put(&larder.fixture, larder.named("stays"), "/b", &TAGGED);
    purge(&larder.fixture, tag("other"), Mode::Hard).await;
    larder.end();
    let larder = Larder::start(folder.path(), kind, &["away"]);
    larder.purge(tag("else")).await;
    larder.end();
    let hidden = Hidden::away(folder.path());
    let larder = Larder::start(folder.path(), kind, &["stays", "away"]);
    assert!(larder.uses(larder.named("stays"), "/b"), "nobody knows better");
    hidden.bring_back(&larder);
    assert_eq!(larder.verdict(larder.named("stays"), "/b"), Some(Verdict::Unproven));
    larder.end();
    // It stays so over a restart.
    let larder = Larder::start(folder.path(), kind, &["stays", "away"]);
    assert_ne!(larder.verdict(larder.named("stays"), "/b"), Some(Verdict::Good));
    larder.end();
}

#[tokio::test]
async fn a_new_store_costs_the_others_nothing_and_stock_keeps_who_has_heard() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let larder = Larder::start(folder.path(), kind, &["stays"]);
        put(&larder.fixture, larder.named("stays"), "/b", &[]);
        larder.purge(tag("a")).await;
        larder.end();
        // Nothing is invalidated as long as this larder runs.
        let larder = Larder::start(folder.path(), kind, &["stays", "away"]);
        put(&larder.fixture, larder.named("away"), "/a", &TAGGED);
        larder.end();
        for _ in 0..3 {
            let larder = Larder::start(folder.path(), kind, &["stays", "away"]);
            assert!(larder.uses(larder.named("stays"), "/b") && larder.uses(larder.named("away"), "/a"));
            larder.purge(tag("else")).await;
            larder.end();
        }
    }
}
