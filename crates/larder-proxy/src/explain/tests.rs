//! What is told of requests to a site with a few rules and a store with known content; the origin is left alone.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use larder_cache::{Assemble, CachePolicy, ExchangeTimes, Lifetimes, NotStorable, Storability, StoredHead};
use larder_http::time::Clock;
use larder_observe::RouteId;
use larder_store::{MemoryStoreSettings, RefreshFailure, Store, StoredBody};

mod parts;
mod purges;

use super::*;
use crate::fleet_of_one::FleetOfOne;
use crate::settings::{KeySettings, QueryParts, RuleMatch, RuleNumber, RuleSettings, SiteSettings};
use crate::testing_proxy::{no_app, proxy_of};

/// `example.com` and all below it, with rules for `/off*`, `/keyed*`, `/fast*` and `/raw*`, and the methods to look into its store.
struct Fixture {
    worker: Arc<Worker>,
    store: Arc<Store>,
    /// What holds for `/fast*`.
    fast: Arc<RuleSettings>,
    clock: Clock,
}

fn rule(store: &Arc<Store>, cache: bool, key: KeySettings) -> Arc<RuleSettings> {
    Arc::new(RuleSettings { cache, key, ..crate::testing::rule(store) })
}

/// A rule with a minute of lifetime and everything that keeps clients from waiting.
fn fast(store: &Arc<Store>) -> Arc<RuleSettings> {
    let seconds = Duration::from_secs;
    let plain = Arc::into_inner(rule(store, true, KeySettings::default())).unwrap();
    let ttl = Lifetimes { any: Some(seconds(60)), by_status: Vec::new() };
    Arc::new(RuleSettings {
        number: RuleNumber::unique(),
        policy: CachePolicy {
            ttl,
            jitter_percent: 50,
            stale_while_revalidate: Some(seconds(4)),
            stale_if_error: Some(seconds(3600)),
            ..CachePolicy::default()
        },
        refresh_ahead: true,
        collapse_wait: Some(Duration::from_millis(1500)),
        min_uses: 3,
        fetches_heads: true,
        ..plain
    })
}

/// A rule that takes nothing for a template.
fn raw(store: &Arc<Store>) -> Arc<RuleSettings> {
    let mut rule = crate::testing::rule(store);
    rule.policy.templates.assemble = Assemble::Off;
    Arc::new(rule)
}

impl Fixture {
    fn new() -> Self {
        let clock = Clock::default();
        let store = Store::in_memory(&MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 });
        let path =
            |path: &str| RuleMatch { paths: vec![format!("^(?s-u){path}.*$")], ..RuleMatch::default() };
        let keyed = KeySettings {
            query: QueryParts::Except(vec!["utm_*".to_owned()]),
            sort: true,
            cookies: vec!["lang".to_owned()],
            fields: vec![HeaderName::from_static("x-a")],
        };
        let fast = fast(&store);
        let site = SiteSettings {
            name: "example.com".into(),
            route: RouteId::default(),
            hosts: vec!["example.com".to_owned(), "*.example.com".to_owned()],
            origin: Some(0),
            root: None,
            websocket: false,
            tls: None,
            purge: crate::settings::Access::Closed,
            rules: vec![
                (path("/off"), rule(&store, false, KeySettings::default())),
                (path("/keyed"), rule(&store, true, keyed)),
                (path("/fast"), Arc::clone(&fast)),
                (path("/raw"), raw(&store)),
            ],
            otherwise: rule(&store, true, KeySettings::default()),
        };
        let (proxy, plan) = proxy_of(site, vec![no_app()], std::slice::from_ref(&store), &clock);
        Self { worker: Arc::new(Worker::new(&proxy, 0, plan).unwrap()), store, fast, clock }
    }

    fn question(method: &str, target: &str, fields: &[(&str, &str)]) -> Question {
        let url = format!("http://example.com{target}");
        Question::parse(method, &url, fields.iter().copied(), Bytes::new(), true).unwrap()
    }

    async fn explain(&self, method: &str, target: &str, fields: &[(&str, &str)]) -> Explanation {
        let question = Self::question(method, target, fields);
        Arc::clone(&self.worker).explain(question, true).await.unwrap()
    }

    /// Stores what the origin says to `GET target`.
    fn keep(&self, target: &str, asked: &[(&str, &str)], said: &[(&'static str, &'static str)]) {
        self.keep_since(0, target, asked, said);
    }

    /// The same, fetched after this invalidation.
    fn keep_since(
        &self,
        number: u64,
        target: &str,
        asked: &[(&str, &str)],
        said: &[(&'static str, &'static str)],
    ) {
        self.keep_body(number, target, asked, said, "0123");
    }

    /// The same, with this content.
    fn keep_body(
        &self,
        number: u64,
        target: &str,
        asked: &[(&str, &str)],
        said: &[(&'static str, &'static str)],
        body: &'static str,
    ) {
        let request = Self::question("GET", target, asked).head;
        let now = self.clock.now();
        let times = ExchangeTimes { request: now, response: now };
        let plain = CachePolicy::default();
        let policy = if target.starts_with("/fast") { &self.fast.policy } else { &plain };
        let fields: HeaderMap = said
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let status = match fields.contains_key("content-range") {
            true => StatusCode::PARTIAL_CONTENT,
            false => StatusCode::OK,
        };
        let judged = larder_cache::storable(&request, status, &fields, times, policy);
        let Storability::Storable(freshness) = judged else { panic!("{judged:?}") };
        let head = StoredHead::new(&request, status, fields, freshness, policy);
        let key = key::key(&request, &KeySettings::default(), None, b"");
        let key = if head.part.is_some() { key.of_parts() } else { key };
        let body = Bytes::from_static(body.as_bytes());
        let body = StoredBody::new(vec![body], self.store.reserve(1000).unwrap());
        let room = self.store.reserve(1000).unwrap();
        let response = larder_store::StoredResponse::new(Arc::new(head), Arc::new(body), number, room);
        let response = larder_store::StoredResponse { took: Duration::from_secs(2), ..response };
        assert!(self.store.insert(&key, Arc::new(response), |_| false, || true));
    }
}

/// The verdict, its word, and the line.
fn verdict(told: &Explanation) -> (Course, &str, &str) {
    (told.decision.verdict, &told.decision.reason.token, &told.cache_status)
}

#[tokio::test]
async fn each_way_that_a_request_can_go_is_told_by_its_own_reason() {
    let fixture = Fixture::new();
    fixture.keep("/fresh", &[], &[("cache-control", "max-age=100")]);
    fixture.keep("/no-cache", &[], &[("cache-control", "max-age=9, no-cache"), ("etag", "\"a\"")]);
    fixture.keep("/vary", &[("x-b", "1")], &[("cache-control", "max-age=100"), ("vary", "x-b")]);
    let part = [("cache-control", "max-age=100"), ("content-range", "bytes 0-3/9"), ("etag", "\"p\"")];
    fixture.keep("/part", &[("range", "bytes=0-3")], &part);
    fixture.store.mark_hit_for_miss(
        &key::key(&Fixture::question("GET", "/marked", &[]).head, &KeySettings::default(), None, b""),
        fixture.clock.now().monotonic + Duration::from_secs(9),
    );
    let only = [("cache-control", "only-if-cached")];
    for (method, target, fields, expected) in [
        ("GET", "/fresh", &[][..], (Course::Hit, "hit", "larder; hit; ttl=99")),
        ("HEAD", "/fresh", &[], (Course::Hit, "hit", "larder; hit; ttl=99")),
        ("GET", "/fresh?", &[], (Course::Fetch, "uri-miss", "larder; fwd=uri-miss")),
        ("GET", "/no-cache", &[], (Course::Validate, "no-cache", "larder; fwd=stale")),
        ("GET", "/vary", &[("x-b", "1")], (Course::Hit, "hit", "larder; hit; ttl=99")),
        ("GET", "/vary", &[("x-b", "2")], (Course::Fetch, "vary-miss", "larder; fwd=vary-miss")),
        ("GET", "/part", &[("range", "bytes=1-2")], (Course::Hit, "hit", "larder; hit; ttl=99")),
        ("GET", "/part", &[], (Course::Complete, "partial", "larder; fwd=partial")),
        ("GET", "/marked", &[], (Course::Fetch, "hit-for-miss", "larder; fwd=uri-miss")),
        ("GET", "/x", &only, (Course::Refuse, "only-if-cached", "larder; detail=only-if-cached")),
        ("GET", "/off/x", &[], (Course::Pass, "bypass", "larder; fwd=bypass")),
        ("POST", "/fresh", &[], (Course::Pass, "method", "larder; fwd=method")),
        ("QUERY", "/fresh", &[], (Course::Fetch, "miss", "larder; fwd=miss")),
    ] {
        let told = fixture.explain(method, target, fields).await;
        let (verdict, token, line) = verdict(&told);
        let line = line.replace("ttl=100", "ttl=99");
        assert_eq!((verdict, token, line.as_str()), expected, "{method} {target} {fields:?}");
        assert!(!told.decision.reason.sentence.is_empty() && !told.decision.reason.section.is_empty());
    }
}

#[tokio::test]
async fn a_head_that_is_fetched_with_get_is_told() {
    let fixture = Fixture::new();
    fixture.keep("/stale", &[], &[("cache-control", "max-age=0"), ("etag", "\"a\"")]);
    let says_get = async |target: &str, fields: &[(&str, &str)]| {
        let told = fixture.explain("HEAD", target, fields).await;
        told.decision.reason.sentence.contains("fetched with GET")
    };
    assert!(says_get("/none", &[]).await);
    assert!(!says_get("/stale", &[]).await, "what is stale is asked after with HEAD");
    assert!(!says_get("/none", &[("authorization", "x")]).await, "it is for one client alone");
}

#[tokio::test]
async fn a_coding_that_the_request_does_not_take_is_told() {
    let fixture = Fixture::new();
    let gzip = [("cache-control", "max-age=100"), ("content-encoding", "gzip"), ("etag", "\"a\"")];
    fixture.keep("/a", &[("accept-encoding", "gzip")], &gzip);
    let told = fixture.explain("GET", "/a", &[]).await;
    assert_eq!(verdict(&told).0, Course::Fetch);
    assert_eq!(told.decision.reason.section, "RFC 9110 12.5.3");
    assert!(told.decision.conditions.is_empty(), "its tag is not offered: {:?}", told.decision.conditions);
    let [stored] = &told.stored.responses[..] else { panic!("{:?}", told.stored) };
    assert_eq!((stored.selected, stored.content_encoding.as_deref()), (false, Some("gzip")));
    assert_eq!(stored.vary[0].name, "accept-encoding");
    fixture.keep("/a", &[], &[("cache-control", "max-age=100")]);
    let told = fixture.explain("GET", "/a", &[("accept-encoding", "br, gzip;q=0.1")]).await;
    assert_eq!(verdict(&told).0, Course::Hit);
    let [chosen, other] = &told.stored.responses[..] else { panic!("{:?}", told.stored) };
    assert_eq!((chosen.content_encoding.as_deref(), other.content_encoding.as_deref()), (Some("gzip"), None));
}

#[tokio::test]
async fn stale_responses_are_told_with_their_conditions_and_what_the_origins_failure_would_mean() {
    let fixture = Fixture::new();
    let said = [("cache-control", "max-age=10, stale-while-revalidate=5"), ("etag", "\"a\"")];
    fixture.keep("/a", &[], &said);
    let uses = |told: &Explanation| {
        let uses = told.decision.stale_use.iter();
        uses.map(|of| (of.cause.clone(), of.allowed, of.reason.token.clone())).collect::<Vec<_>>()
    };
    let expected = |behind: bool| {
        [
            ("origin-dead", true, "stale-origin-dead"),
            ("origin-error", false, "stale-not-on-error"),
            ("while-revalidate", behind, "stale-while-revalidate"),
        ]
        .map(|(cause, allowed, token)| (cause.to_owned(), allowed, token.to_owned()))
    };
    let fresh = fixture.explain("GET", "/a", &[]).await;
    assert_eq!((fresh.decision.verdict, &uses(&fresh)[..]), (Course::Hit, &expected(true)[..]));
    fixture.clock.advance(Duration::from_secs(12));
    let behind = fixture.explain("GET", "/a", &[]).await;
    assert_eq!(verdict(&behind).0, Course::Refresh);
    assert!(behind.cache_status.contains("hit; ttl=-2; detail="), "{}", behind.cache_status);
    assert_eq!(uses(&behind), expected(true));
    fixture.clock.advance(Duration::from_secs(5));
    let stale = fixture.explain("GET", "/a", &[]).await;
    assert_eq!(verdict(&stale).0, Course::Validate);
    assert_eq!(uses(&stale), expected(false));
    let tag = Field { name: "if-none-match".to_owned(), value: "\"a\"".to_owned() };
    assert_eq!(stale.decision.conditions, [tag]);
    assert_eq!(stale.stored.responses[0].freshness.ttl_seconds, -7);
}

/// Cause, whether, and the window with who gives it.
type Use<'a> = (&'a str, bool, Option<(f64, &'a str, &'a str)>);

fn uses(told: &Explanation) -> Vec<Use<'_>> {
    let uses = told.decision.stale_use.iter();
    uses.map(|of| {
        let window = of.window.as_ref().map(|of| (of.seconds, of.source.as_str(), of.field.as_str()));
        (of.cause.as_str(), of.allowed, window)
    })
    .collect()
}

#[tokio::test]
async fn windows_of_stale_use_are_told_with_who_gives_them() {
    let fixture = Fixture::new();
    let keep = |target, cc| fixture.keep(target, &[], &[("cache-control", cc), ("etag", "\"a\"")]);
    keep("/plain", "max-age=10");
    keep("/own", "max-age=10, stale-while-revalidate=5, stale-if-error=20");
    keep("/fast/none", "max-age=10");
    keep("/fast/own", "max-age=10, stale-while-revalidate=5, stale-if-error=20");
    keep("/fast/must", "max-age=10, must-revalidate");
    let dead = ("origin-dead", true, Some((86_400.0, "rule", "stale_if_dead = 86400s")));
    let own = [
        ("origin-dead", true, Some((20.0, "response", "stale-if-error=20"))),
        ("origin-error", true, Some((20.0, "response", "stale-if-error=20"))),
        ("while-revalidate", true, Some((5.0, "response", "stale-while-revalidate=5"))),
    ];
    let by_rule = [
        dead,
        ("origin-error", true, Some((3600.0, "rule", "stale_if_error = 3600s"))),
        ("while-revalidate", true, Some((4.0, "rule", "stale_while_revalidate = 4s"))),
    ];
    let never = ["origin-dead", "origin-error", "while-revalidate"].map(|cause| (cause, false, None));
    for (target, expected) in [
        ("/plain", &[dead, ("origin-error", false, None)][..]),
        ("/own", &own),
        ("/fast/none", &by_rule),
        ("/fast/own", &own),
        ("/fast/must", &never),
    ] {
        let told = fixture.explain("GET", target, &[]).await;
        assert_eq!(uses(&told), expected, "{target}");
        let expiry = told.removal.iter().find(|of| of.token == "expiry").unwrap();
        let is_behind = expiry.sentence.contains("refreshed behind");
        assert_eq!(is_behind, expected.last().is_some_and(|of| of.0 == "while-revalidate" && of.1));
    }
    fixture.clock.advance(Duration::from_secs(13));
    let told = fixture.explain("GET", "/fast/none", &[]).await;
    assert_eq!(verdict(&told).1, "stale-while-revalidate");
    fixture.clock.advance(Duration::from_secs(2));
    let told = fixture.explain("GET", "/fast/none", &[]).await;
    assert_eq!(verdict(&told).0, Course::Validate);
    let (_, allowed, window) = uses(&told)[2];
    assert_eq!((allowed, window.map(|window| window.0)), (false, Some(4.0)));
    let left = fixture.explain("GET", "/plain", &[]).await.stored.responses[0].freshness.left_seconds;
    assert!((-5.9..=-5.0).contains(&left), "{left}");
}

#[tokio::test]
async fn jitter_is_told_where_it_shortened_a_lifetime() {
    let fixture = Fixture::new();
    fixture.keep("/fast", &[], &[("etag", "\"a\"")]);
    fixture.keep("/fast/own", &[], &[("cache-control", "max-age=60")]);
    let told = fixture.explain("GET", "/fast", &[]).await;
    let freshness = &told.stored.responses[0].freshness;
    assert_eq!((freshness.source.token.as_str(), freshness.shortened_from_seconds), ("ttl", Some(60.0)));
    assert!(freshness.lifetime_seconds > 30.0 && freshness.lifetime_seconds < 60.0, "{freshness:?}");
    assert_eq!(freshness.candidates[0].lifetime_seconds, 60.0);
    let own = fixture.explain("GET", "/fast/own", &[]).await;
    assert_eq!(own.stored.responses[0].freshness.shortened_from_seconds, None);
}

#[tokio::test]
async fn a_refresh_ahead_is_told_with_its_beginning() {
    let fixture = Fixture::new();
    for target in ["/fast", "/plain"] {
        fixture.keep(target, &[], &[("cache-control", "max-age=100"), ("etag", "\"a\"")]);
    }
    let ahead = async |target| {
        let told = fixture.explain("GET", target, &[]).await;
        // The clock runs on while this does.
        told.decision.refresh_ahead_seconds.map(f64::ceil)
    };
    // It took 2 s to come: 3 s, and a twentieth of 100 s.
    assert_eq!((ahead("/fast").await, ahead("/plain").await), (Some(92.0), None));
    fixture.clock.advance(Duration::from_secs(91));
    assert_eq!(ahead("/fast").await, Some(1.0));
    fixture.clock.advance(Duration::from_secs(8));
    assert_eq!(ahead("/fast").await, Some(0.0));
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(ahead("/fast").await, None);
}

#[tokio::test]
async fn the_rules_other_settings_and_the_uses_of_a_url_are_told() {
    let fixture = Fixture::new();
    let told = async |target| fixture.explain("GET", target, &[]).await;
    let fast = told("/fast/a").await;
    assert_eq!((fast.route.refresh_ahead, fast.route.collapse_wait_seconds), (true, Some(1.5)));
    assert_eq!((fast.route.min_uses, fast.decision.uses), (3, Some(1)));
    // Explaining does not count.
    assert_eq!(told("/fast/a").await.decision.uses, Some(1));
    let head = Fixture::question("GET", "/fast/a", &[]).head;
    fixture.worker.proxy.uses.count(key::key(&head, &KeySettings::default(), None, b"").hash());
    assert_eq!(told("/fast/a").await.decision.uses, Some(2));
    fixture.keep("/fast/a", &[], &[("cache-control", "max-age=9")]);
    assert_eq!(told("/fast/a").await.decision.uses, None);
    let part = [("cache-control", "max-age=9"), ("content-range", "bytes 0-3/9"), ("etag", "\"p\"")];
    fixture.keep("/fast/part", &[("range", "bytes=0-3")], &part);
    let completed = told("/fast/part").await.decision;
    assert_eq!((completed.verdict, completed.uses), (Course::Complete, None));
    let plain = told("/plain").await;
    assert_eq!((plain.route.refresh_ahead, plain.route.collapse_wait_seconds), (false, None));
    assert_eq!((plain.route.min_uses, plain.decision.uses), (1, None));
}

#[tokio::test]
async fn what_the_last_failure_makes_of_a_stale_response_is_told() {
    let fixture = Fixture::new();
    for target in ["/a", "/fast/a"] {
        fixture.keep(target, &[], &[("cache-control", "max-age=10"), ("etag", "\"a\"")]);
    }
    fixture.clock.advance(Duration::from_secs(20));
    for (target, failure, expected) in [
        ("/a", RefreshFailure::Dead, "larder; hit; ttl=-10; detail=stale-origin-down"),
        ("/a", RefreshFailure::Error, "larder; fwd=stale"),
        ("/fast/a", RefreshFailure::Dead, "larder; hit; ttl=-10; detail=stale-origin-down"),
        ("/fast/a", RefreshFailure::Error, "larder; hit; ttl=-10; detail=stale-if-error"),
    ] {
        assert_eq!(fixture.explain("GET", target, &[]).await.cache_status, "larder; fwd=stale", "{target}");
        let head = Fixture::question("GET", target, &[]).head;
        let key = key::key(&head, &KeySettings::default(), None, b"");
        let stored = fixture.store.responses(&key, fixture.clock.now().monotonic).0.remove(0);
        stored.refreshing.failed(fixture.clock.now().monotonic, failure);
        let told = fixture.explain("GET", target, &[]).await;
        assert_eq!(told.cache_status, expected, "{target} {failure:?}");
        assert_eq!(told.decision.verdict == Course::Refresh, expected.contains("hit"));
        stored.refreshing.recovered();
    }
}

#[test]
fn help_tells_what_to_ask_instead() {
    for (reason, expected) in [
        (NotStorable::Method, "Ask with GET to see whether that is stored."),
        (NotStorable::PartialContent, "Ask without Range: larder answers ranges from the whole."),
        (NotStorable::RangeNotSatisfiable, "Ask for a range that lies within the content."),
    ] {
        assert_eq!(crate::help::help(reason), Some(expected));
    }
    let fixture = Fixture::new();
    let plan = Arc::clone(&fixture.worker.worker_plan.load().plan);
    let question = Fixture::question("GET", "/fast/a", &[]);
    let (_, site) = plan.router.site("example.com").unwrap();
    let settings = site.settings_for(&question.head).unwrap();
    let now = fixture.clock.now();
    let walk = Walk {
        worker: &fixture.worker,
        plan: &plan,
        site,
        settings,
        question,
        versions: None,
        now,
        running: true,
    };
    let (_, sentence, help) =
        walk.passing(crate::decision::Storable { seldom: true, is_too_large: false }).unwrap();
    assert_eq!(sentence, "The rule stores only what was asked for 3 times lately.");
    assert_eq!(help, "Ask again, or set a smaller min_uses.");
}

#[tokio::test]
async fn rule_and_key_are_told_part_by_part() {
    let fixture = Fixture::new();
    let fields = [("cookie", "lang=de"), ("x-forwarded-for", "192.0.2.1"), ("host", "WWW.example.com")];
    let told = fixture.explain("GET", "/keyed/../keyed?b=1&utm_x=2&a", &fields).await;
    assert_eq!(told.request.dropped_fields, ["x-forwarded-for"]);
    assert_eq!(told.request.url, "http://www.example.com/keyed/../keyed?b=1&utm_x=2&a");
    let route = &told.route;
    assert_eq!(route.host_pattern.as_deref(), Some("*.example.com"));
    assert_eq!((route.canonical_path.as_str(), route.rule, route.rules), ("/keyed", Some(2), 4));
    assert_eq!(route.conditions, ["path /keyed*"]);
    let [passed] = route.passed_over.as_slice() else { panic!("{:?}", route.passed_over) };
    assert_eq!((route.label.as_str(), passed.label.as_str(), passed.line), ("a rule", "a rule", None));
    assert_eq!((passed.rule, passed.conditions.as_slice()), (1, &["path /off*".to_owned()][..]));
    let key = told.key.unwrap();
    assert_eq!((key.dropped_parameters, key.reordered), (vec!["utm_x=2".to_owned()], true));
    let parts: Vec<_> = key.parts.iter().map(|part| (part.name.as_str(), part.value.as_deref())).collect();
    let expected = [
        ("scheme", Some("http")),
        ("host", Some("www.example.com")),
        ("path", Some("/keyed/../keyed")),
        ("query", Some("a&b=1")),
        ("cookie lang", Some("de")),
        ("field x-a", None),
    ];
    assert_eq!(parts, expected);
    let none = fixture.explain("GET", "/other", &[]).await.route;
    assert_eq!((none.rule, none.passed_over.len(), none.conditions.len()), (None, 4, 0));
}

#[tokio::test]
async fn explaining_stores_nothing_and_asks_nobody_when_told_so() {
    let fixture = Fixture::new();
    fixture.keep("/vary", &[], &[("cache-control", "max-age=100"), ("vary", "x-b")]);
    let before = fixture.store.usage().objects;
    for target in ["/vary", "/missing"] {
        let told = fixture.explain("GET", target, &[("x-b", "9")]).await;
        assert!(told.origin.unwrap().not_asked.is_some());
    }
    assert_eq!(fixture.store.usage().objects, before);
    assert_eq!(fixture.worker.proxy.gauges().flights, 0);
}

#[tokio::test]
async fn what_is_refused_before_the_cache_is_an_error_with_its_word() {
    let fixture = Fixture::new();
    for (url, token) in [("http://other.org/", "unknown-host"), ("http://example.com/../x", "climbing-path")]
    {
        let question = Question::parse("GET", url, [], Bytes::new(), true).unwrap();
        let error = Arc::clone(&fixture.worker).explain(question, true).await.unwrap_err();
        assert_eq!(error.token(), token, "{error}");
    }
}

#[tokio::test]
async fn an_explanation_survives_its_way_as_json() {
    let fixture = Fixture::new();
    fixture.keep("/a", &[], &[("cache-control", "max-age=10"), ("vary", "x-b"), ("cache-groups", "\"g\"")]);
    for (method, target) in [("GET", "/a"), ("GET", "/keyed"), ("POST", "/a")] {
        let told = fixture.explain(method, target, &[]).await;
        let json = serde_json::to_string(&told).unwrap();
        assert_eq!(serde_json::from_str::<Explanation>(&json).unwrap(), told);
    }
}

#[tokio::test]
async fn what_needs_a_lease_is_in_doubt_as_long_as_there_is_none() {
    let (fixture, has_lease) = (Fixture::new(), Arc::new(AtomicBool::new(false)));
    fixture.worker.proxy.join(Arc::new(FleetOfOne::new(&has_lease, || 0)));
    fixture.keep("/fresh", &[], &[("cache-control", "max-age=100"), ("etag", "\"a\"")]);
    let told = fixture.explain("GET", "/fresh", &[]).await;
    assert_eq!((told.decision.verdict, &*told.decision.reason.token), (Course::Validate, "no-lease"));
    has_lease.store(true, Ordering::SeqCst);
    let told = fixture.explain("GET", "/fresh", &[]).await;
    assert_eq!(told.decision.verdict, Course::Hit, "{told:?}");
}
