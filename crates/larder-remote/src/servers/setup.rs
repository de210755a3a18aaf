//! A store in memcached as tests ask it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::memcached::{Codings, MemcachedSettings, Placement, RemoteServer};
use crate::{Address, Client, Deletion, LookedUp, RemoteKey, RemoteSettings, RemoteStore, SystemNames};
use bytes::Bytes;
use larder_http::time::Clock;
use larder_observe::{Diagnostics, Exposition};

/// The default of the config.
pub const TIMEOUT: Duration = Duration::from_millis(200);
/// The largest value.
pub const MAX_OBJECT: usize = 1 << 20;
/// Longest wait for something that has to happen.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn settings(addresses: &[Address]) -> MemcachedSettings {
    let server = |address: &Address| RemoteServer { address: address.clone(), weight: 1 };
    MemcachedSettings {
        servers: addresses.iter().map(server).collect(),
        placement: Placement::Ketama,
        timeout: TIMEOUT,
        max_object: MAX_OBJECT,
        codings: Codings { gzip_flag: 2, zlib_flag: 8 },
    }
}

pub fn start(settings: MemcachedSettings) -> Client {
    let names = Arc::new(SystemNames);
    let settings = RemoteSettings::Memcached(settings);
    Client::new(RemoteStore::start(settings, names, Clock::default(), &Diagnostics::silent()).unwrap())
}

/// A client of one server.
pub fn client(address: &Address) -> Client {
    start(settings(std::slice::from_ref(address)))
}

pub fn key(text: &str) -> RemoteKey {
    RemoteKey::of_memcached(text.to_owned())
}

/// The body under `text`, or what else the look-up came to.
pub async fn look(client: &Client, text: &str) -> LookedUp<Bytes> {
    client.look_up(&key(text), |found| Ok(found.body)).await
}

pub fn found(body: &str) -> LookedUp<Bytes> {
    LookedUp::Found(Bytes::copy_from_slice(body.as_bytes()))
}

/// Looks up again and again until that comes to `expected`; other workers' tasks run meanwhile.
pub async fn until(client: &Client, text: &str, expected: &LookedUp<Bytes>) {
    let begun = Instant::now();
    loop {
        let looked_up = look(client, text).await;
        if looked_up == *expected {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{text}: still {looked_up:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the server has confirmed.
pub async fn confirmed(deletion: Deletion) {
    let confirmed = tokio::time::timeout(PATIENCE, deletion.confirmed()).await;
    confirmed.expect("never confirmed").unwrap();
}

/// Asks again and again until `is_so`.
pub async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The sum of all samples whose name and labels have each of `parts`.
pub fn sample(client: &Client, parts: &[&str]) -> u64 {
    let mut out = Exposition::default();
    client.shared().expose("fragments", &mut out);
    let text = out.finish();
    let lines =
        text.lines().filter(|line| !line.starts_with('#') && parts.iter().all(|part| line.contains(part)));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// Lets all other tasks have their turns, and the sockets be looked at.
pub async fn turns() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// A sequence that is the same in each run.
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}
