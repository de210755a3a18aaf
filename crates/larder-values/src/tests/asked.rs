//! What is found, and for whom.

use std::time::{Duration, Instant};

use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_TYPE, COOKIE};
use larder_cache::{CachePolicy, LifetimeSource, Lifetimes};
use larder_tier::Ask;

use super::{Fixture, key, request, settings};
use crate::{Format, KeyPart, KeyTemplate};

#[tokio::test]
async fn a_body_is_a_200_of_the_default_type_for_so_long_as_near_says() {
    let fixture = Fixture::new(Format::Body);
    let mut raw = fixture.server.raw();
    raw.set("example.com:8080/a?b", 0, 100, b"<p>hello</p>");
    let (head, body) = fixture.ask_by(&request("/a?b", &[]), &CachePolicy::default()).await.unwrap();
    assert_eq!((head.status.as_u16(), body.as_str()), (200, "<p>hello</p>"));
    assert_eq!(head.fields.map.get(CONTENT_TYPE).unwrap(), "text/html");
    assert!(head.fields.has_date);
    let freshness = head.freshness;
    assert_eq!((freshness.lifetime, freshness.source), (Duration::from_secs(1), LifetimeSource::Remote));
    assert_eq!(fixture.ask(&request("/a", &[])).await, Err("absent"));
    assert_eq!(fixture.values.server_of(&key(&request("/a", &[])), &request("/a", &[])).unwrap(), {
        let socket = fixture.server.socket();
        format!("memcached unix:{}, example.com:8080/a", socket.display())
    });
}

#[tokio::test]
async fn a_copy_lives_no_longer_than_its_value_and_never_not_at_all() {
    let long =
        Fixture::with(crate::ValuesSettings { near: Duration::from_secs(3600), ..settings(Format::Body) });
    long.server.raw().set("example.com:8080/a", 0, 100, b"body");
    let (head, _) = long.ask_by(&request("/a", &[]), &CachePolicy::default()).await.unwrap();
    assert!((98..=100).contains(&head.freshness.lifetime.as_secs()), "{:?}", head.freshness);
    let none = Fixture::with(crate::ValuesSettings { near: Duration::ZERO, ..settings(Format::Body) });
    none.server.raw().set("example.com:8080/a", 0, 0, b"body");
    let (head, _) = none.ask_by(&request("/a", &[]), &CachePolicy::default()).await.unwrap();
    assert!(head.freshness.is_fresh(head.freshness.received), "for those who waited for it");
    assert!(!head.freshness.is_fresh(none.clock.now()));
}

#[tokio::test]
async fn a_rule_with_cookies_in_its_key_asks_only_where_the_template_has_the_same() {
    let template = |parts: &[KeyPart]| {
        let key = KeyTemplate::new(parts.to_vec());
        Fixture::with(crate::ValuesSettings { key, write: false, ..settings(Format::Body) })
    };
    let keyed = CachePolicy { keyed_cookies: vec!["lang".to_owned()], ..CachePolicy::default() };
    let (plain, with_lang) =
        (template(&[KeyPart::Target]), template(&[KeyPart::Target, KeyPart::Cookie("lang".to_owned())]));
    let german = request("/a", &[(COOKIE, "lang=de; session=secret")]);
    for (fixture, policy, may) in [
        (&plain, &CachePolicy::default(), true),
        (&plain, &keyed, false),
        (&with_lang, &keyed, true),
        (&with_lang, &CachePolicy::default(), false),
    ] {
        assert_eq!(fixture.values.may_ask(&german, policy), may, "{policy:?}");
    }
    with_lang.server.raw().set("/ade", 0, 0, b"guten Tag");
    assert_eq!(with_lang.ask_by(&german, &keyed).await.unwrap().1, "guten Tag");
    assert_eq!(with_lang.ask(&request("/a", &[(COOKIE, "lang=fr")])).await, Err("absent"));
    let twice = request("/a", &[(COOKIE, "lang=de; lang=fr")]);
    assert_eq!(with_lang.ask(&twice).await, Err("unfit"), "nobody knows which");
    let post = larder_http::message::RequestHead { method: http::Method::POST, ..request("/a", &[]) };
    assert!(!plain.values.may_ask(&post, &CachePolicy::default()));
}

const PAGE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\n\r\nhello";

const CODED: &[u8] =
    b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: Accept-Encoding\r\nContent-Encoding: gzip\r\n\r\nhello";

#[tokio::test]
async fn a_message_is_judged_like_the_answer_that_it_is() {
    let fixture = Fixture::new(Format::Http);
    let mut raw = fixture.server.raw();
    let plain = CachePolicy::default();
    raw.set("example.com:8080/page", 0, 0, PAGE);
    let (head, body) = fixture.ask_by(&request("/page", &[]), &plain).await.unwrap();
    assert_eq!((body.as_str(), head.validators.etag.is_some()), ("hello", true));
    let freshness = head.freshness;
    assert_eq!((freshness.lifetime, freshness.source), (Duration::from_secs(1), LifetimeSource::Remote));
    for (value, expected) in [
        (&b"hello"[..], Err("unusable")),
        (b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\nhello", Err("unusable")),
        (b"HTTP/1.1 200 OK\r\n\r\nno lifetime, no validator", Err("unusable")),
        (b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/9\r\nCache-Control: max-age=60\r\n\r\nhello", Err("unusable")),
        (b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: Accept-Language\r\n\r\nhello", Err("unfit")),
        (b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: Accept-Encoding\r\n\r\nhello", Ok("hello")),
        (b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Encoding: gzip\r\n\r\nhello", Err("unfit")),
        (CODED, Err("unfit")),
    ] {
        raw.set("example.com:8080/page", 0, 0, value);
        let asked = fixture.ask(&request("/page", &[])).await;
        assert_eq!(asked.as_deref().map_err(|word| *word), expected, "{}", value.escape_ascii());
    }
    let gzip = request("/page", &[(ACCEPT_ENCODING, "gzip")]);
    assert_eq!(fixture.ask(&gzip).await.as_deref(), Ok("hello"), "for who takes the coding");
    assert_eq!(fixture.sample(&["lookups_total", "\"malformed\""]), 4);
    assert_eq!(fixture.sample(&["lookups_total", "\"other-variant\""]), 3);
}

#[tokio::test]
async fn a_lifetime_that_is_the_rules_is_for_nobody_with_a_session() {
    let fixture = Fixture::new(Format::Http);
    fixture.server.raw().set("example.com:8080/page", 0, 0, b"HTTP/1.1 200 OK\r\nETag: \"v1\"\r\n\r\nhello");
    let ttl = Lifetimes { any: Some(Duration::from_secs(60)), by_status: Vec::new() };
    let policy = CachePolicy { ttl, ..CachePolicy::default() };
    let session = request("/page", &[(COOKIE, "session=secret")]);
    assert_eq!(fixture.ask_by(&session, &policy).await.map(|_| ()), Err("unfit"));
    let (head, _) = fixture.ask_by(&request("/page", &[]), &policy).await.unwrap();
    assert_eq!(
        (head.freshness.lifetime, head.freshness.source),
        (Duration::from_secs(1), LifetimeSource::Ttl)
    );
    // What varies by a field of the key is for those who have the same in it.
    let key = KeyTemplate::new(vec![KeyPart::Target, KeyPart::Field(ACCEPT_LANGUAGE)]);
    let keyed = Fixture::with(crate::ValuesSettings { key, write: false, ..settings(Format::Http) });
    let german = request("/", &[(ACCEPT_LANGUAGE, "de")]);
    let varies = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: Accept-Language\r\n\r\nhallo";
    keyed.server.raw().set("/de", 0, 0, varies);
    assert_eq!(keyed.ask(&german).await.as_deref(), Ok("hallo"));
}

/// Far more than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_server_that_hangs_costs_the_time_limit_and_then_nothing() {
    let fixture = Fixture::new(Format::Body);
    let asked = request("/a", &[]);
    assert_eq!(fixture.ask(&asked).await, Err("absent"));
    fixture.server.stop();
    for _ in 0..5 {
        let begun = Instant::now();
        assert_eq!(fixture.ask(&asked).await, Err("unusable"));
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    }
    let begun = Instant::now();
    for _ in 0..1000 {
        assert_eq!(fixture.ask(&asked).await, Err("unusable"));
    }
    // With the time limit for each it would be minutes.
    assert!(begun.elapsed() < PATIENCE, "it is left alone: {:?}", begun.elapsed());
    assert!(fixture.sample(&["lookups_total", "\"skipped\""]) >= 1000);
    fixture.server.resume();
    fixture.comes_to(&asked, Err("absent")).await;
}

#[tokio::test]
async fn a_value_whose_name_has_a_version_is_that_of_the_key_and_its_copy_lasts() {
    let parts = vec![KeyPart::Target, KeyPart::Text("@".into()), KeyPart::Versions];
    let with = |write| crate::ValuesSettings {
        key: KeyTemplate::new(parts.clone()),
        write,
        ..settings(Format::Body)
    };
    let (fixture, written) = (Fixture::with(with(false)), Fixture::with(with(true)));
    fixture.server.raw().set("/a@7", 0, 0, b"of 7");
    let (asked, policy) = (request("/a", &[]), CachePolicy::default());
    written.server.raw().set("/a@7", 0, 0, b"of 7");
    let found_by = async |fixture: &Fixture, versions: Option<&str>| {
        let mut key = larder_tier::CacheKey::new("example.com:8080", "/a");
        key.push_part(b"http");
        versions.into_iter().for_each(|versions| key.push_versions(versions.as_bytes()));
        match fixture.values.ask(&key, &asked, &policy, &|_, _| true).await {
            larder_tier::Asked::<crate::HttpCaching>::Found(value) => {
                Ok((value.body.concat(), value.head.freshness.lifetime >= Duration::from_secs(3600)))
            }
            larder_tier::Asked::Absent => Err("absent"),
            larder_tier::Asked::Unfit => Err("unfit"),
            larder_tier::Asked::Unusable => Err("unusable"),
        }
    };
    let found = async |versions| found_by(&fixture, versions).await;
    assert_eq!(found(Some("7")).await, Ok((b"of 7".to_vec(), true)));
    assert_eq!(found(Some("7\0another time")).await, Ok((b"of 7".to_vec(), true)));
    // What larder may have written itself is of the other time.
    assert_eq!(found_by(&written, Some("7\0another time")).await, Err("unfit"));
    assert!(found_by(&written, Some("7")).await.is_ok());
    assert_eq!((found(Some("8")).await, found(None).await), (Err("absent"), Err("unfit")));
}
