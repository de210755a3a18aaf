//! Where things go, and that they come back, layout by layout.

#![allow(clippy::unwrap_used)]

mod absent;
mod codings;
mod failing;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use proptest::prelude::*;

use std::sync::Arc;

use crate::memory::MemoryStoreSettings;
use crate::memory::tests::{head, key, request};
use crate::store::Store;
use crate::stored::{StoredBody, StoredResponse};
use bytes::Bytes;
use larder_disk::engine::Disk;
use larder_disk::engine::{DiskSettings, DiskSize};
use larder_disk::layouts::testing::regular;
use larder_disk::layouts::{AbsenceEvent, Admit};
use larder_disk::{Disks, Layout};
use larder_http::time::Clock;
use larder_tier::{CHUNK_BYTES, CacheKey, Note};

/// Folders that go with the test.
pub(crate) struct Folders(PathBuf);

impl Folders {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("larder-disks-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn open(&self, number: usize, mebibytes: u64) -> Arc<Disk> {
        let path = self.0.join(number.to_string());
        Disk::open(DiskSettings {
            path,
            size: DiskSize::Bytes(mebibytes << 20),
            idle: None,
            files: Default::default(),
        })
        .unwrap()
    }

    pub(crate) fn disks(&self, layout: Layout, sizes: &[u64]) -> Arc<Disks> {
        let disks = sizes.iter().enumerate().map(|(number, size)| self.open(number, *size));
        Disks::new(layout, disks.collect(), 1 << 30)
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const MEMORY: MemoryStoreSettings = MemoryStoreSettings { memory: 8 << 20, max_object: 8 << 20 };

fn path(number: usize) -> String {
    format!("/{number}")
}

/// Keeps a body of `length` bytes that tell where they stand, and waits until all of it is on the disks.
fn keep(store: &Arc<Store>, path: &str, length: usize) {
    let key = key(path);
    let bytes: Vec<u8> = (0..length).map(|at| at.to_le_bytes()[at % 3] ^ path.len() as u8).collect();
    let room = || store.reserve(length as u64 + 2000).unwrap();
    let body = StoredBody::new(vec![Bytes::from(bytes)], room());
    let response = StoredResponse::new(head(&request(&[]), None), Arc::new(body), 0, room());
    assert!(store.insert(&key, Arc::new(response), |_| true, || true));
}

fn written(disks: &Disks) {
    let until = Instant::now() + Duration::from_secs(20);
    while disks.usage().0.iter().any(|(_, usage)| usage.queued_bytes > 0 || usage.queued_objects > 0) {
        assert!(Instant::now() < until, "{:?}", disks.usage());
        std::thread::yield_now();
    }
}

/// What a store that has just been opened finds under `path`.
fn found(disks: &Arc<Disks>, path: &str) -> Option<Vec<u8>> {
    let store = Store::new(&MEMORY, Some(Arc::clone(disks)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let now = larder_http::time::Clock::default().now();
        store.recall(&key(path), false, now, |_| true).await;
        let crate::Selection::Selected(held) = store.lookup(None, &key(path), now.monotonic, |_| true) else {
            return None;
        };
        let length = held.body.length();
        let body = match held.into_body(0..length)? {
            larder_http::body::Body::Stream { stream, .. } => {
                stream.collect().await.ok()?.to_bytes().to_vec()
            }
            larder_http::body::Body::Pieces { owner, .. } => owner.pieces().concat(),
            _ => Vec::new(),
        };
        assert_eq!(body.len() as u64, length);
        let is_right = |(at, byte): (usize, &u8)| *byte == at.to_le_bytes()[at % 3] ^ path.len() as u8;
        assert!(body.iter().enumerate().all(is_right), "{path}: a wrong byte");
        Some(body)
    })
}

const LENGTHS: [usize; 5] = [0, 100, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 7];

#[test]
fn every_layout_gives_back_what_it_got_after_a_restart() {
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
            for (number, length) in LENGTHS.into_iter().enumerate() {
                keep(&store, &path(number), length);
                written(&disks);
            }
            store.invalidate(&key("/1"), 1);
            disks.close();
        }
        let disks = folders.disks(layout, sizes);
        for (number, length) in LENGTHS.into_iter().enumerate() {
            let expected = (number != 1).then_some(length);
            let found = found(&disks, &path(number));
            assert_eq!(found.map(|body| body.len()), expected, "{layout:?} {length}");
        }
        assert_eq!(disks.last_number(), 1);
    }
}

#[test]
fn a_mirror_survives_the_loss_of_either_disk() {
    for lost in 0..2 {
        let folders = Folders::new();
        {
            let disks = folders.disks(Layout::Mirror, &[64, 64]);
            let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
            keep(&store, "/small", 100);
            keep(&store, "/large", 2 * CHUNK_BYTES);
            disks.close();
        }
        let left = Disks::new(Layout::Mirror, vec![folders.open(1 - lost, 64)], 1 << 30);
        assert!(found(&left, "/small").is_some() && found(&left, "/large").is_some(), "without {lost}");
    }
}

#[test]
fn a_damaged_piece_is_read_from_the_other_disk_of_a_mirror() {
    let folders = Folders::new();
    {
        let disks = folders.disks(Layout::Mirror, &[64, 64]);
        let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
        keep(&store, "/large", 3 * CHUNK_BYTES);
        disks.close();
    }
    // The middle of the first disk's only segment, behind its first piece's head.
    let folder = folders.0.join("0");
    let segment = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.filter(|path| path.extension().is_some_and(|end| end == "seg")).min().unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    for byte in &mut bytes[CHUNK_BYTES / 2..CHUNK_BYTES / 2 + 64] {
        *byte ^= 0x55;
    }
    std::fs::write(&segment, bytes).unwrap();
    let disks = folders.disks(Layout::Mirror, &[64, 64]);
    assert!(found(&disks, "/large").is_some());
}

/// What is found under `path` each time that memory knows nothing of it.
fn found_bytes(disks: &Arc<Disks>, path: &str) -> Vec<Option<(u64, u8)>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let look = || {
        runtime.block_on(async {
            let store = Store::new(&MEMORY, Some(Arc::clone(disks)));
            let now = larder_http::time::Clock::default().now();
            store.recall(&key(path), false, now, |_| true).await;
            let (there, _) = store.responses(&key(path), now.monotonic);
            let stored = there.first()?;
            let body = stored.body.content(0..stored.body.length())?;
            let larder_http::body::Body::Stream { stream, .. } = body else {
                return Some((stored.number, stored.body.at(0)?[0]));
            };
            Some((stored.number, stream.collect().await.ok()?.to_bytes()[0]))
        })
    };
    (0..8).map(|_| look()).collect()
}

#[test]
fn of_two_versions_on_a_mirror_the_newer_stays() {
    for (newer, length) in [(0, 100), (1, 100), (0, 3 * CHUNK_BYTES), (1, 3 * CHUNK_BYTES)] {
        let folders = Folders::new();
        let keep = |disks: &Arc<Disks>, number: u64| {
            let store = Store::new(&MEMORY, Some(Arc::clone(disks)));
            let room = || store.reserve(length as u64 + 2000).unwrap();
            let body = StoredBody::new(vec![Bytes::from(vec![number as u8; length])], room());
            let response = StoredResponse::new(head(&request(&[]), None), Arc::new(body), number, room());
            assert!(store.insert(&key("/a"), Arc::new(response), |_| true, || true));
            written(disks);
        };
        let both = folders.disks(Layout::Mirror, &[64, 64]);
        keep(&both, 1);
        keep(&both, 2);
        assert_eq!(found_bytes(&both, "/a"), [Some((2, 2)); 8]);
        both.close();
        drop(both);
        // A crash came between the two.
        let one = Disks::new(Layout::Single, vec![folders.open(newer, 64)], 1 << 30);
        keep(&one, 3);
        one.close();
        drop(one);
        for _ in 0..2 {
            let both = folders.disks(Layout::Mirror, &[64, 64]);
            assert_eq!(found_bytes(&both, "/a"), [Some((3, 3)); 8], "newer on {newer}, {length}");
            let places = |disk: usize| {
                let disk = both.disk(disk).unwrap();
                disk.find(&disk.address(&key("/a"))).len()
            };
            assert_eq!((places(newer), places(1 - newer)), (1, 0), "the older has gone");
            both.close();
        }
        // And what is left is the newer, whatever disk is lost.
        let other = Disks::new(Layout::Mirror, vec![folders.open(1 - newer, 64)], 1 << 30);
        assert_eq!(found_bytes(&other, "/a"), [None; 8]);
    }
}

#[test]
fn a_stripe_has_its_pieces_on_all_disks() {
    let folders = Folders::new();
    let disks = folders.disks(Layout::Stripe, &[64, 64]);
    let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
    keep(&store, "/large", 8 * CHUNK_BYTES);
    written(&disks);
    for (path, usage) in disks.usage().0 {
        let pieces = usage.written_bytes / CHUNK_BYTES as u64;
        assert_eq!(pieces, 4, "{}", path.display());
    }
}

#[test]
fn shares_follow_the_sizes_and_a_disk_that_goes_moves_only_its_own() {
    let folders = Folders::new();
    let disks = folders.disks(Layout::Hash, &[64, 64, 128]);
    let keys: Vec<CacheKey> = (0..4000).map(|number| key(&path(number))).collect();
    let chosen: Vec<usize> = keys.iter().map(|key| disks.preference_of(key)[0]).collect();
    let share = |disk| chosen.iter().filter(|chosen| **chosen == disk).count();
    assert!((800..1200).contains(&share(0)) && (1800..2200).contains(&share(2)), "{}", share(2));
    let left = Disks::new(Layout::Hash, disks.disks().take(2).cloned().collect(), 1 << 30);
    for (key, before) in keys.iter().zip(chosen) {
        assert!(before == 2 || left.preference_of(key)[0] == before);
    }
}

#[test]
fn an_invalidation_comes_before_a_response_is_kept_or_after_it_everywhere() {
    let folders = Folders::new();
    let disks = folders.disks(Layout::Single, &[64]);
    let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
    let key = key("/a");
    let room = || store.reserve(2000).unwrap();
    let body = StoredBody::new(vec![Bytes::from_static(b"x")], room());
    let response = Arc::new(StoredResponse::new(head(&request(&[]), None), Arc::new(body), 0, room()));
    std::thread::scope(|scope| {
        let kept = store.insert(
            &key,
            response,
            |_| true,
            || {
                let begun = disks.usage().0[0].1.journal_bytes;
                scope.spawn(|| store.invalidate(&key, 1));
                // It has to wait for this very call: were the disk told before, that would be seen here.
                let until = Instant::now() + Duration::from_millis(200);
                while disks.usage().0[0].1.journal_bytes == begun && Instant::now() < until {
                    std::thread::yield_now();
                }
                true
            },
        );
        assert!(kept);
    });
    assert!(disks.lie_under(&key) == 0, "invalidated, and on the disk");
    assert!(matches!(store.lookup(None, &key, Duration::ZERO, |_| true), crate::Selection::Absent));
}

#[test]
fn what_is_hot_in_memory_has_another_life_on_its_disk() {
    let folders = Folders::new();
    let disks = folders.disks(Layout::Single, &[16]);
    // Room for all of it: what is evicted from memory is not what this is about.
    let memory = MemoryStoreSettings { memory: 64 << 20, ..MEMORY };
    let store = Store::new(&memory, Some(Arc::clone(&disks)));
    keep(&store, "/hot", 100);
    keep(&store, "/cold", 100);
    written(&disks);
    let now = larder_http::time::Clock::default().now();
    // Twice what the disk holds goes over it.
    for number in 0..128 {
        let found = store.lookup(None, &key("/hot"), now.monotonic, |_| true);
        assert!(matches!(found, crate::Selection::Selected(_)), "{number}");
        (0..64).for_each(|_| store.tend(None, now));
        keep(&store, &path(number), CHUNK_BYTES);
        written(&disks);
    }
    assert!(found(&disks, "/hot").is_some());
    assert!(found(&disks, "/cold").is_none());
}

proptest! {
    #[test]
    fn regular_pieces_hold_the_same_bytes(lengths in proptest::collection::vec(0usize..400_000, 0..6)) {
        let pieces: Vec<Bytes> = lengths.iter().map(|length| Bytes::from(vec![*length as u8; *length])).collect();
        let regular: Vec<Bytes> = regular(&pieces).collect();
        prop_assert_eq!(regular.concat(), pieces.concat());
        if let Some((last, full)) = regular.split_last() {
            prop_assert!(full.iter().all(|piece| piece.len() == CHUNK_BYTES) && !last.is_empty());
        }
    }
}

/// What a store that has just been opened finds under "/a" for a request in this language.
fn recalled(disks: &Arc<Disks>, language: &'static str) -> crate::Recalled {
    let store = Store::new(&MEMORY, Some(Arc::clone(disks)));
    let asked = request(&[("accept-language", language)]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let now = larder_http::time::Clock::default().now();
    runtime.block_on(store.recall(&key("/a"), false, now, |stored| stored.head.vary.selects(&asked.fields)))
}

/// Keeps a response to a request in this language, which varies by it where it says so.
fn keep_in(store: &Arc<Store>, language: &'static str, vary: Option<&'static str>) -> Arc<StoredResponse> {
    let room = || store.reserve(2000).unwrap();
    let asked = request(&[("accept-language", language)]);
    let body = StoredBody::new(vec![Bytes::from_static(b"0123")], room());
    let response = Arc::new(StoredResponse::new(head(&asked, vary), Arc::new(body), 0, room()));
    let replaces = |old: &StoredResponse| old.head.vary.selects(&asked.fields);
    assert!(store.insert(&key("/a"), Arc::clone(&response), replaces, || true));
    response
}

#[test]
fn what_a_response_with_another_vary_replaced_does_not_come_back_from_a_disk() {
    let folders = Folders::new();
    let disks = folders.disks(Layout::Single, &[16]);
    let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
    keep_in(&store, "de", None);
    written(&disks);
    assert_eq!(recalled(&disks, "fr"), crate::Recalled::Something, "it is for every language");
    keep_in(&store, "de", Some("accept-language"));
    written(&disks);
    assert_eq!(recalled(&disks, "de"), crate::Recalled::Something);
    assert_eq!(recalled(&disks, "fr"), crate::Recalled::Nothing, "what was for every language was replaced");
}

#[test]
fn a_refresh_with_another_vary_leaves_nothing_of_the_old_one_on_a_disk() {
    let folders = Folders::new();
    let disks = folders.disks(Layout::Single, &[16]);
    let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
    let old = keep_in(&store, "de", None);
    written(&disks);
    let asked = request(&[("accept-language", "de")]);
    let room = store.reserve(2000).unwrap();
    let renewed = head(&asked, Some("accept-language"));
    let renewed = Arc::new(StoredResponse::new(renewed, Arc::clone(&old.body), 0, room));
    assert!(store.replace(&key("/a"), &old, renewed, || true));
    written(&disks);
    assert_eq!(recalled(&disks, "de"), crate::Recalled::Something);
    assert_eq!(recalled(&disks, "fr"), crate::Recalled::Nothing);
}

#[test]
fn one_key_has_at_most_so_many_variants_on_a_disk_as_in_memory() {
    let folders = Folders::new();
    let disks = folders.disks(Layout::Single, &[16]);
    let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
    let languages: Vec<&'static str> = (0..200).map(|number| &*format!("x-{number:03}").leak()).collect();
    for language in &languages {
        keep_in(&store, language, Some("accept-language"));
    }
    written(&disks);
    let usage = disks.usage();
    assert!(usage.0[0].1.objects <= larder_tier::key::VARIANTS_MAX as u64, "{}", usage.0[0].1.objects);
    assert_eq!(recalled(&disks, languages[199]), crate::Recalled::Something, "the newest stays");
    assert_eq!(recalled(&disks, languages[0]), crate::Recalled::Nothing, "the oldest has gone");
}
