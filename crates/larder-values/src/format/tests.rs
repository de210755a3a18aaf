//! Values as responses, without a server.

use larder_cache::LifetimeSource;
use larder_http::time::Clock;

use super::*;
use crate::tests::{request, settings};

fn found(value: &'static [u8], ttl: Ttl) -> Found {
    Found { body: Bytes::from_static(value), flags: 0, ttl }
}

#[test]
fn a_copy_is_bounded_by_near_and_by_what_the_value_has_left() {
    let (now, policy) = (Clock::default().now(), CachePolicy::default());
    let left = |seconds| Ttl::Left(Duration::from_secs(seconds));
    for (ttl, near, lifetime) in [
        (Ttl::Unknown, 1_000, 1_000),
        (Ttl::Unlimited, 1_000, 1_000),
        (left(100), 1_000, 1_000),
        (left(100), 200_000, 100_000),
    ] {
        let settings = ValuesSettings { near: Duration::from_millis(near), ..settings(Format::Body) };
        let (head, body) = response(&settings, found(b"body", ttl), &request("/", &[]), &policy, now)
            .unwrap_or_else(|unfit| panic!("{unfit:?}"));
        assert_eq!(head.freshness.lifetime, Duration::from_millis(lifetime), "{ttl:?}");
        assert_eq!((head.freshness.source, &body[..]), (LifetimeSource::Remote, &b"body"[..]));
    }
    let (head, _) = response(&settings(Format::Body), found(b"", left(0)), &request("/", &[]), &policy, now)
        .unwrap_or_else(|unfit| panic!("{unfit:?}"));
    assert_eq!(head.freshness.lifetime, INSTANT);
}

#[test]
fn the_tokens_of_reasons_are_words_of_their_own() {
    let all = [
        NotWritten::ByApplication,
        NotWritten::Host,
        NotWritten::KeyParts,
        NotWritten::Status,
        NotWritten::Varies,
        NotWritten::Cookies,
        NotWritten::Coding,
        NotWritten::Tags,
        NotWritten::Type,
        NotWritten::Template,
        NotWritten::Assumed,
        NotWritten::Lifetime,
        NotWritten::Length,
    ];
    let tokens: std::collections::HashSet<_> = all.map(NotWritten::token).into_iter().collect();
    assert_eq!(tokens.len(), all.len());
    assert!(all.iter().all(|why| why.sentence().ends_with('.')));
}
