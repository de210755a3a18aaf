//! Of what is remembered and seen: samples come through a tap, and time is given.
#![allow(clippy::unwrap_used)]

mod breakdowns;
mod remembered;
mod samples;
mod subscriptions;
mod tables;

use std::sync::Arc;
use std::time::Duration;

use http::{StatusCode, Version};
use larder_http::fields::cache_status::{Forward, RequestResult};
use larder_http::message::Scheme;
use larder_http::time::{Clock, Now, WallTime};

use super::*;
use crate::fetched::Fetched;
use crate::label::Vocabulary;
use crate::tap::{SampleHead, SampleTexts, Weight};

/// Nothing but counters has figures.
struct NoFigures;

impl FigureSource for NoFigures {
    fn read(&self, _: &mut Reading<'_>) {}
}

/// A watch with its tap.
struct World {
    metrics: Arc<Metrics>,
    tap: Arc<Tap>,
    watch: Watch,
    now: Now,
}

impl World {
    fn new() -> Self {
        Self::with(WatchSettings::default())
    }

    fn with(settings: WatchSettings) -> Self {
        let metrics = Arc::new(Metrics::new(1, Vocabulary::default(), WallTime(0), "1"));
        let tap = Arc::new(Tap::new(1));
        let watch = Watch::new(Arc::clone(&metrics), Arc::clone(&tap), settings);
        let now = Now { wall: WallTime(0), monotonic: Duration::from_secs(1000) };
        Self { metrics, tap, watch, now }
    }

    fn put(&self, head: SampleHead, texts: &SampleTexts<'_>) {
        self.tap.put(0, head, texts);
    }

    /// Hands over so many samples with one target.
    fn put_many(&self, target: &str, count: usize) {
        let texts = SampleTexts { target: target.as_bytes(), ..SampleTexts::default() };
        (0..count).for_each(|_| self.put(bare(), &texts));
    }

    fn drain_after(&mut self, time: Duration) {
        self.now = self.now.later(time);
        self.watch.drain(self.now);
    }

    /// The one sample that is made of this.
    fn sample(&mut self, head: SampleHead, texts: &SampleTexts<'_>) -> Arc<Sample> {
        self.put(head, texts);
        self.drain_after(Duration::ZERO);
        self.watch.requests(None, 1).pop().unwrap()
    }

    fn exposed(&self) -> String {
        let mut out = Exposition::default();
        self.watch.expose(&mut out);
        let text = out.finish();
        text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
    }

    /// The value of a metric with its labels.
    fn exposes(&self, name: &str) -> u64 {
        let text = self.exposed();
        let line =
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
        line.unwrap().parse().unwrap()
    }
}

/// A sample with nothing but what each has.
fn bare() -> SampleHead {
    SampleHead::of(RequestResult::Own, Weight::ONE)
}

/// A sample in which nothing is missing.
fn full(rule: RuleId) -> SampleHead {
    let fetched = Fetched {
        origin: "app".into(),
        server: Some("10.0.0.7:8080".into()),
        attempts: 2,
        is_reused: false,
        took: Duration::from_millis(1700),
        queue: Duration::from_millis(3),
        connect: Some(Duration::from_millis(20)),
        first_byte: Some(Duration::from_millis(1600)),
        status: Some(StatusCode::NOT_FOUND),
        error: Some("reset"),
    };
    SampleHead {
        time: WallTime(1_700_000_000_042),
        rule,
        forward: Some(Forward::UriMiss),
        detail: Some("set-cookie"),
        not_stored: Some("no-room"),
        stored: true,
        before: Some("evicted"),
        status: StatusCode::NOT_FOUND,
        scheme: Scheme::Https,
        version: Version::HTTP_2,
        tls: Some(larder_http::message::TlsVersion::Tls12),
        client: "192.0.2.7".parse().unwrap(),
        body_bytes: 2048,
        took: Duration::from_millis(1750),
        collapse_wait: Some(Duration::from_millis(60)),
        fetched: Some(Arc::new(fetched)),
        trace: Some(*b"\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36"),
        ..SampleHead::of(RequestResult::Asked, Weight::ONE)
    }
}

fn full_texts() -> SampleTexts<'static> {
    SampleTexts {
        method: b"GET",
        host: b"shop.example:8080",
        target: b"/Blog/a%20b.html?x=1&token=secret",
        user_agent: b"curl/8.1",
        referer: b"https://shop.example/?y=2&api_key=secret",
        content_type: b" Text/HTML ; charset=utf-8",
    }
}

fn filter(text: &str) -> Filter {
    Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
