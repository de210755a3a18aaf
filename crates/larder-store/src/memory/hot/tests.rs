#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::os::unix::fs::FileExt;

use proptest::prelude::*;

use super::super::tests::{NOW, head, key, put, request, response, store};
use super::*;
use crate::memory::{MemoryStore, Selection};

const CAP: u64 = 64 << 20;

fn find(store: &MemoryStore, hot: &HotCache, path: &str) -> Option<Held> {
    match store.lookup(Some(hot), &key(path), NOW, |_| true) {
        Selection::Selected(held) => Some(held),
        _ => None,
    }
}

fn is_near(store: &MemoryStore, hot: &HotCache, path: &str) -> bool {
    matches!(find(store, hot, path), Some(Held::HotCache(_)))
}

fn heat(store: &MemoryStore, hot: &HotCache, path: &str) {
    // The first few are for the index: until it counts a use fully.
    (0..FINDS_MIN + 4).for_each(|_| drop(find(store, hot, path)));
}

#[test]
fn what_is_asked_for_often_is_found_without_touching_what_workers_share() {
    let (store, hot) = (store(CAP), HotCache::new(1));
    let key = key("/a");
    let stored = response(&store, &key, head(&request(&[]), None), 1000).unwrap();
    assert!(store.insert(&key, Arc::clone(&stored), |_| true, || true));
    let counted = store.counted(key.hash());
    for _ in 1..FINDS_MIN {
        assert!(matches!(find(&store, &hot, "/a"), Some(Held::Shared(_))));
    }
    heat(&store, &hot, "/a");
    let before = Arc::strong_count(&stored);
    let writer = counted.shard.write();
    let held = find(&store, &hot, "/a").unwrap();
    let (fields, pieces) = (held.fields(), held.clone().into_pieces());
    drop(writer);
    assert_eq!(Arc::strong_count(&stored), before);
    assert!(Arc::ptr_eq(&held, &stored));
    assert_eq!(pieces.pieces()[0].len(), 1000);
    assert!(std::ptr::eq(fields.prepared(), &*stored.head.fields));
}

#[test]
fn a_change_of_the_shard_is_seen_at_once() {
    let (store, hot) = (store(CAP), HotCache::new(1));
    assert!(put(&store, "/a", 1000));
    heat(&store, &hot, "/a");
    assert!(is_near(&store, &hot, "/a"));
    assert!(put(&store, "/a", 2000));
    for _ in 0..3 {
        let held = find(&store, &hot, "/a").unwrap();
        assert!(held.body.length() == 2000 && matches!(held, Held::Shared(_)), "its uses count first");
    }
    assert!(is_near(&store, &hot, "/a"), "it is as hot as before");
    store.invalidate(&key("/a"));
    assert!(find(&store, &hot, "/a").is_none());
}

#[test]
fn a_use_that_eviction_takes_away_is_counted_again() {
    let (store, hot) = (store(CAP / 8), HotCache::new(1));
    assert!(put(&store, "/hot", 1000));
    heat(&store, &hot, "/hot");
    // Several times what the store holds, of which nothing is asked for again.
    for n in 0..10_000 {
        assert!(put(&store, &format!("/{n}"), 1000));
        if n % 100 == 0 {
            assert!(find(&store, &hot, "/hot").is_some(), "evicted after {n}");
        }
    }
    assert!(store.usage().evicted_for_room > 5_000);
}

#[test]
fn with_variants_the_index_decides() {
    let (store, hot) = (store(CAP), HotCache::new(1));
    let key = key("/a");
    for language in ["de", "en"] {
        let head = head(&request(&[("accept-language", language)]), Some("accept-language"));
        let variant = response(&store, &key, head, 1000).unwrap();
        assert!(store.insert(&key, variant, |_| false, || true));
    }
    heat(&store, &hot, "/a");
    assert!(!is_near(&store, &hot, "/a"));
}

#[test]
fn all_handles_together_are_small_beside_their_store() {
    for (workers, handles) in [(1, 3), (2, 1)] {
        let (store, hot) = (store(CAP), HotCache::new(workers));
        let paths = in_slots_of_their_own(5);
        let has_handle = |path: &&String| {
            assert!(put(&store, path, (CAP / 16 / 3) as usize - 2048));
            heat(&store, &hot, path);
            is_near(&store, &hot, path)
        };
        assert_eq!(paths.iter().filter(has_handle).count(), handles, "{workers}");
    }
}

fn in_slots_of_their_own(count: usize) -> Vec<String> {
    let mut slots = std::collections::HashSet::new();
    (0..).map(|n| format!("/{n}")).filter(|path| slots.insert(slot_of(&key(path)))).take(count).collect()
}

/// Heats until a body of the right size has its copy.
fn heat_for_copy(store: &MemoryStore, hot: &HotCache, path: &str) -> Arc<dyn Pieces> {
    heat(store, hot, path);
    (0..HITS_FOR_COPY).for_each(|_| drop(find(store, hot, path)));
    find(store, hot, path).unwrap().into_pieces()
}

#[test]
fn a_hot_body_of_some_size_can_be_sent_from_a_file_that_is_counted() {
    for (bytes, has_one) in [(16_383, false), (16_384, true), (60_000, true), (131_073, false)] {
        let (store, hot) = (store(CAP), HotCache::new(1));
        assert!(put(&store, "/a", bytes));
        let before = store.usage().bytes;
        let pieces = heat_for_copy(&store, &hot, "/a");
        let more = store.usage().bytes - before;
        let Some(file) = pieces.file() else {
            assert!(!has_one && more == 0, "{bytes}");
            continue;
        };
        assert!(has_one && more == (bytes as u64).next_multiple_of(4096), "{bytes}: {more}");
        let mut content = vec![0; bytes];
        let file = File::from(file.try_clone_to_owned().unwrap());
        file.read_exact_at(&mut content, 0).unwrap();
        assert_eq!(content, pieces.pieces().concat());
        store.invalidate(&key("/a"));
        assert!(find(&store, &hot, "/a").is_none());
        drop(pieces);
        assert_eq!(store.usage().bytes, 0);
    }
}

#[test]
fn what_is_confirmed_before_each_use_gets_no_copy() {
    let (store, hot) = (store(CAP), HotCache::new(1));
    let key = key("/a");
    assert!(put(&store, "/a", 20_000));
    for _ in 0..100 {
        let held = find(&store, &hot, "/a").unwrap();
        let new = response(&store, &key, head(&request(&[]), None), 20_000).unwrap();
        assert!(store.replace(&key, &held, new, || true));
    }
    assert_eq!(hot.files.load(Ordering::Relaxed), 0);
}

#[test]
fn so_many_copies_are_open_and_no_more_however_slowly_they_are_read() {
    let (store, mut hot) = (store(CAP), HotCache::new(1));
    hot.files_max = 2;
    let mut held = Vec::new();
    for path in in_slots_of_their_own(3) {
        assert!(put(&store, &path, 20_000));
        let pieces = heat_for_copy(&store, &hot, &path);
        held.push(pieces.file().is_some().then_some(pieces));
        store.invalidate(&key(&path));
        assert!(find(&store, &hot, &path).is_none());
    }
    assert_eq!(held.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false]);
    drop(held);
    assert_eq!(hot.files.load(Ordering::Relaxed), 0);
}

#[test]
fn what_handles_hold_does_not_keep_a_smaller_store_from_storing() {
    let (store, hot) = (store(CAP), HotCache::new(1));
    let paths = in_slots_of_their_own(40);
    for path in &paths {
        assert!(put(&store, path, 60_000));
        heat_for_copy(&store, &hot, path);
    }
    store.resize(&crate::MemoryStoreSettings { memory: 200_000, max_object: 200_000 });
    assert!(store.usage().bytes > 200_000, "handles hold some of it");
    for path in &paths {
        assert!(find(&store, &hot, path).is_none());
    }
    assert_eq!(store.usage().bytes, 0);
    assert!(put(&store, "/a", 1000));
}

#[test]
fn two_stores_are_told_apart() {
    let (one, other, hot) = (store(CAP), store(CAP), HotCache::new(1));
    assert!(put(&one, "/a", 1000) && put(&other, "/a", 2000));
    heat(&one, &hot, "/a");
    assert_eq!(find(&other, &hot, "/a").unwrap().body.length(), 2000);
    assert_eq!(find(&one, &hot, "/a").unwrap().body.length(), 1000);
}

/// Two keys of one slot.
fn rivals() -> (String, String) {
    let first = "/0".to_owned();
    let rival = (1..).map(|n| format!("/{n}")).find(|path| slot_of(&key(path)) == slot_of(&key(&first)));
    (first, rival.unwrap())
}

#[test]
fn a_rival_takes_the_slot_when_it_is_asked_for_more_and_not_before() {
    let (store, hot) = (store(CAP), HotCache::new(1));
    let (first, rival) = rivals();
    assert!(put(&store, &first, 1000) && put(&store, &rival, 1000));
    heat(&store, &hot, &first);
    for _ in 0..200 {
        assert!(is_near(&store, &hot, &first) && is_near(&store, &hot, &first));
        assert!(!is_near(&store, &hot, &rival));
    }
    for _ in 0..2 * FINDS_MAX {
        drop(find(&store, &hot, &rival));
    }
    assert!(is_near(&store, &hot, &rival) && !is_near(&store, &hot, &first));
}

#[test]
fn what_has_left_the_index_is_let_go_of_when_its_slot_is_met() {
    let (store, hot) = (store(CAP), HotCache::new(1));
    let (first, rival) = rivals();
    assert!(put(&store, &first, 1000));
    heat(&store, &hot, &first);
    let handle = match find(&store, &hot, &first) {
        Some(Held::HotCache(handle)) => Arc::downgrade(&handle),
        _ => panic!(),
    };
    store.invalidate(&key(&first));
    assert!(handle.strong_count() > 0);
    assert!(find(&store, &hot, &rival).is_none());
    assert_eq!(handle.strong_count(), 0);
}

#[test]
fn nobody_finds_what_was_replaced_before_they_looked() {
    let store = store(CAP);
    let published = std::sync::atomic::AtomicU64::new(0);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (hot, mut hits) = (HotCache::new(2), 0);
                while !is_over.load(Ordering::Relaxed) {
                    let at_least = published.load(Ordering::Acquire);
                    let Some(held) = find(&store, &hot, "/a") else { continue };
                    assert!(held.body.length() >= at_least);
                    hits += u64::from(matches!(held, Held::HotCache(_)));
                }
                assert!(hits > 0, "no handle was ever used");
            });
        }
        for number in 1..3000 {
            assert!(put(&store, "/a", number));
            published.store(number as u64, Ordering::Release);
            // Long enough for a handle now and then.
            (0..number % 100).for_each(|_| drop(find(&store, &HotCache::new(2), "/b")));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[derive(Clone, Debug)]
enum Act {
    Put(u8, u16),
    Find(u8),
    FindOften(u8),
    Invalidate(u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..8u8, 0..3000u16).prop_map(|(k, b)| Act::Put(k, b)),
        (0..8u8).prop_map(Act::Find),
        (0..8u8).prop_map(Act::FindOften),
        (0..8u8).prop_map(Act::Invalidate),
    ]
}

proptest! {
    /// Two workers find the same, whatever either has handles of, and it is what a plain map has.
    #[test]
    fn a_handle_never_finds_what_the_index_would_not(acts in prop::collection::vec((act(), 0..2usize), 1..200)) {
        let store = store(CAP);
        let nears = [HotCache::new(2), HotCache::new(2)];
        let mut model = std::collections::HashMap::new();
        for (act, worker) in acts {
            match act {
                Act::Put(k, bytes) => {
                    let is_stored = put(&store, &format!("/{k}"), bytes.into());
                    prop_assert!(is_stored);
                    model.insert(k, u64::from(bytes));
                }
                Act::Find(k) => {
                    let found = find(&store, &nears[worker], &format!("/{k}"));
                    prop_assert_eq!(found.map(|held| held.body.length()), model.get(&k).copied());
                }
                Act::FindOften(k) => heat(&store, &nears[worker], &format!("/{k}")),
                Act::Invalidate(k) => {
                    store.invalidate(&key(&format!("/{k}")));
                    model.remove(&k);
                }
            }
        }
    }
}
