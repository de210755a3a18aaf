//! The rules of storing, one table each.

use super::*;
use crate::example::{DATE, at_once, fields, request};
use crate::freshness::LifetimeSource;
use crate::policy::Lifetimes;

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

#[test]
fn only_get_and_only_final_complete_answers() {
    check(&[], 200, &[FRESH], None);
    for method in ["HEAD", "POST", "PUT", "get", "M-SEARCH"] {
        let found = decide(&CachePolicy::default(), method, &[], 200, &[FRESH]);
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
    check(with, 200, &[FRESH, ("cache-control", "proxy-revalidate")], Some(NotStorable::Authorization));
    check(with, 200, &[FRESH, ("cache-control", "public=1")], Some(NotStorable::Authorization));
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
    check(&[], 200, &[FRESH, shared, session, hidden], None);
    check(&[], 200, &[("cache-control", "s-maxage=60"), session], None);
    check(&[], 200, &[("cache-control", "max-age=60, no-cache=\"Set-Cookie\""), session], None);
    check(&[("cookie", "PHPSESSID=1")], 200, &[FRESH], None);
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
        check_under(&policy, &[("cookie", "theme=dark")], 200, &[], None);
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
        check_under(&policy, &[], 200, &[("cache-control", "private")], Some(NotStorable::Private));
        check_under(&policy, &[], 200, &[("cache-control", "no-store")], Some(NotStorable::NoStore));
        check_under(&policy, &[], 200, &[("vary", "*")], Some(NotStorable::VaryAny));
        let keyed = CachePolicy { keyed_cookies: vec!["my_session".to_owned()], ..policy.clone() };
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
