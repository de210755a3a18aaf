//! The rules of storing, one table each.

use std::time::Duration;

use http::HeaderName;

use super::*;
use crate::example::{DATE, at_once, fields, request};
use crate::freshness::LifetimeSource;
use crate::policy::{Ignored, Lifetimes, SetCookiePolicy};

type Lines<'a> = &'a [(&'a str, &'a str)];

fn decide(policy: &CachePolicy, method: &str, asked: Lines<'_>, status: u16, said: Lines<'_>) -> Storability {
    let status = StatusCode::from_u16(status).unwrap_or_default();
    storable(&request(method, asked), status, &fields(said), at_once(), policy)
}

fn check(asked: Lines<'_>, status: u16, said: Lines<'_>, forbidden: Option<NotStorable>) {
    check_under(&CachePolicy::default(), asked, status, said, forbidden);
}

fn check_under(
    policy: &CachePolicy,
    asked: Lines<'_>,
    status: u16,
    said: Lines<'_>,
    forbidden: Option<NotStorable>,
) {
    let found = match decide(policy, "GET", asked, status, said) {
        Storability::Storable(_) => None,
        Storability::NotStorable(reason) => Some(reason),
    };
    assert_eq!(found, forbidden, "{asked:?} {status} {said:?}");
}

const FRESH: (&str, &str) = ("cache-control", "max-age=60");
const DAY_BEFORE: &str = "Sat, 05 Nov 1994 08:49:37 GMT";

#[test]
fn only_get_and_query_and_only_final_answers() {
    check(&[], 200, &[FRESH], None);
    let plain = CachePolicy::default();
    assert!(matches!(decide(&plain, "QUERY", &[], 200, &[FRESH]), Storability::Storable(_)));
    for method in ["HEAD", "POST", "PUT", "get", "M-SEARCH", "OPTIONS", "TRACE", "CONNECT"] {
        let found = decide(&plain, method, &[], 200, &[FRESH]);
        assert_eq!(found, Storability::NotStorable(NotStorable::Method), "{method}");
    }
    check(&[], 103, &[FRESH], Some(NotStorable::Interim));
    check(&[], 206, &[FRESH], Some(NotStorable::PartialContent));
    check(&[], 304, &[FRESH], Some(NotStorable::NotModified));
    check(&[], 412, &[FRESH], Some(NotStorable::PreconditionFailed));
    check(&[], 416, &[FRESH], Some(NotStorable::RangeNotSatisfiable));
    for status in [204, 299, 301, 302, 307, 400, 404, 410, 499, 500, 502, 503, 504, 599, 999] {
        check(&[], status, &[FRESH], None);
    }
}

#[test]
fn an_answer_to_post_is_stored_where_it_is_explicitly_what_a_get_would_bring() {
    let post = |status, said: Lines<'_>, policy: &CachePolicy| match decide(policy, "POST", &[], status, said)
    {
        Storability::Storable(_) => None,
        Storability::NotStorable(reason) => Some(reason),
    };
    let plain = CachePolicy::default();
    let own = ("content-location", "/a/b?q");
    assert_eq!(post(200, &[FRESH, own], &plain), None);
    assert_eq!(post(200, &[FRESH, ("content-location", "http://example.org/a/b?q")], &plain), None);
    assert_eq!(post(200, &[("cdn-cache-control", "max-age=9"), own], &plain), None);
    let modified = ("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT");
    for said in [
        &[FRESH][..],
        &[FRESH, ("content-location", "/a/c")],
        &[FRESH, ("content-location", "http://example.net/a/b?q")],
        &[own, modified],
        &[own, modified, ("cache-control", "max-age=0")],
        &[own, modified, FRESH, ("cache-control", "no-cache")],
    ] {
        assert_eq!(post(200, said, &plain), Some(NotStorable::Method), "{said:?}");
    }
    for status in [201, 204, 206, 303, 404] {
        assert_eq!(post(status, &[FRESH, own], &plain), Some(NotStorable::Method), "{status}");
    }
    let lifetimes = || Lifetimes { any: Some(Duration::from_secs(7)), by_status: Vec::new() };
    let configured = CachePolicy { ttl: lifetimes(), ..CachePolicy::default() };
    assert_eq!(post(200, &[own], &configured), Some(NotStorable::Method));
    assert_eq!(post(200, &[FRESH, own, ("vary", "*")], &plain), Some(NotStorable::VaryAny));
}

#[test]
fn a_part_is_judged_like_its_whole() {
    let (asked, lies) = (&[("range", "bytes=4-")], ("content-range", "bytes 4-9/10"));
    check(asked, 206, &[FRESH, lies], None);
    check(asked, 206, &[("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT"), lies], None);
    check(asked, 206, &[("cache-control", "no-store"), lies], Some(NotStorable::NoStore));
    check(asked, 206, &[FRESH, ("cache-control", "no-store, must-understand"), lies], None);
    check(asked, 206, &[lies], Some(NotStorable::NoLifetime));
    let lifetimes = Lifetimes { any: Some(Duration::from_secs(7)), by_status: Vec::new() };
    check_under(&CachePolicy { ttl: lifetimes, ..CachePolicy::default() }, asked, 206, &[lies], None);
    check(&[], 206, &[FRESH, lies], Some(NotStorable::PartialContent));
    check(asked, 206, &[FRESH], Some(NotStorable::PartialContent));
    check(asked, 206, &[FRESH, ("content-range", "bytes 4-3/10")], Some(NotStorable::PartialContent));
    let several = ("content-type", "multipart/byteranges; boundary=x");
    check(asked, 206, &[FRESH, lies, several], Some(NotStorable::PartialContent));
    let query = decide(&CachePolicy::default(), "QUERY", asked, 206, &[FRESH, lies]);
    assert_eq!(query, Storability::NotStorable(NotStorable::PartialContent));
}

#[test]
fn a_field_for_this_cache_decides_alone() {
    let cdn = |value| ("cdn-cache-control", value);
    let expires = ("expires", "Sun, 06 Nov 1994 09:49:37 GMT");
    check(&[], 200, &[FRESH, expires, cdn("private")], Some(NotStorable::Private));
    check(&[], 200, &[FRESH, expires, cdn("no-store")], Some(NotStorable::NoStore));
    check(&[], 200, &[FRESH, expires, cdn("no-cache")], Some(NotStorable::NoCache));
    check(&[], 200, &[FRESH, expires, cdn("public")], Some(NotStorable::NoLifetime));
    check(&[], 200, &[("cache-control", "no-store"), cdn("max-age=60")], None);
    check(&[], 200, &[("cache-control", "private"), cdn("max-age=60")], None);
    check(&[], 200, &[("cache-control", "no-store"), cdn("max-age=60, &&")], Some(NotStorable::NoStore));
    check(&[], 200, &[("cache-control", "private"), ("surrogate-control", "max-age=60")], None);
    check(&[], 200, &[FRESH, ("surrogate-control", "no-store")], Some(NotStorable::NoStore));
}

#[test]
fn a_private_lifetime_lifts_nothing() {
    for name in ["x-accel-expires", "x-reverse-proxy-ttl"] {
        check(&[], 200, &[(name, "60")], None);
        check(&[], 200, &[FRESH, (name, "0")], Some(NotStorable::NoLifetime));
        check(&[], 200, &[FRESH, (name, "0"), ("etag", "\"a\"")], None);
        check(&[], 200, &[("cache-control", "private"), (name, "60")], Some(NotStorable::Private));
        check(&[], 200, &[("cache-control", "no-store"), (name, "60")], Some(NotStorable::NoStore));
        check(&[], 200, &[("cache-control", "no-cache"), (name, "60")], Some(NotStorable::NoCache));
    }
}

#[test]
fn directives_forbid() {
    let cc =
        |value| [("cache-control", value), ("expires", "Sun, 06 Nov 1994 09:49:37 GMT"), ("etag", "\"a\"")];
    check(&[], 200, &cc("private"), Some(NotStorable::Private));
    check(&[], 200, &cc("max-age=60, private=\"set-cookie\""), None);
    check(&[], 200, &cc("No-StorE, max-age=60"), Some(NotStorable::NoStore));
    check(&[], 200, &cc("no-store, must-understand, max-age=60"), None);
    check(&[], 599, &cc("no-store, must-understand, max-age=60"), Some(NotStorable::MustUnderstand));
    check(&[], 200, &cc("no-cache"), None);
    check(&[], 200, &[("cache-control", "no-cache, max-age=60")], Some(NotStorable::NoCache));
    check(&[("cache-control", "no-store")], 200, &[FRESH], Some(NotStorable::RequestNoStore));
    check(&[("cache-control", "no-store")], 200, &cc("private"), Some(NotStorable::Private));
}

#[test]
fn what_cannot_be_validated_needs_a_lifetime() {
    let (tagged, modified) = (("etag", "\"a\""), ("last-modified", DATE));
    for status in [200, 203] {
        check(&[], status, &[tagged], None);
        check(&[], status, &[modified], None);
        check(&[], status, &[tagged, ("cache-control", "max-age=0")], None);
        check(&[], status, &[tagged, ("cache-control", "no-cache")], None);
    }
    for status in [201, 204, 301, 302, 403, 404, 410, 500, 503] {
        check(&[], status, &[FRESH, tagged], None);
        for said in [
            &[tagged][..],
            &[modified],
            &[tagged, ("cache-control", "public")],
            &[tagged, ("cache-control", "max-age=0")],
            &[tagged, ("expires", "0")],
            &[modified, ("x-accel-expires", "0")],
        ] {
            check(&[], status, said, Some(NotStorable::NoLifetime));
        }
        check(&[], status, &[FRESH, tagged, ("cache-control", "no-cache")], Some(NotStorable::NoCache));
    }
    check(&[], 404, &[("last-modified", DAY_BEFORE), ("date", DATE)], None);
    check(&[], 503, &[("last-modified", DAY_BEFORE), ("date", DATE)], Some(NotStorable::NoLifetime));
}

#[test]
fn vary_star_forbids() {
    check(&[], 200, &[FRESH, ("vary", "foo")], None);
    check(&[], 200, &[FRESH, ("vary", ""), ("vary", "*")], Some(NotStorable::VaryAny));
    check(&[], 200, &[FRESH, ("vary", "foo, *")], Some(NotStorable::VaryAny));
}

#[test]
fn authorization_needs_a_word_that_the_response_is_shared() {
    let with = &[("authorization", "Basic eDp5")];
    check(with, 200, &[FRESH], Some(NotStorable::Authorization));
    for word in ["public", "must-revalidate", "s-maxage=60"] {
        check(with, 200, &[FRESH, ("cache-control", word)], None);
    }
    for word in ["max-age=60, public", "max-age=60, must-revalidate", "s-maxage=60"] {
        check(with, 200, &[("cdn-cache-control", word)], None);
    }
    let replaced = &[("cache-control", "public"), ("cdn-cache-control", "max-age=60")];
    check(with, 200, replaced, Some(NotStorable::Authorization));
    check(with, 200, &[("surrogate-control", "max-age=60")], Some(NotStorable::Authorization));
    check(with, 200, &[FRESH, ("cache-control", "proxy-revalidate")], Some(NotStorable::Authorization));
    check(with, 200, &[FRESH, ("cache-control", "public=1")], Some(NotStorable::Authorization));
    for word in ["must-revalidate=x", "must-revalidate; public", "s-maxage=x", "s-maxage=60; public"] {
        check(with, 200, &[FRESH, ("cache-control", word)], Some(NotStorable::Authorization));
    }
    for word in ["max-age=60, must-revalidate=1", "max-age=60, s-maxage=x", "s-maxage=\"60\""] {
        check(with, 200, &[("cdn-cache-control", word)], Some(NotStorable::Authorization));
    }
}

#[test]
fn a_malformed_member_hides_no_restriction() {
    let with: Lines<'_> = &[("authorization", "Basic eDp5")];
    let typo = ("cache-control", "max-age=60, must-revalidate; private");
    check(with, 200, &[typo], Some(NotStorable::Private));
    check(&[], 200, &[typo], Some(NotStorable::Private));
    check(&[], 200, &[("cache-control", "max-age=60; no-store")], Some(NotStorable::NoStore));
    check(&[], 200, &[FRESH, ("cache-control", "x=\"open, no-cache")], Some(NotStorable::NoCache));
    check(&[], 200, &[("cdn-cache-control", "max-age=60, public;private")], Some(NotStorable::Private));
    let any = Some(Duration::from_secs(7));
    let ttl = CachePolicy { ttl: Lifetimes { any, by_status: Vec::new() }, ..CachePolicy::default() };
    for value in ["must-revalidate; private", "x=\"open, private", "; private"] {
        check_under(&ttl, &[], 200, &[("cache-control", value)], Some(NotStorable::Private));
    }
}

#[test]
fn a_session_fills_nothing_that_lives_by_a_guess() {
    let session: Lines<'_> = &[("cookie", "a=b; PHPSESSID=1")];
    let (modified, date) = (("last-modified", DAY_BEFORE), ("date", DATE));
    for said in [&[modified, date][..], &[modified, date, ("cache-control", "public")]] {
        check(&[], 200, said, None);
        check(&[("cookie", "_ga=1")], 200, said, None);
        check(&[("cookie", "_ga=1; theme=dark")], 200, said, Some(NotStorable::SessionCookie));
        check(session, 200, said, Some(NotStorable::SessionCookie));
        let both = &[("cookie", "PHPSESSID=1"), ("authorization", "x")];
        check(both, 200, said, Some(NotStorable::Authorization));
        let names = vec!["a".to_owned(), "PHPSESSID".to_owned()];
        let keyed = CachePolicy { keyed_cookies: names, ..CachePolicy::default() };
        check_under(&keyed, session, 200, said, None);
        check_under(&CachePolicy { ignore_cookies: true, ..keyed }, session, 200, said, None);
    }
    check(session, 200, &[FRESH, modified], None);
    check(session, 200, &[("last-modified", DATE), date], None);
    assert!(
        !is_personal(&request("GET", session), &CachePolicy::default()),
        "the origin may give a lifetime"
    );
}

#[test]
fn what_is_put_together_is_judged_by_the_fields_of_both() {
    let plain = CachePolicy::default();
    let tagged = ("etag", "\"a\"");
    let newer: Lines<'_> =
        &[tagged, ("content-range", "bytes 5-9/10"), ("age", "5"), ("last-modified", DATE)];
    let asked = [("range", "bytes=0-")];
    let Storability::Storable(before) = decide(&plain, "GET", &asked, 206, newer) else {
        panic!("not stored")
    };
    assert_eq!(before.initial_age, Duration::from_secs(5));
    let anew =
        |status, said: Lines<'_>| rejudge(&request("GET", &asked), status, &fields(said), &before, &plain);
    let lies = ("content-range", "bytes 0-9/10");
    assert_eq!(anew(StatusCode::OK, &[tagged]), Some(before));
    assert_eq!(anew(StatusCode::PARTIAL_CONTENT, &[tagged, lies]), Some(before));
    let lifetime = Duration::from_secs(60);
    let explicit = Freshness { lifetime, source: LifetimeSource::MaxAge, ..before };
    assert_eq!(anew(StatusCode::OK, &[tagged, FRESH]), Some(explicit));
    assert_eq!(anew(StatusCode::PARTIAL_CONTENT, &[tagged, FRESH, lies]), Some(explicit));
    let no_cache = [tagged, ("cache-control", "no-cache")];
    assert_eq!(anew(StatusCode::OK, &no_cache), Some(Freshness { no_cache: true, ..before }));
    assert_eq!(anew(StatusCode::OK, &[tagged, ("cache-control", "private")]), None);
}

#[test]
fn set_cookie_needs_explicit_freshness_and_a_session_needs_more() {
    let (plain, session) = (("set-cookie", "lang=de"), ("set-cookie", "PHPSESSID=1"));
    let hidden = ("set-cookie", "a=b; HttpOnly");
    let shared = ("cache-control", "public");
    let modified = ("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT");
    check(&[], 200, &[FRESH, plain], None);
    check(&[], 200, &[("expires", "Sun, 06 Nov 1994 09:49:37 GMT"), ("date", DATE), plain], None);
    check(&[], 200, &[modified, plain], Some(NotStorable::SetCookie));
    check(&[], 200, &[("etag", "\"a\""), plain], Some(NotStorable::SetCookie));
    check(&[], 200, &[("cache-control", "max-age=0"), modified, plain], Some(NotStorable::SetCookie));
    check(
        &[],
        200,
        &[("cache-control", "max-age=9, no-cache"), modified, plain],
        Some(NotStorable::SetCookie),
    );
    check(&[], 200, &[FRESH, session], Some(NotStorable::SetSessionCookie));
    check(&[], 200, &[FRESH, plain, hidden], Some(NotStorable::SetSessionCookie));
    check(&[], 200, &[FRESH, plain, ("set-cookie", "a=b7")], Some(NotStorable::SetPersonalCookie));
    check(&[], 200, &[FRESH, shared, ("set-cookie", "a=b7")], None);
    check(&[], 200, &[FRESH, shared, session, hidden], None);
    check(&[], 200, &[("cache-control", "s-maxage=60"), session], None);
    check(&[], 200, &[("cache-control", "max-age=60, no-cache=\"Set-Cookie\""), session], None);
    for left_out in ["no-cache=\"Set-Cookie\"", "private=\"set-cookie\""] {
        let left_out = ("cache-control", left_out);
        check(&[], 200, &[left_out, modified, session], Some(NotStorable::SetCookie));
        check(&[], 200, &[left_out, modified, plain], Some(NotStorable::SetCookie));
        let any = Some(Duration::from_secs(7));
        let ttl = CachePolicy { ttl: Lifetimes { any, by_status: Vec::new() }, ..CachePolicy::default() };
        check_under(&ttl, &[], 200, &[left_out, session], Some(NotStorable::SetCookie));
        let bypass = CachePolicy { set_cookie: SetCookiePolicy::Bypass, ..CachePolicy::default() };
        check_under(&bypass, &[], 200, &[FRESH, left_out, session], Some(NotStorable::SetCookieBypass));
        let store = CachePolicy { set_cookie: SetCookiePolicy::Store, ..ttl };
        check_under(&store, &[], 200, &[left_out, session], None);
    }
    check(&[("cookie", "PHPSESSID=1")], 200, &[FRESH], None);
}

#[test]
fn a_field_for_shared_caches_says_that_a_session_is_shared() {
    let session = ("set-cookie", "PHPSESSID=1; HttpOnly");
    check(&[], 200, &[("cdn-cache-control", "max-age=60"), session], None);
    check(&[], 200, &[("surrogate-control", "max-age=60"), session], None);
    check(&[], 200, &[("x-accel-expires", "60"), session], Some(NotStorable::SetSessionCookie));
    check(&[], 200, &[("x-accel-expires", "60"), ("set-cookie", "lang=de")], None);
    let accel = ("x-accel-expires", "60");
    check(&[], 200, &[accel, ("cache-control", "s-maxage=9"), session], None);
    let broken = [accel, ("cache-control", "s-maxage=x"), session];
    check(&[], 200, &broken, Some(NotStorable::SetSessionCookie));
    check(&[], 200, &[("cdn-cache-control", "max-age=0"), session], Some(NotStorable::NoLifetime));
    check(&[], 200, &[("cdn-cache-control", "max-age=0"), session, ("etag", "\"a\"")], None);
    let plain = ("set-cookie", "lang=de");
    check(&[], 200, &[("cdn-cache-control", "max-age=0"), session, plain], Some(NotStorable::SetCookie));
    check(&[], 200, &[FRESH, ("cdn-cache-control", "&"), session], Some(NotStorable::SetSessionCookie));
}

#[test]
fn the_rule_says_what_becomes_of_responses_with_cookies() {
    let session = ("set-cookie", "PHPSESSID=1");
    let modified = ("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT");
    let lifetimes = || Lifetimes { any: Some(Duration::from_secs(7)), by_status: Vec::new() };
    for (set_cookie, expected) in [
        (SetCookiePolicy::Store, None),
        (SetCookiePolicy::Strip, None),
        (SetCookiePolicy::Bypass, Some(NotStorable::SetCookieBypass)),
    ] {
        let policy = CachePolicy { set_cookie, ..CachePolicy::default() };
        check_under(&policy, &[], 200, &[FRESH, session], expected);
        check_under(&policy, &[], 200, &[modified, session], expected);
        check_under(&policy, &[], 200, &[FRESH, ("cache-control", "public"), session], expected);
        check_under(&policy, &[], 200, &[FRESH], None);
        check_under(&policy, &[], 200, &[("cache-control", "private"), session], Some(NotStorable::Private));
        check_under(&CachePolicy { ttl: lifetimes(), ..policy }, &[], 200, &[session], expected);
    }
}

#[test]
fn what_is_ignored_is_lifted_and_nothing_else() {
    let none = Ignored::default();
    let auth: Lines<'_> = &[("authorization", "Basic eDp5")];
    let cases: [(Ignored, Lines<'_>, Lines<'_>, NotStorable); 5] = [
        (
            Ignored { private: true, ..none },
            &[],
            &[("cache-control", "private, max-age=60")],
            NotStorable::Private,
        ),
        (
            Ignored { no_store: true, ..none },
            &[],
            &[("cache-control", "no-store, max-age=60")],
            NotStorable::NoStore,
        ),
        (Ignored { vary: true, ..none }, &[], &[FRESH, ("vary", "foo, *")], NotStorable::VaryAny),
        (Ignored { authorization: true, ..none }, auth, &[FRESH], NotStorable::Authorization),
        (
            Ignored { set_cookie: true, ..none },
            &[],
            &[FRESH, ("set-cookie", "sid=1")],
            NotStorable::SetSessionCookie,
        ),
    ];
    for (ignore, ..) in cases {
        for (lifted, asked, said, reason) in cases {
            let policy = CachePolicy { ignore, ..CachePolicy::default() };
            check_under(&policy, asked, 200, said, (ignore != lifted).then_some(reason));
        }
    }
    let vary = CachePolicy { ignore: Ignored { vary: true, ..none }, ..CachePolicy::default() };
    check_under(&vary, &[], 200, &[FRESH, ("vary", "a b")], Some(NotStorable::VaryAny));
    let cookies = Ignored { set_cookie: true, ..none };
    let bypass =
        CachePolicy { ignore: cookies, set_cookie: SetCookiePolicy::Bypass, ..CachePolicy::default() };
    check_under(&bypass, &[], 200, &[FRESH, ("set-cookie", "a=b")], Some(NotStorable::SetCookieBypass));
}

#[test]
fn a_request_is_personal_where_its_words_are_heard() {
    let auth: Lines<'_> = &[("authorization", "x")];
    let no_store: Lines<'_> = &[("cache-control", "no-store")];
    let personal = |asked, policy: &CachePolicy| is_personal(&request("GET", asked), policy);
    let plain = CachePolicy::default();
    assert!(personal(auth, &plain) && personal(no_store, &plain) && !personal(&[], &plain));
    let ignore = Ignored { authorization: true, ..Ignored::default() };
    assert!(!personal(auth, &CachePolicy { ignore, ..CachePolicy::default() }));
    let deaf = CachePolicy { request_directives: Wishes::Ignore, ..CachePolicy::default() };
    assert!(!personal(no_store, &deaf));
    check_under(&deaf, no_store, 200, &[FRESH], None);
}

#[test]
fn configured_lifetimes_lift_nothing_and_are_not_for_persons() {
    let lifetimes = || Lifetimes { any: Some(Duration::from_secs(7)), by_status: Vec::new() };
    let session = &[("cookie", "a=b; my_session=1")];
    let authorized = &[("authorization", "Basic eDp5")];
    for policy in [
        CachePolicy { ttl: lifetimes(), ..CachePolicy::default() },
        CachePolicy { override_ttl: lifetimes(), ..CachePolicy::default() },
    ] {
        check_under(&policy, &[], 200, &[], None);
        check_under(&policy, &[("cookie", "_ga=1; CookieConsent=x")], 200, &[], None);
        check_under(&policy, &[("cookie", "theme=dark")], 200, &[], Some(NotStorable::SessionCookie));
        check_under(&policy, &[("x-api-key", "1")], 200, &[], Some(NotStorable::Authorization));
        let by_key =
            CachePolicy { keyed_fields: vec![HeaderName::from_static("x-api-key")], ..policy.clone() };
        check_under(&by_key, &[("x-api-key", "1")], 200, &[], None);
        check_under(&policy, session, 200, &[], Some(NotStorable::SessionCookie));
        check_under(&policy, authorized, 200, &[], Some(NotStorable::Authorization));
        check_under(
            &policy,
            authorized,
            200,
            &[("cache-control", "public")],
            Some(NotStorable::Authorization),
        );
        check_under(&policy, &[], 200, &[("set-cookie", "a=b")], Some(NotStorable::SetCookie));
        check_under(&policy, &[], 200, &[("set-cookie", "sid=1")], Some(NotStorable::SetCookie));
        let public = ("cache-control", "public");
        check_under(&policy, &[], 200, &[public, ("set-cookie", "a=b")], Some(NotStorable::SetCookie));
        check_under(&policy, &[], 200, &[public, ("set-cookie", "sid=1")], None);
        check_under(&policy, &[], 200, &[("cache-control", "private")], Some(NotStorable::Private));
        check_under(&policy, &[], 200, &[("cache-control", "no-store")], Some(NotStorable::NoStore));
        check_under(&policy, &[], 200, &[("vary", "*")], Some(NotStorable::VaryAny));
        let keyed =
            CachePolicy { keyed_cookies: vec!["a".to_owned(), "my_session".to_owned()], ..policy.clone() };
        check_under(&keyed, session, 200, &[], None);
        let ignoring = CachePolicy { ignore_cookies: true, ..policy };
        check_under(&ignoring, session, 200, &[], None);
        check_under(&ignoring, authorized, 200, &[], Some(NotStorable::Authorization));
    }
}

#[test]
fn without_lifetime_a_validator_is_needed() {
    check(&[], 200, &[], Some(NotStorable::NoLifetime));
    check(&[], 200, &[("date", DATE)], Some(NotStorable::NoLifetime));
    check(&[], 200, &[("cache-control", "max-age=0")], Some(NotStorable::NoLifetime));
    check(&[], 200, &[("cache-control", "max-age=0"), ("etag", "\"a\"")], None);
    check(&[], 200, &[("last-modified", DATE)], None);
    check(&[], 200, &[("last-modified", "yesterday")], Some(NotStorable::NoLifetime));
    let found = decide(&CachePolicy::default(), "GET", &[], 200, &[("etag", "W/\"a\"")]);
    assert!(matches!(found, Storability::Storable(Freshness { source: LifetimeSource::Nothing, .. })));
}

#[test]
fn places_in_all_are_those_of_the_enum() {
    for (place, reason) in NotStorable::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, place, "{reason:?}");
    }
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What no field lifts: whatever else an origin says, a response that its own field calls private is not kept.
        #[test]
        fn nothing_beside_it_lifts_private(
            before in "[a-z0-9=, -]{0,20}", accel in "[0-9@]{0,5}", cookie in "[a-z]{1,5}=1",
        ) {
            let cc = format!("{before}, private");
            let lines = [
                ("cache-control", cc.as_str()), ("x-accel-expires", &accel), ("x-reverse-proxy-ttl", "9"),
                ("cdn-cache-control", "&"), ("set-cookie", &cookie), ("etag", "\"a\""),
            ];
            for set_cookie in [SetCookiePolicy::Guard, SetCookiePolicy::Store, SetCookiePolicy::Strip, SetCookiePolicy::Bypass] {
                let lifetimes = Lifetimes { any: Some(Duration::from_secs(7)), by_status: Vec::new() };
                let policy = CachePolicy { set_cookie, override_ttl: lifetimes, ..CachePolicy::default() };
                let found = decide(&policy, "GET", &[], 200, &lines);
                prop_assert!(matches!(found, Storability::NotStorable(_)), "{:?}", found);
            }
        }
    }
}
