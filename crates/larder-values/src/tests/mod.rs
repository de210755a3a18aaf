//! The tier with Debian's memcached: what a store asks of it, and what its promises come to.
#![allow(clippy::unwrap_used)]

mod asked;
mod deleted;
mod written;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use larder_cache::storable::{Storability, storable};
use larder_cache::{CachePolicy, ExchangeTimes, StoredHead};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::{Clock, Now};
use larder_observe::{Diagnostics, Exposition};
use larder_remote::memcached::{Codings, MemcachedSettings, Placement, RemoteServer};
use larder_remote::{Address, RemoteSettings, SystemNames};
use larder_testkit::memcached::Server;
use larder_tier::{Ask, Asked, CacheKey, Entry, Keep};

use crate::{Format, HttpCaching, KeyPart, KeyTemplate, Values, ValuesSettings};

/// The longest that anything of these tests takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whose values these are. All tests ask at a port, as a larder that is tried out is.
const AUTHORITY: &str = "example.com:8080";

/// A GET of `target`.
pub(crate) fn request(target: &'static str, lines: &[(HeaderName, &'static str)]) -> RequestHead {
    let mut fields = HeaderMap::new();
    for (name, value) in lines {
        fields.append(name, HeaderValue::from_static(value));
    }
    RequestHead {
        method: Method::GET,
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(AUTHORITY.as_bytes()), Scheme::Http).unwrap(),
        target: Target::parse(Bytes::from_static(target.as_bytes())).unwrap(),
        version: Version::HTTP_11,
        fields,
    }
}

/// Field lines in order.
pub(crate) fn fields(lines: &[(&str, &str)]) -> HeaderMap {
    lines.iter().fold(HeaderMap::new(), |mut fields, (name, value)| {
        fields
            .append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
        fields
    })
}

pub(crate) fn settings(format: Format) -> ValuesSettings {
    ValuesSettings {
        key: KeyTemplate::new(vec![KeyPart::Host, KeyPart::Target]),
        format,
        near: Duration::from_secs(1),
        default_type: HeaderValue::from_static("text/html"),
        write: true,
        max_object: 1 << 20,
        timeout: Duration::from_millis(200),
    }
}

/// What a request would have stored now of a 200 with these fields.
pub(crate) fn stored(
    request: &RequestHead,
    lines: &[(&str, &str)],
    policy: &CachePolicy,
    now: Now,
) -> StoredHead {
    let (said, times) = (fields(lines), ExchangeTimes { request: now, response: now });
    match storable(request, StatusCode::OK, &said, times, policy) {
        Storability::Storable(freshness) => StoredHead::new(request, StatusCode::OK, said, freshness, policy),
        Storability::NotStorable(reason) => panic!("{reason:?}: {said:?}"),
    }
}

/// The key of a request without anything that a rule adds.
fn key(request: &RequestHead) -> CacheKey {
    let mut key = CacheKey::new(request.authority.as_str(), request.target.as_str());
    key.push_part(request.scheme.as_str().as_bytes());
    key
}

/// A tier before a memcached of its own.
struct Fixture {
    server: Server,
    values: Arc<Values>,
    clock: Clock,
}

impl Fixture {
    fn new(format: Format) -> Self {
        Self::with(settings(format))
    }

    fn with(settings: ValuesSettings) -> Self {
        let server = Server::start();
        let address = Address::Unix(server.socket());
        let servers = RemoteSettings::Memcached(MemcachedSettings {
            servers: vec![RemoteServer { address, weight: 1 }],
            placement: Placement::Ketama,
            timeout: settings.timeout,
            max_object: 1 << 20,
            codings: Codings::default(),
        });
        let clock = Clock::default();
        let names = Arc::new(SystemNames);
        let values = Values::start(settings, servers, names, &clock, &Diagnostics::silent()).unwrap();
        values.serve(Arc::new(|host| host == "example.com"));
        Self { server, values, clock }
    }

    /// What asking for an answer to `request` comes to: the body, or a word.
    async fn ask(&self, request: &RequestHead) -> Result<String, &'static str> {
        self.ask_by(request, &CachePolicy::default()).await.map(|(_, body)| body)
    }

    async fn ask_by(
        &self,
        request: &RequestHead,
        policy: &CachePolicy,
    ) -> Result<(StoredHead, String), &'static str> {
        match self.values.ask(&key(request), request, policy, &|_, _| true).await {
            Asked::<HttpCaching>::Found(value) => {
                Ok((value.head, String::from_utf8(value.body.concat()).unwrap()))
            }
            Asked::Absent => Err("absent"),
            Asked::Unfit => Err("unfit"),
            Asked::Unusable => Err("unusable"),
        }
    }

    /// Asks until that comes to `expected`.
    async fn comes_to(&self, request: &RequestHead, expected: Result<&str, &'static str>) {
        let begun = Instant::now();
        loop {
            let asked = self.ask(request).await;
            if asked.as_deref().map_err(|word| *word) == expected {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "still {asked:?} and not {expected:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until so many writes have come to that: a value can be found a moment before its writer counts it.
    async fn counts_writes(&self, result: &str, count: u64) {
        let label = format!("\"{result}\"");
        let begun = Instant::now();
        while self.sample(&["writes_total", &label]) != count {
            assert!(begun.elapsed() < PATIENCE, "{result}: {}", self.sample(&["writes_total", &label]));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stores a response, as the store does under its shard's lock.
    fn put(&self, request: &RequestHead, head: &StoredHead, body: &'static str, number: u64) {
        let chunks = [Bytes::from_static(body.as_bytes())];
        Arc::clone(&self.values).put(&Entry {
            key: &key(request),
            number,
            identity: 1,
            received: head.freshness.received.wall,
            took: Duration::ZERO,
            head,
            head_bytes: &|| head.to_bytes(),
            chunks: &chunks,
            length: body.len() as u64,
            is_in_memory: true,
            source: None,
        });
    }

    /// The sum of all samples whose name and labels have each of `parts`.
    fn sample(&self, parts: &[&str]) -> u64 {
        let mut out = Exposition::default();
        self.values.expose("fragments", &mut out);
        let text = out.finish();
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && parts.iter().all(|part| line.contains(part)));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }
}
