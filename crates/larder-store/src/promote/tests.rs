//! What comes into memory from disks, what does not, and that nothing is left behind.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::task::Waker;

use http_body_util::BodyExt;
use larder_assemble::compile;
use larder_http::body::Body;
use larder_http::message::RequestHead;
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;
use larder_http::time::Clock;

use super::*;
use crate::behind::Folders;
use crate::key::CacheKey;
use crate::memory::MemoryStoreSettings;
use crate::memory::tests::{head, key, request};
use crate::store::Store;
use larder_disk::layouts::{Disks, Layout};

const MIB: u64 = 1 << 20;
const MEMORY: MemoryStoreSettings = MemoryStoreSettings { memory: 16 * MIB, max_object: 4 * MIB };

struct Fixture {
    disks: Arc<Disks>,
    store: Arc<Store>,
    clock: Clock,
    _folders: Folders,
}

fn fixture() -> Fixture {
    let folders = Folders::new();
    let disks = folders.disks(Layout::Single, &[128]);
    let store = Store::new(&MEMORY, Some(Arc::clone(&disks)));
    Fixture { disks, store, clock: Clock::default(), _folders: folders }
}

impl Fixture {
    /// Writes a body of as many mebibytes to the disk, and forgets what memory has of it.
    fn keep(&self, path: &str, mebibytes: u64) {
        let length = mebibytes * MIB;
        let store = Store::new(
            &MemoryStoreSettings { memory: 64 * MIB, max_object: 64 * MIB },
            Some(Arc::clone(&self.disks)),
        );
        let bytes: Vec<u8> = (0..length).map(|at| (at / 1000) as u8).collect();
        let room = || store.reserve(length + 2000).unwrap();
        let body = StoredBody::new(vec![bytes.into()], room());
        let response = StoredResponse::new(head(&request(&[]), None), Arc::new(body), 0, room());
        assert!(store.insert(&key(path), Arc::new(response), |_| true, || true));
        while self.disks.usage().0.iter().any(|(_, usage)| usage.queued_bytes > 0 || usage.queued_objects > 0)
        {
            std::thread::yield_now();
        }
    }

    fn there(&self, key: &CacheKey) -> Option<Arc<StoredResponse>> {
        self.store.responses(key, Duration::MAX).0.first().cloned()
    }

    /// As a request finds it, on the disk where memory has it not.
    async fn find(&self, key: &CacheKey) -> Arc<StoredResponse> {
        if let Some(stored) = self.there(key).filter(|stored| stored.body.is_there()) {
            return stored;
        }
        self.store.recall(key, false, self.clock.now(), |_| true).await;
        self.there(key).unwrap()
    }

    /// Reads all of it; says whether it came from memory.
    async fn read(&self, path: &str) -> bool {
        let stored = self.find(&key(path)).await;
        let body = stored.body.content(0..stored.body.length()).unwrap();
        let was_in_memory = stored.body.is_in_memory();
        let bytes = match body {
            Body::Stream { stream, .. } => stream.collect().await.unwrap().to_bytes().to_vec(),
            Body::Pieces { owner, .. } => owner.pieces().concat(),
            _ => panic!("another body"),
        };
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == (at / 1000) as u8));
        assert!(self.store.usage().high_water_bytes <= MEMORY.memory);
        was_in_memory
    }
}

#[tokio::test]
async fn what_is_read_again_soon_is_in_memory_from_then_on() {
    let fixture = fixture();
    fixture.keep("/a", 2);
    assert!(!fixture.read("/a").await);
    assert!(!fixture.there(&key("/a")).unwrap().body.is_in_memory(), "once is not enough");
    assert!(!fixture.read("/a").await);
    let written = fixture.disks.usage().0[0].1.written_bytes;
    assert!(fixture.read("/a").await && fixture.store.usage().promoted == 1);
    // A 304 keeps it where it is, and writes a record only.
    let old = fixture.there(&key("/a")).unwrap();
    let room = fixture.store.reserve(2000).unwrap();
    let new = StoredResponse::new(Arc::clone(&old.head), Arc::clone(&old.body), 0, room);
    assert!(fixture.store.replace(&key("/a"), &old, Arc::new(new), || true));
    drop(old);
    while fixture.disks.usage().0[0].1.queued_objects > 0 {
        std::thread::yield_now();
    }
    assert!(fixture.read("/a").await && fixture.disks.usage().0[0].1.written_bytes < written + 4096);
    fixture.store.invalidate(&key("/a"), 1);
    assert_eq!(fixture.store.usage().bytes, 0);
}

#[tokio::test]
async fn the_program_of_a_template_comes_along() {
    let fixture = fixture();
    fixture.keep("/a", 1);
    assert!(!fixture.read("/a").await);
    let RequestHead { scheme, authority, target, .. } = request(&[]);
    let program = compile(Language::Ssi, DocumentUri { scheme, authority, target }, b"<p>");
    let room = fixture.store.reserve(StoredBody::program_bytes(&program));
    fixture.there(&key("/a")).unwrap().body.keep_program(Arc::clone(&program), room);
    assert!(!fixture.read("/a").await);
    assert!(fixture.read("/a").await && fixture.store.usage().promoted == 1);
    let stored = fixture.there(&key("/a")).unwrap();
    assert!(stored.body.program().is_some_and(|kept| Arc::ptr_eq(kept, &program)));
    drop(stored);
    fixture.store.invalidate(&key("/a"), 1);
    assert_eq!(fixture.store.usage().bytes, 0);
}

#[tokio::test]
async fn more_than_fits_is_not_promoted_however_often_it_is_read() {
    let fixture = fixture();
    // Each of them once more only after nine others.
    for number in 0..10 {
        fixture.keep(&format!("/{number}"), 1);
    }
    for _ in 0..4 {
        for number in 0..10 {
            assert!(!fixture.read(&format!("/{number}")).await);
        }
    }
    assert_eq!((fixture.store.usage().promoted, fixture.store.usage().evicted_for_room), (0, 0));
    // A few of them more often are.
    for _ in 0..3 {
        for number in 0..3 {
            fixture.read(&format!("/{number}")).await;
        }
    }
    assert_eq!(fixture.store.usage().promoted, 3);
}

#[tokio::test]
async fn neither_ranges_nor_what_is_too_large_for_memory_are_promoted() {
    let fixture = fixture();
    fixture.keep("/a", 2);
    fixture.keep("/large", 5);
    for _ in 0..4 {
        let stored = fixture.find(&key("/a")).await;
        for range in [0..2 * MIB - 1, 1..2 * MIB] {
            let Some(Body::Stream { stream, .. }) = stored.body.content(range) else { panic!("in memory") };
            stream.collect().await.unwrap();
        }
        assert!(!fixture.read("/large").await);
    }
    let promotions = fixture.store.memory().promotions();
    assert_eq!((fixture.store.usage().promoted, promotions.read_bytes.load(Ordering::Relaxed)), (0, 0));
}

#[tokio::test]
async fn a_client_that_leaves_takes_the_promotion_with_it() {
    let fixture = fixture();
    fixture.keep("/a", 2);
    fixture.read("/a").await;
    let before = fixture.store.usage().bytes;
    let stored = fixture.find(&key("/a")).await;
    {
        let Some(Body::Stream { mut stream, .. }) = stored.body.content(0..2 * MIB) else {
            panic!("in memory")
        };
        assert!(stream.frame().await.unwrap().is_ok());
        assert!(fixture.store.usage().bytes > before + 2 * MIB, "room is reserved first");
        // Another who reads meanwhile just reads.
        assert!(!fixture.read("/a").await);
        assert_eq!(fixture.store.usage().promoted, 0);
    }
    assert_eq!(fixture.store.usage().bytes, before);
    assert_eq!(fixture.store.memory().promotions().under_way_bytes.load(Ordering::Relaxed), 0);
    fixture.read("/a").await;
    assert_eq!(fixture.store.usage().promoted, 1, "the next one who reads all of it");
}

#[tokio::test]
async fn what_is_invalidated_while_it_is_read_stays_away() {
    let fixture = fixture();
    fixture.keep("/a", 2);
    fixture.read("/a").await;
    let stored = fixture.find(&key("/a")).await;
    let Some(Body::Stream { mut stream, .. }) = stored.body.content(0..2 * MIB) else { panic!("in memory") };
    assert!(stream.frame().await.unwrap().is_ok());
    fixture.store.invalidate(&key("/a"), 7);
    assert_eq!(stream.collect().await.unwrap().to_bytes().len() as u64, 2 * MIB - 256 * 1024);
    drop(stored);
    assert!(fixture.there(&key("/a")).is_none());
    assert_eq!((fixture.store.usage().promoted, fixture.store.usage().bytes), (0, 0));
}

#[tokio::test]
async fn many_slow_clients_hold_an_eighth_of_the_store() {
    let fixture = fixture();
    let mut streams = Vec::new();
    for number in 0..6 {
        fixture.keep(&format!("/{number}"), 1);
    }
    for _ in 0..2 {
        for number in 0..6 {
            let stored = fixture.find(&key(&format!("/{number}"))).await;
            let Some(Body::Stream { stream, .. }) = stored.body.content(0..MIB) else { panic!("in memory") };
            streams.push(stream);
        }
    }
    let mut nobody = Context::from_waker(Waker::noop());
    streams.iter_mut().for_each(|stream| drop(stream.as_mut().poll_frame(&mut nobody)));
    assert_eq!(fixture.store.memory().promotions().under_way_bytes.load(Ordering::Relaxed), 2 * MIB);
    assert!(fixture.store.usage().bytes < 3 * MIB, "{:?}", fixture.store.usage());
}

#[tokio::test]
async fn who_holds_it_from_before_still_renews_it_or_takes_it_out() {
    for renews in [true, false] {
        let fixture = fixture();
        fixture.keep("/a", 2);
        fixture.read("/a").await;
        let before = fixture.find(&key("/a")).await;
        fixture.read("/a").await;
        assert!(!before.body.is_in_memory() && fixture.there(&key("/a")).unwrap().body.is_in_memory());
        if renews {
            let room = fixture.store.reserve(2000).unwrap();
            let head = head(&request(&[]), None);
            let new = StoredResponse::new(Arc::clone(&head), Arc::clone(&before.body), 0, room);
            assert!(fixture.store.replace(&key("/a"), &before, Arc::new(new), || true));
            assert!(Arc::ptr_eq(&fixture.there(&key("/a")).unwrap().head, &head));
        } else {
            fixture.store.remove(&key("/a"), &before);
            assert!(fixture.there(&key("/a")).is_none() && !fixture.store.may_recall(&key("/a")));
        }
    }
}
