//! What larder writes, and what it does not.

use std::time::Duration;

use larder_cache::template::{Assemble, TemplatePolicy};
use larder_cache::{CachePolicy, Lifetimes};
use larder_http::template::Language;
use larder_tier::tier::TierCaps;
use larder_tier::{Inspect, Run};

use super::{Fixture, key, request, settings, stored};
use crate::format::{NotWritten, is_fit};
use crate::{Format, KeyPart, KeyTemplate, ValuesSettings};

const HTML: (&str, &str) = ("content-type", "Text/HTML");
const HOUR: (&str, &str) = ("cache-control", "max-age=3600");

#[tokio::test]
async fn what_the_origin_gave_is_there_for_its_lifetime() {
    let fixture = Fixture::new(Format::Body);
    let asked = request("/a", &[]);
    let head =
        stored(&asked, &[HTML, HOUR, ("etag", "\"v1\"")], &CachePolicy::default(), fixture.clock.now());
    fixture.put(&asked, &head, "<p>from the origin</p>", 0);
    fixture.comes_to(&asked, Ok("<p>from the origin</p>")).await;
    let ttl = fixture.server.raw().ask("mg example.com:8080/a t\r\n");
    let seconds = ttl.trim_start_matches("HD t").trim_end().parse::<u32>().unwrap_or_default();
    assert!((3590..=3600).contains(&seconds), "{ttl:?}");
    // What takes its place and makes no value takes it away.
    let varies = stored(&asked, &[HTML, HOUR, ("vary", "x-a")], &CachePolicy::default(), fixture.clock.now());
    fixture.put(&asked, &varies, "other", 0);
    fixture.comes_to(&asked, Err("absent")).await;
    fixture.values.close();
    assert_eq!(fixture.sample(&["queue_bytes"]), 0);
}

#[tokio::test]
async fn a_message_is_found_as_it_was_stored() {
    let fixture = Fixture::new(Format::Http);
    let asked = request("/a", &[]);
    let policy = CachePolicy::default();
    let said = [
        ("content-type", "application/json"),
        ("cache-control", "max-age=3600, stale-while-revalidate=100"),
        ("etag", "\"v1\""),
        ("age", "100"),
        ("vary", "accept-encoding"),
    ];
    let head = stored(&asked, &said, &policy, fixture.clock.now());
    fixture.put(&asked, &head, "{}", 0);
    fixture.comes_to(&asked, Ok("{}")).await;
    let (found, _) = fixture.ask_by(&asked, &policy).await.unwrap();
    for name in ["content-type", "cache-control", "etag", "vary"] {
        assert_eq!(found.fields.map.get(name), head.fields.map.get(name), "{name}");
    }
    let age = found.freshness.age(fixture.clock.now()).as_secs();
    assert!((100..=110).contains(&age), "{age}");
    let ttl = fixture.server.raw().ask("mg example.com:8080/a t\r\n");
    let seconds = ttl.trim_start_matches("HD t").trim_end().parse::<u32>().unwrap_or_default();
    assert!((3590..=3600).contains(&seconds), "3500 are left, and 100 of stale use: {ttl:?}");
}

#[tokio::test]
async fn a_new_cap_holds_for_what_is_written_and_what_is_read_from_then_on() {
    let fixture = Fixture::new(Format::Body);
    let put = |path: &'static str, body: &'static str| {
        let asked = request(path, &[]);
        let head = stored(&asked, &[HTML, HOUR], &CachePolicy::default(), fixture.clock.now());
        fixture.put(&asked, &head, body, 0);
        asked
    };
    let resize = |max_object| fixture.values.resize(&TierCaps { bytes: 0, files: 0, max_object });
    resize(4);
    let (too_large, small) = (put("/a", "12345"), put("/b", "1234"));
    // Written in their order.
    fixture.comes_to(&small, Ok("1234")).await;
    fixture.comes_to(&too_large, Err("absent")).await;
    resize(5);
    fixture.comes_to(&put("/c", "12345"), Ok("12345")).await;
}

#[test]
fn a_response_that_bytes_cannot_stand_for_is_not_written() {
    let (policy, now) = (CachePolicy::default(), larder_http::time::Clock::default().now());
    let ttl = Lifetimes { any: Some(Duration::from_secs(60)), by_status: Vec::new() };
    let with_ttl = CachePolicy { ttl, ..CachePolicy::default() };
    let asked = request("/a", &[]);
    let both = |lines: &[(&str, &str)], policy: &CachePolicy| {
        let head = stored(&asked, lines, policy, now);
        [Format::Body, Format::Http].map(|format| is_fit(&settings(format), &head, now).map(|_| ()))
    };
    let alike = |why| [Err(why), Err(why)];
    for (lines, expected) in [
        (&[HTML, HOUR][..], [Ok(()), Ok(())]),
        (&[HTML, HOUR, ("vary", "accept-encoding")], [Ok(()), Ok(())]),
        (&[HTML, HOUR, ("vary", "cookie")], alike(NotWritten::Varies)),
        (&[HTML, HOUR, ("set-cookie", "a=c")], alike(NotWritten::Cookies)),
        (&[HTML, HOUR, ("content-encoding", "gzip")], alike(NotWritten::Coding)),
        (&[HTML, HOUR, ("cache-tag", "one")], alike(NotWritten::Tags)),
        (&[HTML, HOUR, ("cache-groups", "\"one\"")], alike(NotWritten::Tags)),
        (&[("content-type", "application/json"), HOUR], [Err(NotWritten::Type), Ok(())]),
        (&[HOUR], [Err(NotWritten::Type), Ok(())]),
        (
            &[HTML, HOUR, ("surrogate-control", "max-age=60, content=\"ESI/1.0\"")],
            [Err(NotWritten::Template), Ok(())],
        ),
        (&[HTML, ("cache-control", "no-cache"), ("etag", "\"v1\"")], alike(NotWritten::Lifetime)),
        (
            &[HTML, ("cache-control", "max-age=60"), ("age", "60"), ("etag", "\"v1\"")],
            alike(NotWritten::Lifetime),
        ),
    ] {
        assert_eq!(both(lines, &policy), expected, "{lines:?}");
    }
    assert_eq!(
        both(&[HTML], &with_ttl),
        [Err(NotWritten::Assumed), Ok(())],
        "it would be for who has a session too"
    );
    let templates = TemplatePolicy {
        assemble: Assemble::Language(Language::Ssi),
        types: vec!["text/html".to_owned()],
        ..TemplatePolicy::default()
    };
    let of_ssi = CachePolicy { templates, ..CachePolicy::default() };
    assert_eq!(both(&[HTML, HOUR], &of_ssi), [Err(NotWritten::Template), Ok(())], "by its rule");
}

#[tokio::test]
async fn a_strangers_host_or_port_writes_nothing() {
    let policy = CachePolicy::default();
    let target = KeyTemplate::new(vec![KeyPart::Target]);
    let fixture = Fixture::with(ValuesSettings { key: target, ..settings(Format::Body) });
    let head = |asked: &_| stored(asked, &[HTML, HOUR], &policy, fixture.clock.now());
    let at_a_port = request("/a", &[]);
    fixture.put(&at_a_port, &head(&at_a_port), "poison", 0);
    let why = fixture.values.holds_back(&key(&at_a_port), &head(&at_a_port), 0).unwrap();
    assert_eq!(why.token, "host");
    let at = |authority: &'static str| larder_http::message::RequestHead {
        authority: larder_http::authority::Authority::parse(
            authority.into(),
            larder_http::message::Scheme::Http,
        )
        .unwrap(),
        ..request("/a", &[])
    };
    let stranger = at("other.example");
    fixture.put(&stranger, &head(&stranger), "poison", 0);
    let own = at("example.com");
    assert_eq!(fixture.values.holds_back(&key(&own), &head(&own), 0), None);
    fixture.put(&own, &head(&own), "own", 0);
    fixture.comes_to(&own, Ok("own")).await;
    fixture.counts_writes("written", 1).await;
    // With more in its key than the URL, it is no value of this URL.
    let mut keyed = key(&own);
    keyed.push_part(b"lang=de");
    assert_eq!(fixture.values.name_to_write(&keyed).unwrap_err(), NotWritten::KeyParts);
}
