//! Invalidations: deleted there, and not believed before that is confirmed.

use std::time::Duration;

use larder_cache::CachePolicy;
use larder_http::message::Scheme;
use larder_tier::{Ask, Invalidate, Note, TargetUri};

use super::{Fixture, PATIENCE, key, request, settings, stored};
use crate::{Format, KeyPart, KeyTemplate, ValuesSettings};

const NAME: &str = "example.com:8080/a";

async fn synced(fixture: &Fixture) -> Result<(), String> {
    let synced = tokio::time::timeout(PATIENCE, fixture.values.sync()).await.expect("it never ended");
    synced.map_err(|error| error.to_string())
}

#[tokio::test]
async fn every_kind_of_invalidation_deletes_and_a_purge_waits_for_it() {
    let fixture = Fixture::new(Format::Body);
    let (mut raw, asked) = (fixture.server.raw(), request("/a", &[]));
    let key = key(&asked);
    let note = Note { number: 2, moment: 0, what: Vec::new() };
    let ways: [&dyn Fn(); 3] = [
        &|| {
            fixture.values.take_out(&key, 1);
        },
        &|| fixture.values.note_base(&key, &note),
        &|| fixture.values.disown(&key),
    ];
    for (number, way) in ways.into_iter().enumerate() {
        raw.set(NAME, 0, 0, b"old");
        fixture.comes_to(&asked, Ok("old")).await;
        way();
        assert_ne!(fixture.ask(&asked).await.as_deref(), Ok("old"), "{number}: it is not believed any more");
        assert_eq!(synced(&fixture).await, Ok(()));
        assert_eq!(fixture.ask(&asked).await, Err("absent"), "{number}");
    }
    assert!(fixture.values.has_base(&key) && !fixture.values.is_behind());
}

#[tokio::test]
async fn what_was_asked_for_before_an_invalidation_is_not_current_after_it() {
    let fixture = Fixture::new(Format::Body);
    let asked = request("/a", &[]);
    fixture.server.raw().set(NAME, 0, 0, b"old");
    let policy = CachePolicy::default();
    let larder_tier::Asked::<crate::HttpCaching>::Found(value) =
        fixture.values.ask(&key(&asked), &asked, &policy, &|_, _| true).await
    else {
        panic!("it is there");
    };
    assert!(fixture.values.is_current(&key(&asked), value.ticket));
    fixture.values.take_out(&key(&asked), 1);
    assert_eq!(synced(&fixture).await, Ok(()));
    assert!(!fixture.values.is_current(&key(&asked), value.ticket), "also once it is confirmed");
}

#[tokio::test]
async fn under_a_deletion_that_is_not_confirmed_nothing_is_believed() {
    let mut fixture = Fixture::new(Format::Body);
    let asked = request("/a", &[]);
    fixture.server.raw().set(NAME, 0, 0, b"old");
    fixture.comes_to(&asked, Ok("old")).await;
    fixture.server.kill();
    fixture.values.take_out(&key(&asked), 1);
    let waited = tokio::time::timeout(Duration::from_millis(100), fixture.values.sync()).await;
    assert!(waited.is_err() && fixture.values.is_behind(), "no server has confirmed it");
    fixture.server.restart();
    // As if it had been away, and not ended.
    fixture.server.raw().set(NAME, 0, 0, b"old");
    assert_eq!(synced(&fixture).await, Ok(()));
    fixture.comes_to(&asked, Err("absent")).await;
}

#[tokio::test]
async fn what_began_before_an_invalidation_is_not_written_after_it() {
    let fixture = Fixture::new(Format::Body);
    let asked = request("/a", &[]);
    let said = [("content-type", "text/html"), ("cache-control", "max-age=60")];
    let head = stored(&asked, &said, &CachePolicy::default(), fixture.clock.now());
    let note = Note { number: 5, moment: 0, what: Vec::new() };
    fixture.values.note_base(&key(&asked), &note);
    fixture.put(&asked, &head, "old", 4);
    assert_eq!(synced(&fixture).await, Ok(()));
    assert_eq!(fixture.ask(&asked).await, Err("absent"));
    fixture.put(&asked, &head, "new", 5);
    fixture.comes_to(&asked, Ok("new")).await;
    fixture.counts_writes("written", 1).await;
}

#[tokio::test]
async fn another_hosts_invalidation_deletes_nothing() {
    let key_of_target = KeyTemplate::new(vec![KeyPart::Target]);
    let fixture = Fixture::with(ValuesSettings { key: key_of_target, ..settings(Format::Body) });
    fixture.server.raw().set("/a", 0, 0, b"value");
    let mut other = larder_tier::CacheKey::new("other.example", "/a");
    other.push_part(b"http");
    assert!(!fixture.values.has_base(&other));
    fixture.values.take_out(&other, 1);
    assert_eq!(synced(&fixture).await, Ok(()));
    assert_eq!(fixture.ask(&request("/a", &[])).await.as_deref(), Ok("value"));
}

#[tokio::test]
async fn a_purge_of_a_url_that_makes_no_name_says_so() {
    let parts = vec![KeyPart::Target, KeyPart::Cookie("lang".to_owned())];
    let fixture = Fixture::with(ValuesSettings {
        key: KeyTemplate::new(parts),
        write: false,
        ..settings(Format::Body)
    });
    let uri = |authority| TargetUri { scheme: Scheme::Http, authority, path: "/a", query: None };
    assert!(fixture.values.purge(&uri("example.com")).is_err());
    assert!(fixture.values.purge(&uri("other.example")).is_ok());
    let plain = Fixture::new(Format::Body);
    assert!(plain.values.purge(&uri("example.com")).is_ok_and(|was_there| !was_there));
}
