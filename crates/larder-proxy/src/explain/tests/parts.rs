//! What is told of a page whose template and fragments lie in the store.

use super::*;

const ESI: (&str, &str) = ("surrogate-control", "content=\"ESI/1.0\"");
const FRESH: (&str, &str) = ("cache-control", "max-age=100");

#[tokio::test]
async fn a_stored_template_is_told_with_what_the_stores_have_for_its_page() {
    let fixture = Fixture::new();
    let text = "<p><esi:include src=\"/nav\"/><esi:include src=\"/missing\" onerror=\"continue\"/>\
                <esi:include src=\"http://other.test/x\" onerror=\"continue\"/><esi:include src=\"/off/x\"/>";
    fixture.keep_body(0, "/page", &[], &[FRESH, ESI], text);
    fixture.keep("/nav", &[], &[("cache-control", "max-age=50")]);
    let told = fixture.explain("GET", "/page", &[]).await;
    let page = told.parts.unwrap();
    assert_eq!((&*page.language, &*page.said_by.token), ("esi", "surrogate-control"));
    let of = |number: usize| page.includes[number].fragment.as_ref();
    let nav = of(0).unwrap();
    assert_eq!((nav.verdict, nav.in_memory, nav.rule), (Course::Hit, true, None));
    assert_eq!(
        (nav.status, nav.body_bytes, nav.key.as_deref()),
        (Some(200), Some(4), Some("http://example.com/nav"))
    );
    assert_eq!(
        of(1).map(|missing| (missing.verdict, &*missing.reason.token)),
        Some((Course::Fetch, "uri-miss"))
    );
    assert!(of(2).is_none() && page.includes[2].failed.as_ref().is_some_and(|failed| failed.token == "host"));
    assert_eq!(of(3).map(|off| (off.verdict, off.rule)), Some((Course::Pass, Some(1))));
    assert_eq!(page.state.token, "open");
    assert_eq!(told.cache_status, "larder; fwd=partial; detail=assembled");
    assert_eq!(told.origin, None);
}

#[tokio::test]
async fn a_page_of_stored_parts_gets_the_line_of_the_part_that_ends_first() {
    let fixture = Fixture::new();
    fixture.keep_body(0, "/page", &[], &[FRESH, ESI], "<esi:include src=\"/nav\"/>");
    fixture.keep("/nav", &[], &[("cache-control", "max-age=50")]);
    let told = fixture.explain("GET", "/page", &[]).await;
    let page = told.parts.unwrap();
    assert_eq!((&*page.state.token, page.decided_by), ("whole", Some(1)));
    let line = told.cache_status.replace("ttl=50", "ttl=49");
    assert_eq!(line, "larder; hit; ttl=49; detail=assembled");
}

#[tokio::test]
async fn what_is_no_template_has_no_parts() {
    let fixture = Fixture::new();
    fixture.keep("/plain", &[], &[FRESH]);
    assert_eq!(fixture.explain("GET", "/plain", &[]).await.parts, None);
    assert_eq!(fixture.explain("GET", "/nothing", &[]).await.parts, None);
}

#[tokio::test]
async fn a_template_whose_rule_has_come_to_take_none_is_no_page() {
    let fixture = Fixture::new();
    fixture.keep_body(0, "/raw/page", &[], &[FRESH, ESI], "<esi:include src=\"/nav\"/>");
    assert_eq!(fixture.explain("GET", "/raw/page", &[]).await.parts, None);
    // As a fragment it is text.
    fixture.keep_body(0, "/page", &[], &[FRESH, ESI], "<esi:include src=\"/raw/page\"/>");
    let page = fixture.explain("GET", "/page", &[]).await.parts.unwrap();
    let language = page.includes[0].fragment.as_ref().and_then(|fragment| fragment.language.clone());
    assert_eq!((page.includes.len(), language, &*page.state.token), (1, None, "whole"));
}

#[tokio::test]
async fn a_part_that_is_stale_gives_the_page_its_word() {
    let fixture = Fixture::new();
    fixture.keep_body(0, "/page", &[], &[FRESH, ESI], "<esi:include src=\"/nav\"/>");
    fixture.keep("/nav", &[], &[("cache-control", "max-age=5, stale-while-revalidate=60")]);
    fixture.clock.advance(Duration::from_secs(10));
    let told = fixture.explain("GET", "/page", &[]).await;
    let nav = told.parts.as_ref().and_then(|page| page.includes[0].fragment.clone()).unwrap();
    assert_eq!((nav.verdict, nav.in_memory, nav.ttl_seconds), (Course::Refresh, true, Some(-5)));
    assert_eq!(told.cache_status, "larder; hit; ttl=-5; detail=stale-while-revalidate");
}
