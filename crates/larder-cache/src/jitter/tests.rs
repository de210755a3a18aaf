//! Jitter only shortens, always by the same, and spreads.

#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use http::StatusCode;
use larder_http::target::Target;
use proptest::prelude::*;

use super::*;
use crate::age::ExchangeTimes;
use crate::example::{DATE, at_ms, fields, request, stored};
use crate::freshness::LifetimeSource;
use crate::policy::Lifetimes;
use crate::storable::{Storability, rejudge, storable};
use crate::update::{HeadUpdate, Updated, update, update_by_head};

const TTL: Duration = Duration::from_secs(100);

fn under(percent: u8) -> CachePolicy {
    let ttl = Lifetimes { any: Some(TTL), by_status: Vec::new() };
    CachePolicy { ttl, jitter_percent: percent, ..CachePolicy::default() }
}

fn asked(target: &str) -> RequestHead {
    let target = Target::parse(Bytes::copy_from_slice(target.as_bytes())).unwrap();
    RequestHead { target, ..request("GET", &[]) }
}

fn at(ms: u64) -> ExchangeTimes {
    ExchangeTimes { request: at_ms(ms), response: at_ms(ms) }
}

fn judged(target: &str, said: &[(&str, &str)], ms: u64, policy: &CachePolicy) -> Freshness {
    match storable(&asked(target), StatusCode::OK, &fields(said), at(ms), policy) {
        Storability::Storable(freshness) => freshness,
        Storability::NotStorable(reason) => panic!("{reason:?}: {said:?}"),
    }
}

/// The lifetime of `said` at `target` is `seconds` with any jitter.
fn check_untouched(said: &[(&str, &str)], policy: &CachePolicy, seconds: u64, source: LifetimeSource) {
    for n in 0..20 {
        let found = judged(&format!("/{n}"), said, n, policy);
        assert_eq!((found.lifetime, found.source), (Duration::from_secs(seconds), source), "{said:?}");
    }
}

#[test]
fn only_lifetimes_of_the_rule_are_shortened() {
    use LifetimeSource::{Expires, Heuristic, MaxAge, OverrideTtl, SMaxage, Targeted, Ttl, XAccelExpires};
    let all = under(90);
    let plain = CachePolicy { jitter_percent: 90, ..CachePolicy::default() };
    let date = ("date", DATE);
    check_untouched(&[("cache-control", "max-age=100")], &all, 100, MaxAge);
    check_untouched(&[("cache-control", "s-maxage=100")], &all, 100, SMaxage);
    check_untouched(&[("cdn-cache-control", "max-age=100")], &all, 100, Targeted);
    check_untouched(&[("x-accel-expires", "100")], &all, 100, XAccelExpires);
    check_untouched(&[("expires", "Sun, 06 Nov 1994 09:49:37 GMT"), date], &all, 3600, Expires);
    check_untouched(&[("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT"), date], &plain, 8640, Heuristic);
    check_untouched(&[], &under(0), 100, Ttl);
    let ttl = judged("/", &[], 0, &all);
    assert!(ttl.source == Ttl && ttl.lifetime < TTL);
    let replaced = CachePolicy { override_ttl: all.ttl.clone(), ..plain };
    let replaced = judged("/", &[("cache-control", "max-age=5000")], 0, &replaced);
    assert!(replaced.source == OverrideTtl && replaced.lifetime < TTL);
}

#[test]
fn what_is_stored_together_expires_over_the_whole_band() {
    let policy = under(10);
    let left = |n: u64| judged(&format!("/page/{n}"), &[], 0, &policy).lifetime;
    let mut tenths = [0_u32; 10];
    for n in 0..1_000 {
        let left = left(n);
        assert!(left <= TTL && left > TTL - Duration::from_secs(10), "{left:?}");
        let taken = usize::try_from((TTL - left).as_secs()).unwrap();
        tenths[taken.min(9)] += 1;
    }
    // Each has 100 in the mean, with a deviation of 9.5.
    assert!(tenths.iter().all(|count| (50..150).contains(count)), "{tenths:?}");
}

#[test]
fn what_is_taken_is_a_share_of_the_band_and_never_all() {
    let ns = Duration::from_nanos;
    for (lifetime, percent, taken, expected) in [
        (TTL, 10, 0.0, TTL),
        (TTL, 10, 0.5, Duration::from_secs(95)),
        (TTL, 10, 1.0, Duration::from_secs(90)),
        (TTL, 90, 1.0, Duration::from_secs(10)),
        (TTL, 255, 1.0, Duration::from_secs(10)),
        (Duration::from_millis(1), 10, 1.0, Duration::from_micros(900)),
        (ns(2), 90, 1.0, ns(1)),
        (ns(1), 90, 1.0, ns(1)),
        (Duration::ZERO, 90, 1.0, Duration::ZERO),
    ] {
        assert_eq!(shortened(lifetime, percent, taken), expected, "{lifetime:?} {percent} % {taken}");
    }
    assert!(shortened(Duration::MAX, 90, 1.0) > Duration::ZERO);
}

#[test]
fn one_target_expires_differently_each_time() {
    let policy = under(50);
    let mut found: Vec<Duration> = (0..100).map(|ms| judged("/", &[], ms, &policy).lifetime).collect();
    found.sort_unstable();
    found.dedup();
    assert!(found.len() > 90, "{} of 100 differ", found.len());
}

#[test]
fn a_validation_takes_its_own_jitter_off_the_whole_lifetime() {
    let policy = under(50);
    let was = stored(&[], &[("etag", "\"a\"")], &policy);
    let (get, head) = (request("GET", &[]), request("HEAD", &[]));
    let mut found = Vec::new();
    for ms in (0..50_000).step_by(1_000) {
        let confirmed = fields(&[("etag", "\"a\"")]);
        let Updated::Stored(updated) = update(&was, &get, &confirmed, at(ms), &policy) else {
            panic!("not stored")
        };
        let HeadUpdate::Updated(by_head) = update_by_head(&was, &head, &confirmed, at(ms), &policy) else {
            panic!("not updated")
        };
        let lifetime = updated.freshness.lifetime;
        assert_eq!(updated.freshness, by_head.freshness);
        assert!(lifetime <= TTL && lifetime > TTL / 2, "{lifetime:?}");
        found.push(lifetime);
    }
    assert!(found.iter().any(|lifetime| *lifetime > TTL * 3 / 4), "it does not shrink with each validation");
    assert!(found.iter().any(|lifetime| *lifetime < TTL * 3 / 4));
}

#[test]
fn what_is_put_together_expires_no_later_than_its_last_part() {
    let policy = under(90);
    let before = judged("/a", &[("etag", "\"a\"")], 0, &policy);
    for n in 0..50 {
        let said = fields(&[("etag", "\"a\"")]);
        let other = asked(&format!("/other/{n}"));
        let anew = rejudge(&other, StatusCode::OK, &said, &before, &policy).unwrap();
        assert!(anew.lifetime <= before.lifetime, "{anew:?}");
    }
    let same = rejudge(&asked("/a"), StatusCode::OK, &fields(&[("etag", "\"a\"")]), &before, &policy);
    assert_eq!(same, Some(before));
}

proptest! {
    #[test]
    fn jitter_only_shortens_and_leaves_something(
        nanos in any::<u64>(), seconds in any::<bool>(), percent in any::<u8>(), target in "/[a-z0-9]{0,20}",
        ms in 0..1_000_000_u64,
    ) {
        let lifetime = if seconds { Duration::from_secs(nanos) } else { Duration::from_nanos(nanos) };
        let any = Some(lifetime);
        let policy = CachePolicy { override_ttl: Lifetimes { any, by_status: Vec::new() }, ..under(percent) };
        let said = [("etag", "\"a\"")];
        let found = judged(&target, &said, ms, &policy);
        prop_assert_eq!(found, judged(&target, &said, ms, &policy));
        prop_assert!(found.lifetime <= lifetime && found.lifetime >= shortest(lifetime, percent));
        prop_assert_eq!(found.lifetime.is_zero(), lifetime.is_zero());
        let kept = f64::from(100 - percent.min(JITTER_MAX)) / 100.0;
        prop_assert!(found.lifetime.as_secs_f64() >= lifetime.as_secs_f64() * kept * 0.999_999);
        // Nothing but the lifetime differs.
        prop_assert_eq!(Freshness { lifetime, ..found }, judged(&target, &said, ms, &CachePolicy { jitter_percent: 0, ..policy }));
    }
}
