//! Slow readers of large bodies hold a quarter of a store and no more; what is in use stays, and nobody gets a wrong byte.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use http_body_util::BodyExt;
use larder_http::body::Body;

use super::*;
use crate::memory::tests::{head, key, request};
use crate::memory::{MemoryStoreSettings, Selection};
use crate::store::Store;
use crate::stored::{StoredBody, StoredResponse};
use crate::streaming::{Reader, StreamingBody};

const MEMORY_BYTES: u64 = 8 << 20;
const LARGE_BYTES: usize = 2 << 20;
const PAGES: usize = 200;
const PAGE_BYTES: usize = 16 * 1024;

fn bytes(seed: u8, length: usize) -> Bytes {
    (0..length).map(|at| (at as u8).wrapping_mul(31) ^ seed ^ (at >> 8) as u8).collect()
}

fn put(store: &Arc<Store>, path: &str, body: &Arc<StoredBody>) {
    let (key, head) = (key(path), head(&request(&[]), None));
    let room = store.reserve(StoredResponse::overhead_bytes(&head, &key)).unwrap();
    let response = Arc::new(StoredResponse::new(head, Arc::clone(body), 0, room));
    assert!(store.insert(&key, response, |_| true, || true));
}

fn is_hit(store: &Store, path: &str) -> bool {
    matches!(store.lookup(None, &key(path), Duration::ZERO, |_| true), Selection::Selected(_))
}

fn page(store: &Arc<Store>, path: &str) -> bool {
    is_hit(store, path) || {
        let room = store.reserve(PAGE_BYTES as u64 + 96).unwrap();
        put(store, path, &Arc::new(StoredBody::new(vec![bytes(1, PAGE_BYTES)], room)));
        false
    }
}

/// Hits of one round through all pages.
fn round(store: &Arc<Store>) -> usize {
    (0..PAGES).filter(|number| page(store, &format!("/page/{number}"))).count()
}

/// Fetched, stored, and read by somebody who has had one piece of it and stopped.
async fn slow_reader_of(store: &Arc<Store>, number: u8) -> (Reader, usize) {
    let path = format!("/large/{number}");
    let content = bytes(number, LARGE_BYTES);
    let streaming = StreamingBody::keep(store, &key(&path), Some(LARGE_BYTES as u64)).unwrap();
    let mut reader = streaming.reader(None).unwrap();
    for at in (0..LARGE_BYTES).step_by(65_536) {
        streaming.push(content.slice(at..at + 65_536)).await.unwrap();
    }
    streaming.finish(None, |body| put(store, &path, body)).await.unwrap().unwrap();
    let first = reader.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first == content[..first.len()]);
    (reader, first.len())
}

#[tokio::test]
async fn eight_slow_readers_of_eight_large_objects_leave_the_rest_to_what_is_in_use() {
    let store = Store::in_memory(&MemoryStoreSettings { memory: MEMORY_BYTES, max_object: MEMORY_BYTES / 4 });
    for _ in 0..5 {
        round(&store);
    }
    assert_eq!(round(&store), PAGES);
    let mut readers = Vec::new();
    let (mut hits, mut rounds) = (0, 0);
    for number in 0..8 {
        readers.push(slow_reader_of(&store, number).await);
        (hits, rounds) = (hits + round(&store), rounds + 1);
        assert!(store.usage().high_water_bytes <= MEMORY_BYTES);
    }
    for _ in 0..4 {
        (hits, rounds) = (hits + round(&store), rounds + 1);
    }
    assert!(hits * 10 >= rounds * PAGES * 9, "{hits} hits of {}", rounds * PAGES);
    // Those that are still there get all of it; the others are told, and never anything else.
    let (mut whole, mut told) = (0, 0);
    for (number, (mut reader, mut at)) in readers.into_iter().enumerate() {
        let content = bytes(number as u8, LARGE_BYTES);
        loop {
            match reader.frame().await {
                Some(Ok(frame)) => {
                    let bytes = frame.into_data().unwrap();
                    assert!(bytes == content[at..at + bytes.len()]);
                    at += bytes.len();
                }
                Some(Err(error)) => {
                    assert_eq!(error, BodyError::SlowReader);
                    told += 1;
                    break;
                }
                None => {
                    assert_eq!(at, LARGE_BYTES);
                    whole += 1;
                    break;
                }
            }
        }
    }
    assert!(told > 0 && whole > 0, "{told} told, {whole} whole");
    assert_eq!(store.usage().let_go, told, "each was of one body");
}

#[tokio::test]
async fn what_is_in_the_index_is_read_to_its_end_and_what_is_small_is_never_let_go_of() {
    let store = Store::in_memory(&MemoryStoreSettings { memory: MEMORY_BYTES, max_object: MEMORY_BYTES / 4 });
    let (reader, at) = slow_reader_of(&store, 3).await;
    assert!(is_hit(&store, "/large/3"));
    for _ in 0..3 {
        round(&store);
    }
    let rest = reader.collect().await.unwrap().to_bytes();
    assert!(rest == bytes(3, LARGE_BYTES).slice(at..));
    // From the index, while others come and go.
    let Selection::Selected(held) = store.lookup(None, &key("/large/3"), Duration::ZERO, |_| true) else {
        panic!("it is gone")
    };
    let Some(Body::Stream { mut stream, length }) = held.into_body(10..LARGE_BYTES as u64) else {
        panic!("it is not leased")
    };
    assert_eq!(length, Some(LARGE_BYTES as u64 - 10));
    let first = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    store.memory().invalidate(&key("/large/3"));
    // It is gone from the index, and takes no more than a quarter.
    let rest = stream.collect().await.unwrap().to_bytes();
    assert!([first, rest].concat() == bytes(3, LARGE_BYTES)[10..]);
    assert_eq!(store.usage().let_go, 0);
}
