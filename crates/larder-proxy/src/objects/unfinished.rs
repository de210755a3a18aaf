//! Walks that do not meet everything: nothing retires, since a purged response may lie where they did not come.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Weak;
use std::thread;
use std::time::{Duration, Instant};

use larder_cache::purge::{Mode, Predicate, Scope, What};
use larder_files::{FileStore, FilesSettings};
use larder_http::time::Clock;
use larder_store::Store;

use super::sweep::walk;
use super::sweeping::{SETTINGS, on_disks, started};
use super::*;
use crate::proxy::Proxy;

fn purge(proxy: &Proxy) -> u64 {
    let predicate =
        Predicate { what: What::Host("a.org".into()), scope: Arc::new(Scope::any()), mode: Mode::Hard };
    proxy.invalidations.enter(&predicate, None)
}

fn names(proxy: &Proxy) -> u64 {
    proxy.invalidations.predicate_counts().names
}

fn on_files(folder: &Path) -> Arc<Store> {
    Store::new(&SETTINGS, Some(FileStore::open(&FilesSettings::new(folder, 1 << 30)).unwrap()))
}

#[test]
fn a_directory_of_plain_files_that_is_absent_was_not_walked_through() {
    let (clock, folder) = (Clock::default(), tempfile::tempdir().unwrap());
    let directory = folder.path().join("files");
    std::fs::write(&directory, "no directory").unwrap();
    let fixture = started(on_files(&directory), clock);
    let proxy = &fixture.worker.proxy;
    purge(proxy);
    walk(&Arc::downgrade(&fixture.worker));
    assert_eq!(names(proxy), 1);
    std::fs::remove_file(&directory).unwrap();
    std::fs::create_dir(&directory).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while fixture.stores[0].1.figures().iter().any(|figures| figures.state == "absent") {
        assert!(Instant::now() < until, "it is taken up again");
        thread::yield_now();
    }
    walk(&Arc::downgrade(&fixture.worker));
    assert_eq!(names(proxy), 0);
    fixture.stores[0].1.close();
}

/// Has `act` happen while a walk is under way, when it has noted what there is and has looked at nothing yet. The lock of sweeps through
/// memory stands before that. A walk that has noted the stores holds another count of each.
fn in_the_midst_of_a_walk(worker: Weak<Worker>, store: &Arc<Store>, act: impl FnOnce()) {
    let proxy = Arc::clone(&worker.upgrade().unwrap().proxy);
    let before = Arc::weak_count(store);
    thread::scope(|scope| {
        let turn = proxy.sweeps.last.lock();
        scope.spawn(move || walk(&worker));
        while Arc::weak_count(store) == before {
            thread::yield_now();
        }
        act();
        drop(turn);
    });
}

#[test]
fn nothing_retires_where_a_reload_closes_a_store_meanwhile() {
    let (clock, folder) = (Clock::default(), tempfile::tempdir().unwrap());
    for is_closed in [true, false] {
        let fixture = started(Store::in_memory(&SETTINGS), clock.clone());
        let proxy = Arc::clone(&fixture.worker.proxy);
        // Of another config than the worker's, so that nobody else holds it.
        let removed = on_disks(folder.path(), 1, &clock);
        proxy.recover(std::slice::from_ref(&removed), &|_| Default::default());
        purge(&proxy);
        let mut closed = None;
        in_the_midst_of_a_walk(Arc::downgrade(&fixture.worker), &fixture.stores[0].1, || {
            closed = Some(match is_closed {
                true => proxy.reach.part(removed).map(|(store, _)| store.close()),
                false => Err(removed),
            });
        });
        assert_eq!(names(&proxy), u64::from(is_closed));
        match closed.unwrap() {
            Ok(()) => {}
            Err(removed) => removed.close(),
        }
    }
}

#[test]
fn nothing_retires_where_larder_ends_meanwhile() {
    let (clock, folder) = (Clock::default(), tempfile::tempdir().unwrap());
    let fixture = started(on_disks(folder.path(), 1, &clock), clock);
    let (proxy, store) = (Arc::clone(&fixture.worker.proxy), Arc::clone(&fixture.stores[0].1));
    purge(&proxy);
    let walked = proxy.sweeps.schedule.lock().walked;
    in_the_midst_of_a_walk(Arc::downgrade(&fixture.worker), &store, || drop(fixture));
    assert_eq!((names(&proxy), proxy.sweeps.schedule.lock().walked), (1, walked));
    store.close();
}
