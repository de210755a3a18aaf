//! The caches that are compared: larder's memory store as it is, and a plain LRU with the same bytes for each object.
//!
//! In: keys, as the trace asks for them. Out: whether the cache had it; what it had not, it has from then on. Both count
//! an object by what larder's store counts for it, so that both have room for equally many.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use larder_cache::{CachePolicy, ExchangeTimes, Storability, StoredHead, storable};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Clock;
use larder_store::{CacheKey, MemoryStore, MemoryStoreSettings, Selection, StoredBody, StoredResponse};

const BODY: &[u8] = &[b'x'; 1024];

/// A cache in a replay.
pub(super) trait Cache {
    /// Whether `key` was there. If not, it comes in.
    fn ask(&mut self, key: &str) -> bool;
    /// Objects that are there now.
    fn objects(&self) -> usize;
}

/// larder's own store.
pub(super) struct Larder {
    store: Arc<MemoryStore>,
    head: Arc<StoredHead>,
}

impl Larder {
    /// An empty store of this many bytes.
    pub(super) fn new(memory: u64) -> Result<Self> {
        let store = MemoryStore::new(&MemoryStoreSettings { memory, max_object: memory });
        Ok(Self { store, head: head()? })
    }

    fn key(name: &str) -> CacheKey {
        let mut key = CacheKey::new("example.com", name);
        key.push_part(b"http");
        key
    }

    /// What the store counts for one object with a key like this.
    pub(super) fn object_bytes(&self, name: &str) -> u64 {
        StoredResponse::overhead_bytes(&self.head, &Self::key(name)) + BODY.len() as u64
    }
}

impl Cache for Larder {
    fn ask(&mut self, name: &str) -> bool {
        let key = Self::key(name);
        if matches!(self.store.lookup(None, &key, Duration::ZERO, |_| true), Selection::Selected(_)) {
            return true;
        }
        let room = self.store.reserve(StoredResponse::overhead_bytes(&self.head, &key));
        // The pieces are static: what is counted is what they would take.
        let body = self.store.reserve(BODY.len() as u64);
        if let (Some(room), Some(body)) = (room, body) {
            let body = Arc::new(StoredBody::new(vec![Bytes::from_static(BODY)], body));
            let response = StoredResponse::new(Arc::clone(&self.head), body, 0, room);
            self.store.insert(&key, Arc::new(response), |_| true, || true);
        }
        false
    }

    fn objects(&self) -> usize {
        usize::try_from(self.store.usage().objects).unwrap_or(usize::MAX)
    }
}

/// A head as pages have it.
fn head() -> Result<Arc<StoredHead>> {
    let request = RequestHead {
        method: Method::GET,
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(b"example.com"), Scheme::Http)
            .ok()
            .context("authority")?,
        target: Target::parse(Bytes::from_static(b"/")).ok().context("target")?,
        version: Version::HTTP_11,
        fields: HeaderMap::new(),
    };
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=36000"));
    fields.insert(ETAG, HeaderValue::from_static("\"5f3a-1b2c3d\""));
    let (now, policy) = (Clock::default().now(), CachePolicy::default());
    let times = ExchangeTimes { request: now, response: now };
    match storable(&request, StatusCode::OK, &fields, times, &policy) {
        Storability::Storable(freshness) => {
            Ok(Arc::new(StoredHead::new(&request, StatusCode::OK, fields, freshness, &policy)))
        }
        other => bail!("{other:?}"),
    }
}

/// What was asked for longest ago goes first, whatever else is known of it.
pub(super) struct Lru {
    room: usize,
    /// When each key was asked for last.
    last: HashMap<Box<str>, u64>,
    /// The same, the other way round.
    order: BTreeMap<u64, Box<str>>,
    now: u64,
}

impl Lru {
    /// An empty cache of `memory` bytes for objects that count `object_bytes` each.
    pub(super) fn new(memory: u64, object_bytes: u64) -> Self {
        let room = usize::try_from(memory / object_bytes.max(1)).unwrap_or(usize::MAX);
        Self { room, last: HashMap::new(), order: BTreeMap::new(), now: 0 }
    }
}

impl Cache for Lru {
    fn ask(&mut self, key: &str) -> bool {
        self.now += 1;
        if let Some(last) = self.last.get_mut(key) {
            let name = self.order.remove(last).unwrap_or_default();
            *last = self.now;
            self.order.insert(self.now, name);
            return true;
        }
        while self.last.len() >= self.room
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.last.remove(&oldest);
        }
        self.last.insert(key.into(), self.now);
        self.order.insert(self.now, key.into());
        false
    }

    fn objects(&self) -> usize {
        self.last.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_lru_drops_what_was_asked_for_longest_ago() {
        let mut lru = Lru::new(30, 10);
        let asked = [("a", false), ("b", false), ("c", false), ("a", true), ("d", false), ("a", true)];
        for (key, was_there) in
            asked.into_iter().chain([("b", false), ("c", false), ("a", true), ("d", false)])
        {
            assert_eq!(lru.ask(key), was_there, "{key}");
        }
        assert_eq!(lru.objects(), 3);
    }

    #[test]
    fn both_have_room_for_equally_many() {
        let mut larder = Larder::new(1 << 20).unwrap();
        let mut lru = Lru::new(1 << 20, larder.object_bytes("/object/0000000"));
        for number in 0..5000 {
            let key = format!("/object/{number:07}");
            assert!(!larder.ask(&key) && !lru.ask(&key));
        }
        let (ours, plain) = (larder.objects(), lru.objects());
        assert!(ours.abs_diff(plain) <= 1, "{ours} {plain}");
    }
}
