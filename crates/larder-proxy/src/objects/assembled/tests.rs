//! Pages of a site with a few rules, from stores with known content: what they are, and why some are none. There is no origin to ask.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use larder_cache::purge::{Mode, Scope, Selector};
use larder_cache::{Assemble, CachePolicy, ExchangeTimes, Storability, StoredHead};
use larder_disk::engine::{Disk, DiskSettings, DiskSize};
use larder_disk::{Disks, Layout};
use larder_http::time::Clock;
use larder_observe::RouteId;
use larder_store::{MemoryStoreSettings, Store, StoredBody, StoredResponse};

use super::*;
use crate::purges::{Dialect, Order, Sender};
use crate::settings::{FragmentSettings, KeySettings, RuleMatch, RuleSettings, SiteSettings};
use crate::testing_proxy::{no_app, proxy_of};

/// `example.com`, with rules for `/mine*`, `/strict*`, `/small*`, `/off*` and `/omit*`.
struct Fixture {
    worker: Arc<Worker>,
    store: Arc<Store>,
    clock: Clock,
    root: tempfile::TempDir,
}

type Fields<'a> = &'a [(&'static str, &'static str)];

const SSI: (&str, &str) = ("surrogate-control", "content=\"SSI/1.0\"");
const ESI: (&str, &str) = ("surrogate-control", "content=\"ESI/1.0\"");
const FRESH: (&str, &str) = ("cache-control", "max-age=100");

impl Fixture {
    fn new() -> Self {
        let settings = MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 };
        Self::of(Store::in_memory(&settings))
    }

    fn of(store: Arc<Store>) -> Self {
        let (clock, root) = (Clock::default(), tempfile::tempdir().unwrap());
        let base = || crate::testing::rule(&store);
        let path =
            |path: &str| RuleMatch { paths: vec![format!("^(?s-u){path}.*$")], ..RuleMatch::default() };
        let key = KeySettings { cookies: vec!["id".to_owned()], ..KeySettings::default() };
        let mut strict = CachePolicy::default();
        strict.templates.strict = true;
        let mut off = CachePolicy::default();
        off.templates.assemble = Assemble::Off;
        let fragments = |fragments: FragmentSettings| Arc::new(fragments);
        let small = fragments(FragmentSettings { page_size: 120, ..FragmentSettings::default() });
        let omit = fragments(FragmentSettings { omits_failed: true, ..FragmentSettings::default() });
        let rules = vec![
            (path("/mine"), Arc::new(RuleSettings { key, ..base() })),
            (path("/strict"), Arc::new(RuleSettings { policy: strict, ..base() })),
            (path("/small"), Arc::new(RuleSettings { fragments: small, ..base() })),
            (path("/off"), Arc::new(RuleSettings { policy: off, ..base() })),
            (path("/omit"), Arc::new(RuleSettings { fragments: omit, ..base() })),
        ];
        let site = SiteSettings {
            name: "example.com".into(),
            route: RouteId::default(),
            hosts: vec!["example.com".to_owned()],
            origin: Some(0),
            root: Some(root.path().to_owned()),
            websocket: false,
            tls: None,
            purge: crate::settings::Access::Closed,
            rules,
            otherwise: Arc::new(base()),
        };
        let (proxy, plan) = proxy_of(site, vec![no_app()], std::slice::from_ref(&store), &clock);
        Self { worker: Arc::new(Worker::new(&proxy, 0, plan).unwrap()), store, clock, root }
    }

    /// Stores what was said to `GET target` with these fields.
    fn keep(&self, target: &str, asked: Fields<'_>, said: Fields<'_>, body: &'static str) {
        self.keep_of(StatusCode::OK, target, asked, said, body);
    }

    fn keep_of(
        &self,
        status: StatusCode,
        target: &str,
        asked: Fields<'_>,
        said: Fields<'_>,
        body: &'static str,
    ) {
        let map = |fields: Fields<'_>| -> HeaderMap {
            let line = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            fields.iter().map(line).collect()
        };
        let mut request = crate::testing::request(target);
        request.fields = map(asked);
        let now = self.clock.now();
        let (times, policy) = (ExchangeTimes { request: now, response: now }, CachePolicy::default());
        let said = map(said);
        let judged = larder_cache::storable(&request, status, &said, times, &policy);
        let Storability::Storable(freshness) = judged else { panic!("{judged:?}") };
        let head = StoredHead::new(&request, status, said, freshness, &policy);
        let cookies = if target.starts_with("/mine") { vec!["id".to_owned()] } else { Vec::new() };
        let key = key::key(&request, &KeySettings { cookies, ..KeySettings::default() }, None, b"");
        let room = || self.store.reserve(4096).unwrap();
        let body = StoredBody::new(vec![Bytes::from_static(body.as_bytes())], room());
        let number = self.worker.proxy.invalidations.current();
        let response = StoredResponse::new(Arc::new(head), Arc::new(body), number, room());
        assert!(self.store.insert(&key, Arc::new(response), |_| false, || true));
    }

    async fn page(&self, target: &str) -> StoredPage {
        self.worker.page(&format!("http://example.com{target}")).await.unwrap()
    }

    /// The page as text, and why it is not exported.
    async fn text(&self, target: &str) -> (String, Option<String>) {
        let page = self.page(target).await;
        let left_out = page.told().left_out.clone().map(|why| why.token);
        let is_none = page.told().body_bytes.is_none();
        match page.into_body(false) {
            Ok(body) => (String::from_utf8(bytes_of(body)).unwrap(), left_out),
            Err(_) if is_none => ("no page".to_owned(), left_out),
            Err(error) => panic!("{error}"),
        }
    }
}

fn bytes_of(body: Body) -> Vec<u8> {
    match body {
        Body::Empty => Vec::new(),
        Body::Pieces { owner, range } => {
            let all = owner.pieces().concat();
            assert_eq!(range, 0..all.len() as u64);
            all
        }
        other => panic!("{other:?}"),
    }
}

fn field<'a>(page: &'a StoredPage, name: &str) -> Option<&'a str> {
    page.told().fields.iter().find(|field| field.name == name).map(|field| field.value.as_str())
}

#[tokio::test]
async fn a_page_is_made_of_what_is_stored_be_it_stale_or_nested() {
    let fixture = Fixture::new();
    fixture.keep(
        "/page",
        &[],
        &[FRESH, ESI],
        "<p><esi:include src=\"/nav\"/>|<esi:include src=\"/in\"/></p>",
    );
    fixture.keep("/nav", &[], &[("cache-control", "max-age=5"), ("etag", "\"n\"")], "nav");
    fixture.keep("/in", &[], &[FRESH, SSI], "(<!--#include virtual=\"/deep\" -->)");
    fixture.keep("/deep", &[], &[FRESH], "deep");
    fixture.clock.advance(Duration::from_secs(30));
    assert_eq!(fixture.text("/page").await, ("<p>nav|(deep)</p>".to_owned(), None));
    let page = fixture.page("/page").await;
    assert_eq!((page.told().language.as_deref(), page.told().body_bytes), (Some("esi"), Some(17)));
    // The lifetime of the stale part is over.
    assert_eq!(field(&page, "cache-control"), Some("max-age=5"));
    assert_eq!((field(&page, "age"), field(&page, "content-length")), (Some("30"), Some("17")));
    assert!(field(&page, "etag").is_some_and(|tag| tag.len() == 34), "{:?}", page.told());
    assert_eq!(fixture.worker.proxy.gauges().flights, 0, "nothing was asked for");
}

#[tokio::test]
async fn a_page_that_lacks_a_part_or_fails_is_none() {
    let fixture = Fixture::new();
    let none = |token: &str| ("no page".to_owned(), Some(token.to_owned()));
    fixture.keep("/lacks", &[], &[FRESH, SSI], "a<!--#include virtual=\"/nowhere\" -->");
    fixture.keep("/fails", &[], &[FRESH, ESI], "a<esi:include src=\"/404\"/>");
    fixture.keep_of(StatusCode::NOT_FOUND, "/404", &[], &[FRESH], "no");
    fixture.keep("/strict", &[], &[FRESH, ESI], "a<esi:inline name=\"x\"/>");
    assert_eq!(fixture.text("/lacks").await, none("part-missing"));
    assert_eq!(fixture.text("/fails").await, none("fragment-failed"));
    assert_eq!(fixture.text("/strict").await, none("template-invalid"));
    let lacks = fixture.page("/lacks").await.told().left_out.clone().unwrap();
    assert_eq!(lacks.sentence, "A part is not stored: http://example.com/nowhere");
    // A part that nobody asks for is not missing.
    let text = "<!--#if expr=\"$request_method = POST\" --><!--#include virtual=\"/posted\" --><!--#else -->got<!--#endif -->";
    fixture.keep("/method", &[], &[FRESH, SSI], text);
    assert_eq!(fixture.text("/method").await, ("got".to_owned(), None));
}

#[tokio::test]
async fn what_stands_in_for_a_failed_part_is_part_of_the_page() {
    let fixture = Fixture::new();
    fixture.keep_of(StatusCode::NOT_FOUND, "/404", &[], &[FRESH], "no");
    fixture.keep("/else", &[], &[FRESH], "else");
    let failing = Some("fragment-failed".to_owned());
    let error = "[an error occurred while processing the directive]".to_owned();
    for (target, language, text, expected) in [
        ("/alt", ESI, "<esi:include src=\"/404\" alt=\"/else\"/>", ("else".to_owned(), None)),
        ("/gone", ESI, "x<esi:include src=\"/404\" onerror=\"continue\"/>", ("x".to_owned(), None)),
        ("/omit", ESI, "x<esi:include src=\"/404\"/>", ("x".to_owned(), None)),
        ("/error", SSI, "<!--#include virtual=\"/404\" -->", (error.clone(), failing.clone())),
        ("/or", SSI, "<!--#include virtual=\"/404\" onerror=\"/else\" -->", ("else".to_owned(), None)),
        ("/neither", SSI, "<!--#include virtual=\"/404\" onerror=\"/404\" -->", (error, failing)),
        (
            "/stub",
            SSI,
            "<!--#block name=\"b\" -->stub<!--#endblock --><!--#include virtual=\"/404\" stub=\"b\" -->",
            ("stub".to_owned(), None),
        ),
    ] {
        fixture.keep(target, &[], &[FRESH, language], text);
        assert_eq!(fixture.text(target).await, expected, "{target}");
    }
}

#[tokio::test]
async fn a_page_that_is_somebodys_own_is_shown_and_not_given_to_all() {
    let fixture = Fixture::new();
    fixture.keep("/keyed", &[], &[FRESH, SSI], "<!--#include virtual=\"/mine/name\" -->");
    fixture.keep("/mine/name", &[], &[FRESH], "nobody");
    fixture.keep("/mine/name", &[("cookie", "id=7")], &[FRESH], "ada");
    fixture.keep(
        "/condition",
        &[],
        &[FRESH, SSI],
        "<!--#if expr=\"$cookie_id\" -->in<!--#else -->out<!--#endif -->",
    );
    fixture.keep(
        "/address",
        &[],
        &[FRESH, SSI],
        "<!--#if expr=\"$remote_addr = 1\" -->a<!--#else -->b<!--#endif -->",
    );
    for (target, text) in [("/keyed", "nobody"), ("/condition", "out"), ("/address", "b")] {
        assert_eq!(fixture.text(target).await, (text.to_owned(), Some("personal".to_owned())), "{target}");
        let page = fixture.page(target).await;
        assert_eq!(field(&page, "cache-control"), Some("private, no-cache"));
        let refused = page.into_body(true);
        assert!(
            matches!(&refused, Err(ObjectsError::NoPage { why, .. }) if why.token == "personal"),
            "{refused:?}"
        );
    }
    // What reads a field that all visitors may share says so.
    fixture.keep(
        "/agent",
        &[],
        &[FRESH, SSI],
        "<!--#if expr=\"$http_user_agent\" -->a<!--#else -->b<!--#endif -->",
    );
    assert_eq!(fixture.text("/agent").await, ("b".to_owned(), None));
    assert_eq!(field(&fixture.page("/agent").await, "vary"), Some("user-agent"));
}

#[tokio::test]
async fn limits_hold() {
    let fixture = Fixture::new();
    let too_large = ("no page".to_owned(), Some("page-too-large".to_owned()));
    let text = |bytes: usize| -> &'static str { Box::leak("x".repeat(bytes).into_boxed_str()) };
    fixture.keep("/n", &[], &[FRESH], text(50));
    fixture.keep("/long", &[], &[FRESH], text(100));
    let once = "<esi:include src='/n'/>";
    fixture.keep("/small/page", &[], &[FRESH, ESI], once);
    assert_eq!(fixture.text("/small/page").await, (text(50).to_owned(), None));
    // Its parts are short enough, but one of them stands there three times.
    fixture.keep("/small/often", &[], &[FRESH, ESI], Box::leak(once.repeat(3).into_boxed_str()));
    fixture.keep("/small/part", &[], &[FRESH, ESI], "<esi:include src='/long'/>");
    fixture.keep(
        "/small/own",
        &[],
        &[FRESH, ESI],
        Box::leak(format!("{once}{}", text(100)).into_boxed_str()),
    );
    for target in ["/small/often", "/small/part", "/small/own"] {
        assert_eq!(fixture.text(target).await, too_large, "{target}");
    }
    // A document within itself is not asked for.
    fixture.keep("/self", &[], &[FRESH, ESI], "x<esi:include src='/self' onerror='continue'/>");
    assert_eq!(fixture.text("/self").await, ("x".to_owned(), None));
}

#[tokio::test]
async fn what_is_no_template_is_shown_as_it_is_stored() {
    let fixture = Fixture::new();
    fixture.keep(
        "/plain",
        &[],
        &[FRESH, ("content-encoding", "gzip"), ("etag", "\"p\"")],
        "<!--#echo var='a' -->",
    );
    fixture.keep("/bare", &[], &[FRESH, SSI, ("etag", "\"b\"")], "no directive");
    fixture.keep("/off/page", &[], &[FRESH, SSI, ("etag", "\"o\"")], "<!--#echo var='a' -->");
    for (target, text, tag) in [
        ("/plain", "<!--#echo var='a' -->", "\"p\""),
        ("/bare", "no directive", "\"b\""),
        ("/off/page", "<!--#echo var='a' -->", "\"o\""),
    ] {
        assert_eq!(fixture.text(target).await, (text.to_owned(), None), "{target}");
        let page = fixture.page(target).await;
        assert_eq!((page.told().language.as_deref(), field(&page, "etag")), (None, Some(tag)), "{target}");
    }
}

#[tokio::test]
async fn what_is_for_other_requests_is_no_page() {
    let fixture = Fixture::new();
    let vary = ("vary", "accept-language");
    fixture.keep("/de", &[("accept-language", "de")], &[FRESH, SSI, vary], "<!--#echo var='a' -->");
    for url in ["http://example.com/de", "http://example.com/nothing", "http://other.example/"] {
        assert!(matches!(fixture.worker.page(url).await, Err(ObjectsError::NotForAll(said)) if said == url));
    }
    assert!(matches!(fixture.worker.page("/de").await, Err(ObjectsError::Url(_))));
    // A purge takes a part out of all pages, be it there still.
    fixture.keep("/page", &[], &[FRESH, ESI], "<esi:include src='/nav'/>");
    fixture.keep("/nav", &[], &[FRESH, ("etag", "\"n\"")], "nav");
    assert_eq!(fixture.text("/page").await, ("nav".to_owned(), None));
    let order = Order {
        wait: None,
        selectors: vec![Selector::Url("http://example.com/nav".into())],
        mode: Mode::Soft,
        scope: Arc::new(Scope::any()),
        here: Vec::new(),
        takes_patterns: true,
    };
    let sender = Sender { dialect: Dialect::Api, peer: None, by: "admin" };
    fixture.worker.purge(&order, sender).await.unwrap();
    assert_eq!(fixture.text("/page").await.1.as_deref(), Some("part-missing"));
}

#[tokio::test]
async fn a_file_below_the_root_is_a_part_as_it_is_for_clients() {
    let fixture = Fixture::new();
    std::fs::write(fixture.root.path().join("head.html"), "from the root").unwrap();
    fixture.keep("/page", &[], &[FRESH, SSI], "<!--#include virtual=\"/head.html\" -->");
    assert_eq!(fixture.text("/page").await, ("from the root".to_owned(), None));
}

#[tokio::test]
async fn a_page_is_made_of_what_lies_on_a_disk_and_nothing_comes_into_memory() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::open(DiskSettings {
        path: folder.path().join("d"),
        size: DiskSize::Bytes(64 << 20),
        idle: None,
        files: Default::default(),
    });
    // Memory for a few of the responses, of which the last are not those of the page.
    let settings = MemoryStoreSettings { memory: 32 << 10, max_object: 16 << 10 };
    let disks = Disks::new(Layout::Single, vec![disk.unwrap()], 1 << 20);
    let fixture = Fixture::of(Store::new(&settings, Some(disks)));
    fixture.keep("/page", &[], &[FRESH, ESI], "<esi:include src='/nav'/>");
    fixture.keep("/nav", &[], &[FRESH], "nav");
    let key = |target| key::key(&crate::testing::request(target), &KeySettings::default(), None, b"");
    let in_memory = || fixture.store.responses(&key("/nav"), fixture.clock.now().monotonic).0.len();
    // Which part of memory another one takes its room from is up to chance.
    for number in 0..OTHERS_MAX {
        fixture.keep(&format!("/o/{number}"), &[], &[FRESH], "other");
        if number >= OTHERS_LEAST && fixture.store.settle() && in_memory() == 0 {
            break;
        }
    }
    assert_eq!(in_memory(), 0, "it was evicted");
    assert_eq!(fixture.text("/page").await, ("nav".to_owned(), None));
    assert_eq!(in_memory(), 0, "it was only looked at");
}

/// So many fill memory in any case.
const OTHERS_LEAST: usize = 24;
const OTHERS_MAX: usize = 1000;

#[tokio::test]
async fn a_page_that_is_being_sent_holds_its_place_and_who_gives_up_keeps_none() {
    let fixture = Fixture::new();
    fixture.keep("/page", &[], &[FRESH, ESI], "<esi:remove/>x");
    let free = || fixture.worker.proxy.pages_for_people.available_permits();
    let all = free();
    let body = fixture.page("/page").await.into_body(true).unwrap();
    assert_eq!(free(), all - 1);
    let given_up = tokio::time::timeout(Duration::ZERO, fixture.worker.page("http://example.com/page")).await;
    drop(given_up);
    drop(body);
    assert_eq!(free(), all);
}

#[test]
fn a_page_that_nobody_may_store_or_share_is_not_exported() {
    let token = |ground| not_for_all(ground).map(|why| why.token);
    assert_eq!(token(PageGround::NoStore(1)).as_deref(), Some("no-store"));
    for ground in [PageGround::Private(0), PageGround::Personal, PageGround::ManyNames] {
        assert_eq!(token(ground).as_deref(), Some("personal"));
    }
    for ground in [
        PageGround::NoCache(0),
        PageGround::Failed,
        PageGround::Silent,
        PageGround::EndsFirst(0),
        PageGround::Open,
    ] {
        assert_eq!(token(ground), None);
    }
}
