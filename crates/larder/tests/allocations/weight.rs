//! What the store counts for a response is what the response takes, give or take little.
//!
//! The cap is on bytes counted; it bounds memory only where the count is about what is allocated. So responses of
//! several shapes are stored, and what is counted for all of them is compared with what the allocator of this process
//! was asked for. What it rounds up and loses between blocks is its own; `make bench NAME=memory` shows that.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use larder_cache::{CachePolicy, ExchangeTimes, Storability, StoredHead, storable};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Clock;
use larder_store::{CacheKey, MemoryStoreSettings, Store, StoredResponse, StreamingBody};
use stats_alloc::Region;

use crate::{COUNTING, alone};

const OBJECTS: usize = 4000;
/// Of what is held, what has to be counted at least.
const COUNTED_MIN: f64 = 1.0;
/// A count that is too large wastes the memory that the operator gave.
const COUNTED_MAX: f64 = 1.2;

struct Shape {
    name: &'static str,
    /// Pieces of the body as they arrive, and the bytes of each.
    pieces: (usize, usize),
    fields: usize,
    vary: Option<&'static str>,
    /// Added to each key.
    path: &'static str,
}

fn request(path: &str) -> RequestHead {
    let mut fields = HeaderMap::new();
    fields.insert("accept-language", HeaderValue::from_static("de-CH,de;q=0.9,en;q=0.7"));
    fields.insert("accept-encoding", HeaderValue::from_static("gzip, br"));
    RequestHead {
        method: Method::GET,
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(b"example.com"), Scheme::Http).unwrap(),
        target: Target::parse(Bytes::from(path.to_owned())).unwrap(),
        version: Version::HTTP_11,
        fields,
    }
}

fn head(shape: &Shape, request: &RequestHead, clock: &Clock) -> Arc<StoredHead> {
    let mut fields = HeaderMap::new();
    fields.insert("cache-control", HeaderValue::from_static("public, max-age=3600"));
    for number in 0..shape.fields {
        let name = HeaderName::from_bytes(format!("x-field-{number}").as_bytes()).unwrap();
        fields.append(name, HeaderValue::from_str(&format!("a value of some length {number}")).unwrap());
    }
    if let Some(vary) = shape.vary {
        fields.insert("vary", HeaderValue::from_static(vary));
    }
    let (now, policy) = (clock.now(), CachePolicy::default());
    let times = ExchangeTimes { request: now, response: now };
    let Storability::Storable(freshness) = storable(request, StatusCode::OK, &fields, times, &policy) else {
        panic!("storable")
    };
    Arc::new(StoredHead::new(request, StatusCode::OK, fields, freshness, &policy))
}

async fn fill(store: &Arc<Store>, shape: &Shape, clock: &Clock) {
    let piece = Bytes::from(vec![b'x'; shape.pieces.1]);
    for number in 0..OBJECTS {
        let path = format!("{}/{number}", shape.path);
        let request = request(&path);
        let mut key = CacheKey::new("example.com", &path);
        key.push_part(b"http");
        let head = head(shape, &request, clock);
        let room = store.reserve(StoredResponse::overhead_bytes(&head, &key)).unwrap();
        let length = (shape.pieces.0 * shape.pieces.1) as u64;
        let streaming = StreamingBody::keep(store, &key, Some(length)).unwrap();
        for _ in 0..shape.pieces.0 {
            streaming.push(piece.clone()).await.unwrap();
        }
        let body = streaming.finish(None, |_| ()).await.unwrap().unwrap();
        let response = Arc::new(StoredResponse::new(head, body, 0, room));
        assert!(store.insert(&key, response, |_| true, || true));
    }
}

fn check(shape: &Shape) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let memory = 1 << 30;
    let store = Store::in_memory(&MemoryStoreSettings { memory, max_object: memory });
    let clock = Clock::default();
    let region = Region::new(COUNTING);
    runtime.block_on(fill(&store, shape, &clock));
    let change = region.change();
    // What blocks grew and shrank by is in both sums.
    let held = change.bytes_allocated as f64 - change.bytes_deallocated as f64;
    let counted = store.usage().bytes;
    assert_eq!(store.usage().objects, OBJECTS as u64);
    let (held, counted) = (held / OBJECTS as f64, counted as f64 / OBJECTS as f64);
    println!("{}: {counted:.0} B counted, {held:.0} B held", shape.name);
    assert!(counted >= held * COUNTED_MIN, "{}: {counted} B counted for {held} B", shape.name);
    assert!(counted <= held * COUNTED_MAX, "{}: {counted} B counted for {held} B", shape.name);
}

/// Alone: what others allocate meanwhile would be counted here.
#[test]
fn what_is_counted_is_what_is_held() {
    let _turn = alone();
    let shape = |name, pieces, fields| Shape { name, pieces, fields, vary: None, path: "/page" };
    let long = "/a/long/path/that/goes/on/for/more/bytes/than/a/key/holds/without/an/allocation/of/its/own/because/\
                sites/have/such/paths/too/and/all/of/it/is/kept";
    for shape in [
        shape("1 KB", (1, 1024), 3),
        shape("no field but one, 10 B", (1, 10), 0),
        shape("8 KB in four pieces", (4, 2048), 5),
        shape("64 KB in four pieces", (4, 16_384), 5),
        shape("30 fields", (1, 1024), 30),
        Shape { vary: Some("accept-language, accept-encoding"), ..shape("Vary", (1, 1024), 3) },
        Shape { path: long, ..shape("a long path", (1, 1024), 3) },
    ] {
        check(&shape);
    }
}
