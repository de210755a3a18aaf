//! That what is told is what was done.

use proptest::prelude::*;

use super::*;
use crate::example::{DATE, at_once, fields};
use crate::freshness::freshness;
use crate::policy::Lifetimes;

fn check(policy: &CachePolicy, lines: &[(&str, &str)], expected: &[(&str, u64, &str)]) {
    let found = lifetimes(StatusCode::OK, &fields(lines), at_once(), policy);
    let found: Vec<_> =
        found.iter().map(|one| (one.source.token(), one.lifetime.as_secs(), one.field.as_str())).collect();
    assert_eq!(found, expected, "{lines:?}");
}

#[test]
fn the_lifetime_that_decides_comes_first_and_those_that_lost_follow() {
    let plain = CachePolicy::default();
    let cc = ("cache-control", "max-age=60, s-maxage=30");
    let line = "cache-control: max-age=60, s-maxage=30";
    let expires = ("expires", "Sun, 06 Nov 1994 09:49:37 GMT");
    let expires_line = "expires: Sun, 06 Nov 1994 09:49:37 GMT";
    check(&plain, &[], &[("nothing", 0, "")]);
    check(
        &plain,
        &[cc, expires, ("date", DATE)],
        &[("s-maxage", 30, line), ("max-age", 60, line), ("expires", 3600, expires_line)],
    );
    check(
        &plain,
        &[cc, ("x-accel-expires", "9"), ("cdn-cache-control", "max-age=5")],
        &[
            ("targeted", 5, "cdn-cache-control: max-age=5"),
            ("x-accel-expires", 9, "x-accel-expires: 9"),
            ("s-maxage", 30, line),
            ("max-age", 60, line),
        ],
    );
    check(
        &plain,
        &[("cache-control", "max-age=60"), ("cdn-cache-control", "public")],
        &[("nothing", 0, ""), ("max-age", 60, "cache-control: max-age=60")],
    );
    let policy = CachePolicy {
        override_ttl: Lifetimes { any: Some(Duration::from_secs(7)), by_status: Vec::new() },
        ttl: Lifetimes { any: Some(Duration::from_millis(1500)), by_status: Vec::new() },
        ..plain
    };
    check(
        &policy,
        &[("cache-control", "max-age=60")],
        &[
            ("override-ttl", 7, "override_ttl = 7s"),
            ("max-age", 60, "cache-control: max-age=60"),
            ("ttl", 1, "ttl = 1.5s"),
        ],
    );
}

#[test]
fn what_jitter_took_off_is_told_and_nothing_else() {
    let lifetimes_of = |seconds| Lifetimes { any: Some(Duration::from_secs(seconds)), by_status: Vec::new() };
    let policy = CachePolicy { ttl: lifetimes_of(100), jitter_percent: 10, ..CachePolicy::default() };
    let lifetime_of = |source, seconds| Freshness {
        lifetime: Duration::from_secs(seconds),
        source,
        ..freshness(
            StatusCode::OK,
            &fields(&[]),
            &EffectiveDirectives::read(&fields(&[]), &policy),
            at_once(),
            &policy,
        )
    };
    let told = |of: &Freshness, policy: &CachePolicy, lines: &[(&str, &str)]| {
        let told = lifetimes(StatusCode::OK, &fields(lines), at_once(), policy);
        shortened_from(of, &told, policy).map(|from| from.as_secs())
    };
    let ttl = |seconds| lifetime_of(LifetimeSource::Ttl, seconds);
    assert_eq!(told(&ttl(95), &policy, &[]), Some(100));
    assert_eq!(told(&ttl(90), &policy, &[]), Some(100));
    assert_eq!(told(&ttl(100), &policy, &[]), None);
    // Stored while the rule had another lifetime, or none.
    assert_eq!(told(&ttl(80), &policy, &[]), None);
    assert_eq!(told(&ttl(120), &policy, &[]), None);
    assert_eq!(told(&lifetime_of(LifetimeSource::OverrideTtl, 95), &policy, &[]), None);
    let cc = [("cache-control", "max-age=100")];
    assert_eq!(told(&lifetime_of(LifetimeSource::MaxAge, 95), &policy, &cc), None);
    let even = CachePolicy { jitter_percent: 0, ..policy.clone() };
    assert_eq!(told(&ttl(95), &even, &[]), None);
}

#[test]
fn texts_are_sentences_and_sections_are_named() {
    for reason in NotStorable::ALL {
        assert!(reason.sentence().ends_with('.') && !reason.section().is_empty(), "{reason:?}");
    }
}

proptest! {
    #[test]
    fn what_is_told_is_what_was_done(
        cc in "(max-age=[0-9x]{1,3}|s-maxage=9|public|no-cache|, ){0,5}",
        cdn in "(max-age=[0-9]{1,3}|public|&|, ){0,3}",
        surrogate in "(max-age=[0-9]{1,3}|no-store|, ){0,2}",
        accel in "[0-9@x]{0,4}", status in 100..999_u16, ttl in any::<bool>(), bytes in "\\PC{0,300}",
    ) {
        let mut said = fields(&[
            ("cache-control", &cc), ("cdn-cache-control", &cdn), ("surrogate-control", &surrogate),
            ("x-accel-expires", &accel), ("date", DATE), ("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT"),
        ]);
        if let Ok(value) = HeaderValue::from_bytes(bytes.as_bytes()) {
            said.append(header::EXPIRES, value);
        }
        let any = ttl.then_some(Duration::from_secs(7));
        let policy = CachePolicy { ttl: Lifetimes { any, by_status: Vec::new() }, ..CachePolicy::default() };
        let status = StatusCode::from_u16(status).unwrap_or_default();
        let told = lifetimes(status, &said, at_once(), &policy);
        let done = freshness(status, &said, &EffectiveDirectives::read(&said, &policy), at_once(), &policy);
        prop_assert_eq!((told[0].source, told[0].lifetime), (done.source, done.lifetime));
        prop_assert!(told.iter().all(|one| one.field.len() <= FIELD_MAX));
    }
}
