//! Everything once, wherever it lies; and pages that end.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use larder_http::time::Clock;
use proptest::prelude::*;

use super::*;
use crate::behind::Folders;
use crate::memory::MemoryStoreSettings;
use crate::memory::tests::{head, key, request};
use crate::stored::StoredBody;
use larder_disk::{Disks, Layout};

const MEMORY: MemoryStoreSettings = MemoryStoreSettings { memory: 8 << 20, max_object: 8 << 20 };

fn keep(store: &Arc<Store>, key: &CacheKey, language: Option<&'static str>, length: usize) {
    let room = || store.reserve(length as u64 + 2000).unwrap();
    let body = StoredBody::new(vec![Bytes::from(vec![b'x'; length])], room());
    let asked: Vec<_> = language.map(|language| ("accept-language", language)).into_iter().collect();
    let head = head(&request(&asked), language.map(|_| "accept-language"));
    let response = StoredResponse::new(head, Arc::new(body), 0, room());
    let identity = response.identity();
    assert!(store.insert(key, Arc::new(response), |other| other.identity() == identity, || true));
}

fn written(disks: &Disks) {
    let until = Instant::now() + Duration::from_secs(20);
    while disks.usage().0.iter().any(|(_, usage)| usage.queued_bytes > 0 || usage.queued_objects > 0) {
        assert!(Instant::now() < until, "{:?}", disks.usage());
        std::thread::yield_now();
    }
}

/// All pages: what was met, how often, and how many pages there were. Cursors go by their text.
fn all(store: &Store, most: usize, wanted: &dyn Fn(&[u8]) -> bool) -> (Vec<ListedResponse>, u64) {
    let (mut entries, mut unreadable, mut from) = (Vec::new(), 0, None);
    for _ in 0..10_000 {
        let mut page = store.list(from, most, Clock::default().now(), wanted).unwrap();
        assert!(page.entries.len() <= most, "a page is bounded");
        entries.append(&mut page.entries);
        unreadable += page.unreadable;
        match page.next {
            Some(next) => from = Some(next.to_string().parse().unwrap()),
            None => return (entries, unreadable),
        }
    }
    panic!("it does not end");
}

fn told(entries: &[ListedResponse]) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    for entry in entries {
        *told.entry(String::from_utf8_lossy(entry.key.base()).into_owned()).or_default() += 1;
    }
    told
}

#[test]
fn everything_in_memory_is_met_once() {
    let store = Store::in_memory(&MEMORY);
    for number in 0..2000 {
        keep(&store, &key(&format!("/{number}")), None, 10);
    }
    store.mark_hit_for_miss(&key("/mark"), Duration::MAX);
    store.invalidate(&key("/7"), 1);
    let (entries, _) = all(&store, 100, &|_| true);
    let told = told(&entries);
    assert_eq!((entries.len(), told.len(), told.get("example.com/7")), (1999, 1999, None));
    let one = &entries[0];
    assert_eq!((one.scheme, one.authority.as_str(), one.body_bytes), (Scheme::Http, "example.com", 10));
    assert!(one.is_in_memory && one.disks.is_empty() && one.target().starts_with(b"/"));
    assert_eq!(all(&store, 3, &|_| true).0.len(), 1999, "whatever the size of pages");
    let (few, _) = all(&store, 7, &|base| base.starts_with(b"example.com/19"));
    assert_eq!(few.len(), 111);
}

#[test]
fn everything_on_disks_is_met_once_before_and_after_a_restart() {
    for (layout, sizes) in [
        (Layout::Single, &[64][..]),
        (Layout::Mirror, &[64, 64]),
        (Layout::Stripe, &[64, 64, 64]),
        (Layout::Hash, &[64, 128]),
    ] {
        let folders = Folders::new();
        {
            let disks = folders.disks(layout, sizes);
            let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
            for number in 0..500 {
                keep(&store, &key(&format!("/{number}")), None, 100);
            }
            keep(&store, &key("/large"), None, 600 * 1024);
            for language in ["de", "fr"] {
                keep(&store, &key("/varies"), Some(language), 100);
            }
            written(&disks);
            let (entries, unreadable) = all(&store, 100, &|_| true);
            assert_eq!((entries.len(), unreadable), (503, 0), "{layout:?}");
            assert!(entries.iter().all(|entry| entry.is_in_memory), "{layout:?}");
            disks.close();
        }
        let disks = folders.disks(layout, sizes);
        let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
        keep(&store, &key("/new"), None, 100);
        written(&disks);
        let (entries, unreadable) = all(&store, 100, &|_| true);
        assert_eq!((entries.len(), unreadable), (504, 0), "{layout:?}");
        let told = told(&entries);
        assert_eq!((told.len(), told["example.com/varies"]), (503, 2), "{layout:?}");
        for entry in &entries {
            assert_eq!(entry.is_in_memory, entry.target() == b"/new", "{layout:?}");
            let copies = if layout == Layout::Mirror { 2 } else { 1 };
            assert_eq!(entry.disks.len(), copies, "{layout:?}");
        }
        let large = entries.iter().find(|entry| entry.target() == b"/large").unwrap();
        assert_eq!(large.body_bytes, 600 * 1024);
    }
}

#[tokio::test]
async fn all_under_a_url_is_found_with_its_body_and_nothing_else() {
    let folders = Folders::new();
    let now = Clock::default().now();
    let url = key("/varies");
    {
        let disks = folders.disks(Layout::Mirror, &[64, 64]);
        let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
        keep(&store, &url, Some("de"), 100);
        keep(&store, &url, Some("fr"), 600 * 1024);
        keep(&store, &url.of_parts(), None, 50);
        keep(&store, &key("/varies/not"), None, 100);
        written(&disks);
        assert_eq!(store.under(&url, now).len(), 3);
        disks.close();
    }
    let disks = folders.disks(Layout::Mirror, &[64, 64]);
    let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
    keep(&store, &url, Some("de"), 200);
    written(&disks);
    let entries = store.under(&url, now);
    let mut lengths: Vec<u64> = entries.iter().map(|entry| entry.body_bytes).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [50, 200, 600 * 1024]);
    for entry in &entries {
        let read = match store.body_of(entry).await.unwrap() {
            Body::Full(bytes) => bytes.len(),
            Body::Pieces { owner, .. } => owner.pieces().concat().len(),
            Body::Stream { stream, .. } => stream.collect().await.unwrap().to_bytes().len(),
            Body::Empty => 0,
        };
        assert_eq!(read as u64, entry.body_bytes);
    }
    store.invalidate(&url, 1);
    assert!(store.under(&url, now).is_empty());
}

#[test]
fn what_is_damaged_is_counted_and_left_out() {
    let folders = Folders::new();
    {
        let disks = folders.disks(Layout::Single, &[64]);
        let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
        (0..3).for_each(|number| keep(&store, &key(&format!("/{number}")), None, 100));
        written(&disks);
        disks.close();
    }
    let disks = folders.disks(Layout::Single, &[64]);
    let segments =
        std::fs::read_dir(disks.disks().next().unwrap().path()).unwrap().map(|entry| entry.unwrap().path());
    for path in segments.filter(|path| path.extension().is_some_and(|kind| kind == "seg")) {
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(13).position(|window| window == b"example.com/1");
        if let Some(at) = at {
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
    }
    let store = Store::new(&MEMORY, Some(disks));
    let (entries, unreadable) = all(&store, 100, &|_| true);
    assert_eq!((entries.len(), unreadable), (2, 1));
}

#[test]
fn a_place_that_is_none_is_refused_and_one_beyond_the_end_is_the_end() {
    for text in ["", "m", "m1", "m1-", "m-1", "d", "1", "1d", "x", "m1-1-1", "mffffffffffffffffff-0"] {
        assert_eq!(text.parse::<Cursor>(), Err(NoCursor), "{text}");
    }
    // What the tier itself says is none.
    let folders = Folders::new();
    let with_disk = Store::new(&MEMORY, Some(folders.disks(Layout::Single, &[64])));
    for text in ["d-", "d0-1", "d0-1-g"] {
        let page = with_disk.list(Some(text.parse().unwrap()), 100, Clock::default().now(), &|_| true);
        assert_eq!(page.err(), Some(NoCursor), "{text}");
    }
    let store = Store::in_memory(&MEMORY);
    for text in ["m40-0", "mffff-ffffff", "m0-ffffffffffffffff", "d7", "1d7", "x0-0"] {
        let mut from = Some(text.parse().unwrap());
        for _ in 0..200 {
            let page = store.list(from, 100, Clock::default().now(), &|_| true).unwrap();
            assert!(page.entries.is_empty());
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(from, None, "{text}");
    }
}

proptest! {
    #[test]
    fn a_place_is_the_same_after_its_text(disk in 0..9_usize, shard in any::<usize>(), slot in any::<usize>(), after in any::<u64>()) {
        let from: larder_disk::engine::DiskCursor = format!("{shard:x}-{after:x}").parse().unwrap();
        for at in [
            At::Memory(MemoryCursor { shard, slot }),
            At::Tier(0, 'd', format!("{disk:x}")),
            At::Tier(0, 'd', format!("{disk:x}-{from}")),
        ] {
            prop_assert_eq!(Cursor(at.clone()).to_string().parse(), Ok(Cursor(at)));
        }
    }

    #[test]
    fn no_text_breaks_it(text in "[mdf]?[0-9a-f-]{0,40}") {
        if let Ok(cursor) = text.parse::<Cursor>() {
            assert!(Store::in_memory(&MEMORY).list(Some(cursor), 100, Clock::default().now(), &|_| true).is_ok());
        }
    }
}
