//! Records in Debian's redis-server, of a larder whose place in its fleet a test decides.
#![allow(clippy::unwrap_used)]

mod evicted;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use larder_cache::{CachePolicy, ExchangeTimes, Storability, StoredHead, storable};
use larder_fleet::{Epoch, Position};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_remote::redis::{RedisPlace, RedisSettings};
use larder_remote::{Address, SystemNames};
use larder_testkit::redis::RedisServer;
use larder_tier::outlook::PlaceFacts;
use larder_tier::tier::TierCaps;
use larder_tier::{Ask, Asked, CacheKey, Entry, Find, Keep, Leading, Run};

use crate::known::Pieces;
use crate::record::Piece;
use crate::{RECORD_MAX_BYTES, Records, RecordsSettings, Standing};

const PATIENCE: Duration = Duration::from_secs(20);
const EPOCH: Epoch = Epoch(7);

/// A place in a fleet, where there is one.
struct Place(AtomicBool);

impl Standing for Place {
    fn position_of(&self, number: u64) -> Option<Position> {
        self.0.load(Ordering::Relaxed).then_some(Position { epoch: EPOCH, sequence: number })
    }

    fn number_of(&self, position: Position) -> Option<u64> {
        (self.0.load(Ordering::Relaxed) && position.epoch == EPOCH).then_some(position.sequence)
    }

    fn server_now(&self) -> Option<Duration> {
        self.0.load(Ordering::Relaxed).then_some(Duration::from_secs(1_700_000_000))
    }

    fn clock_set_back_at(&self) -> Duration {
        Duration::ZERO
    }

    fn place(&self) -> Option<PlaceFacts> {
        let left = if self.0.load(Ordering::Relaxed) { None } else { Some(Duration::ZERO) };
        Some(PlaceFacts { member: "web-1".to_owned(), position: Some((EPOCH.0, 0)), left })
    }
}

struct Fixture {
    redis: RedisServer,
    records: Arc<Records>,
    place: Arc<Place>,
}

impl Fixture {
    fn new() -> Self {
        Self::with_timeout(PATIENCE)
    }

    fn with_timeout(timeout: Duration) -> Self {
        let (redis, place) = (RedisServer::start(), Arc::new(Place(AtomicBool::new(true))));
        let settings = RecordsSettings {
            prefix: "larder".to_owned(),
            store: "main".to_owned(),
            member: "web-1".to_owned(),
            timeout,
            is_compressed: false,
            max_object: RECORD_MAX_BYTES,
        };
        let server = RedisSettings {
            place: RedisPlace::Server(Address::Unix(redis.socket())),
            tls: None,
            user: None,
            password: None,
            database: 0,
            timeout,
            max_object: 1,
        };
        let standing = Arc::clone(&place) as Arc<dyn Standing>;
        let (names, diagnostics) = (Arc::new(SystemNames), Diagnostics::silent());
        let records = Records::start(settings, server, names, standing, &Clock::default(), &diagnostics);
        Self { redis, records: records.unwrap(), place }
    }

    /// Stores a response with this body, as the store does under its shard's lock. Whether its record was queued.
    fn puts(&self, target: &str, body: &'static [u8]) -> bool {
        let key = CacheKey::new("a.example", target);
        let (now, policy, mut fields) = (self.records.clock.now(), CachePolicy::default(), HeaderMap::new());
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
        let times = ExchangeTimes { request: now, response: now };
        let Storability::Storable(freshness) = storable(&request(), StatusCode::OK, &fields, times, &policy)
        else {
            panic!("it says that it may be stored")
        };
        let head = StoredHead::new(&request(), StatusCode::OK, fields, freshness, &policy);
        Arc::clone(&self.records).put(&Entry {
            key: &key,
            number: 1,
            identity: 1,
            received: head.freshness.received.wall,
            took: Duration::ZERO,
            head: &head,
            head_bytes: &|| head.to_bytes(),
            chunks: &[Bytes::from_static(body)],
            length: body.len() as u64,
            is_in_memory: true,
            source: None,
        });
        !self.records.known.take(&key).is_empty()
    }

    async fn ask(&self) -> Asked<crate::HttpCaching> {
        self.records.ask(&key(), &request(), &Default::default(), &|_: &StoredHead, _| true).await
    }

    async fn lead(&self) -> Leading<crate::HttpCaching> {
        self.records.lead(&key(), &request(), &|_: &StoredHead, _| true).await
    }

    fn claims(&self) -> Vec<String> {
        self.redis.names("larder:1:main:l:*")
    }

    fn calls(&self, command: &str) -> usize {
        let stats = self.redis.raw().ask(&[b"INFO", b"commandstats"]).unwrap();
        let stats = String::from_utf8(stats).unwrap();
        let prefix = format!("cmdstat_{command}:calls=");
        let line = stats.lines().find_map(|line| line.strip_prefix(&prefix));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    }
}

fn key() -> CacheKey {
    let mut key = CacheKey::new("a.example", "/x");
    key.push_part(b"http");
    key
}

fn request() -> RequestHead {
    let authority = Authority::parse(Bytes::from_static(b"a.example"), Scheme::Http).unwrap();
    RequestHead {
        method: Method::GET,
        scheme: Scheme::Http,
        authority,
        target: Target::parse(Bytes::from_static(b"/x")).unwrap(),
        version: http::Version::HTTP_11,
        fields: HeaderMap::new(),
    }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "not so: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn redis_is_told_what_is_used_once_for_the_record_and_for_each_piece() {
    let fixture = Fixture::new();
    fixture.records.note_use_at(key().base(), key().variant());
    let name = fixture.records.names.of_key(&key());
    fixture.records.known.note(&key(), &name, None);
    fixture.records.note_use_at(key().base(), key().variant());
    until("it is told", || fixture.calls("touch") == 1).await;
    let all = [&b"a"[..], b"b", b"c"].map(|piece| Piece::of(piece).unwrap()).into();
    fixture.records.known.note(&key(), &name, Some(Pieces { id: 7, all, body: None }));
    let variant = fixture.records.names.of_variant(&key(), b"gzip");
    fixture.records.known.note(&key(), &variant, None);
    fixture.records.note_use_at(key().base(), key().variant());
    until("of the pieces and the variant as well", || fixture.calls("touch") == 1 + 5).await;
}

#[tokio::test]
async fn a_claim_is_one_larders_and_is_given_back_or_says_that_each_fetches() {
    let fixture = Fixture::new();
    let Leading::Mine(lease) = fixture.lead().await else { panic!("nobody else has it") };
    assert_eq!(fixture.claims().len(), 1);
    // A record is written.
    let name = fixture.records.names.of_key(&key());
    fixture.records.leading.tell(&fixture.records.names.of_lease(&name), true);
    drop(lease);
    until("it is given back", || fixture.claims().is_empty()).await;
    // A purge has overtaken it, or nobody wanted it any more: the next one leads.
    let Leading::Mine(lease) = fixture.lead().await else { panic!("nobody else has it") };
    lease.sees_head(Duration::from_secs(60), Some(10));
    lease.is_overtaken();
    drop(lease);
    until("it is given back", || fixture.claims().is_empty()).await;
    // It has failed: the next one fetches as well, and does not wait.
    let Leading::Mine(lease) = fixture.lead().await else { panic!("nobody else has it") };
    lease.fails();
    drop(lease);
    let claim = fixture.claims().remove(0);
    until("each fetches", || fixture.redis.raw().get(&claim).as_deref() == Some("each failed")).await;
    assert!((1..=2000).contains(&fixture.redis.raw().left(&claim)));
    assert!(matches!(fixture.lead().await, Leading::Alone));
    fixture.redis.raw().delete(&claim);
    let Leading::Mine(lease) = fixture.lead().await else { panic!("nobody else has it") };
    lease.sees_head(Duration::from_millis(500), Some(10));
    until("each fetches", || fixture.redis.raw().get(&claim).as_deref() == Some("each no")).await;
    assert!((2001..=10_000).contains(&fixture.redis.raw().left(&claim)));
    drop(lease);
    assert_eq!(fixture.redis.raw().get(&claim).as_deref(), Some("each no"));
}

#[tokio::test]
async fn without_a_lease_in_the_fleet_nobody_waits_for_others() {
    let fixture = Fixture::new();
    fixture.redis.raw().set(
        &String::from_utf8_lossy(&fixture.records.names.of_lease(&fixture.records.names.of_key(&key()))),
        b"another",
    );
    fixture.place.0.store(false, Ordering::Relaxed);
    assert!(matches!(fixture.lead().await, Leading::Alone));
    assert!(matches!(fixture.ask().await, Asked::Unusable));
}

#[tokio::test]
async fn who_has_waited_for_a_record_does_not_wait_again_for_the_right_to_fetch() {
    let limit = Duration::from_secs(1);
    let fixture = Fixture::with_timeout(limit);
    assert!(matches!(fixture.ask().await, Asked::Unusable), "connected, and nothing is there");
    fixture.redis.stop();
    assert!(matches!(fixture.ask().await, Asked::Unusable));
    let began = Instant::now();
    assert!(matches!(fixture.lead().await, Leading::Alone));
    assert!(began.elapsed() < limit / 2, "{:?}", began.elapsed());
    fixture.redis.resume();
    let began = Instant::now();
    while !matches!(fixture.lead().await, Leading::Mine(_)) {
        assert!(began.elapsed() < PATIENCE, "nobody leads any more");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// What it waits for it could not use.
#[tokio::test]
async fn without_a_lease_another_larder_is_not_waited_for_any_longer() {
    let fixture = Fixture::new();
    let name = fixture.records.names.of_lease(&fixture.records.names.of_key(&key()));
    fixture.redis.raw().set(std::str::from_utf8(&name).unwrap(), b"another");
    let began = Instant::now();
    let lost = async {
        until("it waits", || fixture.calls("get") >= 2).await;
        fixture.place.0.store(false, Ordering::Relaxed);
    };
    let (led, ()) = tokio::join!(fixture.lead(), lost);
    assert!(matches!(led, Leading::Alone));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_new_cap_holds_for_what_is_shared_from_then_on() {
    let fixture = Fixture::new();
    let resize = |max_object| fixture.records.resize(&TierCaps { bytes: 0, files: 0, max_object });
    assert!(fixture.puts("/1", b"12345"));
    resize(4);
    assert!(fixture.puts("/2", b"1234") && !fixture.puts("/3", b"12345"));
    resize(5);
    assert!(fixture.puts("/4", b"12345"));
    resize(u64::MAX);
    assert_eq!(fixture.records.max_object(), RECORD_MAX_BYTES, "a record is read as a whole");
}
