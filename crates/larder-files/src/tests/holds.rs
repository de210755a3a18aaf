//! What a plain file can stand for.

use http::{HeaderName, Method, Version};
use larder_cache::{CachePolicy, ExchangeTimes, Storability, StoredHead, storable};
use larder_http::authority::Authority;
use larder_http::message::RequestHead;
use larder_http::target::Target;
use larder_http::time::Clock;
use std::time::Duration;

use super::meta::META_BYTES_MAX;
use super::*;

pub(super) fn head(status: u16, fields: &[(&'static str, &'static str)]) -> StoredHead {
    let request = RequestHead {
        method: Method::GET,
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(b"h"), Scheme::Http).unwrap(),
        target: Target::parse(Bytes::from_static(b"/a")).unwrap(),
        version: Version::HTTP_11,
        fields: HeaderMap::new(),
    };
    let fields: HeaderMap = fields
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    let (status, policy) = (StatusCode::from_u16(status).unwrap(), CachePolicy::default());
    let now = Clock::default().now();
    let times = ExchangeTimes { request: now, response: now };
    let Storability::Storable(freshness) = storable(&request, status, &fields, times, &policy) else {
        panic!("not storable")
    };
    StoredHead::new(&request, status, fields, freshness, &policy)
}

#[test]
fn only_what_a_plain_file_can_stand_for_goes_there() {
    const FRESH: (&str, &str) = ("cache-control", "max-age=60");
    let check = |status, fields: &[_], expected: Result<(), NotAFile>| {
        assert_eq!(may_hold(&uri("/a"), &head(status, fields), false), expected, "{fields:?}");
    };
    check(200, &[FRESH], Ok(()));
    check(200, &[FRESH, ("vary", "Accept-Encoding")], Ok(()));
    check(200, &[FRESH, ("vary", "Accept-Language")], Err(NotAFile::Varies));
    check(200, &[FRESH, ("content-encoding", "gzip")], Err(NotAFile::Encoded));
    check(200, &[FRESH, ("surrogate-control", "content=\"ESI/1.0\"")], Err(NotAFile::Template));
    check(404, &[FRESH], Err(NotAFile::Status));
    check(301, &[FRESH, ("location", "/b")], Err(NotAFile::Status));
    check(200, &[("cache-control", "no-cache, max-age=60"), ("etag", "\"x\"")], Err(NotAFile::NotShareable));
    let long: &str = Box::leak("x".repeat(META_BYTES_MAX - 1024).into_boxed_str());
    check(200, &[FRESH, ("x-long", long)], Err(NotAFile::LargeHead));
    assert_eq!(may_hold(&uri("/a"), &head(200, &[FRESH]), true), Err(NotAFile::KeyParts));
    let deep = "/a".repeat(50);
    let expected = Err(NotAFile::Unnameable(Unnameable::TooDeep));
    assert_eq!(may_hold(&uri(&deep), &head(200, &[FRESH]), false), expected);
}

#[test]
fn a_head_comes_back_from_its_meta() {
    let fixture = Fixture::new(1 << 20);
    let stored = head(200, &[("cache-control", "max-age=60"), ("etag", "\"x\""), ("content-length", "4")]);
    let mut fill = fixture.store.begin(&uri("/a"), Some(4)).unwrap();
    fill.write(Bytes::from_static(b"body")).unwrap();
    let (tell, told) = mpsc::sync_channel(1);
    let meta = Meta::of(&stored, Duration::from_millis(3), 7);
    fill.commit(meta, || true, Box::new(move |done| tell.send(done).unwrap()));
    told.recv().unwrap().unwrap();
    let hit = find(&fixture.store, "/a").unwrap();
    let Source::Stored(found) = hit.source() else { panic!("not stored") };
    assert_eq!((found.number, found.took), (7, Duration::from_millis(3)));
    assert_eq!(found.fields, stored.all_fields());
    let freshness = found.times.freshness(stored.freshness.received);
    assert_eq!(freshness, stored.freshness);
    let memo = hit.memo().unwrap();
    let first = memo.or_make(|| Arc::new(stored.clone()));
    let again = memo.or_make::<StoredHead>(|| unreachable!("it is made once"));
    assert!(Arc::ptr_eq(&first, &again) && memo.get::<StoredHead>().is_some());
}
