//! What is stored and found, each for every kind of store, and what each of these tests is made of.
//!
//! In: a behaviour, as a function of a store. It runs on each kind, and the caps hold afterwards. How things end is in
//! [`crate::contract::endings`].

use crate::{Selection, StreamingBody};

use crate::contract::fixture::{Fixture, KINDS, Kind, Page, Sizes, key};

/// What lies inside a record, what is one piece, and what is several.
pub(crate) const LENGTHS: [usize; 7] = [0, 1, 134, 20_000, 256 * 1024, 256 * 1024 + 1, 1_000_000];

/// Runs a behaviour on each kind of store.
pub(crate) fn everywhere(behaviour: impl AsyncFn(&mut Fixture)) {
    everywhere_of(Sizes::default(), behaviour);
}

pub(crate) fn everywhere_of(sizes: Sizes, behaviour: impl AsyncFn(&mut Fixture)) {
    for kind in KINDS {
        println!("{kind:?}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut fixture = Fixture::new(kind, sizes);
        runtime.block_on(behaviour(&mut fixture));
        fixture.check_caps();
    }
}

/// `page` is found as it is.
pub(crate) async fn finds(fixture: &Fixture, page: &Page) {
    let found = fixture.find(&page.key(), page.flavour).await;
    let found = found.unwrap_or_else(|| panic!("{:?} has no {page:?}", fixture.kind));
    assert_eq!(found.version, page.version.0, "{:?}: {page:?}", fixture.kind);
    assert!(found.body == Some(page.body()), "{:?}: another body of {page:?}", fixture.kind);
}

pub(crate) async fn lacks(fixture: &Fixture, path: &str) {
    let found = fixture.find(&key(path), None).await;
    assert!(found.is_none(), "{:?} has {path}: {found:?}", fixture.kind);
}

#[test]
fn what_was_stored_is_found_under_its_key_only() {
    everywhere(async |fixture| {
        for (number, length) in LENGTHS.into_iter().enumerate() {
            let page = Page::new(&format!("/{number}"), 1, length);
            assert!(fixture.put(&page, 0).await);
            finds(fixture, &page).await;
            fixture.settle();
            finds(fixture, &page).await;
            fixture.empty_memory();
            finds(fixture, &page).await;
        }
        lacks(fixture, "/none").await;
        let mut https = crate::CacheKey::new("example.com", "/1");
        https.push_part(b"https");
        assert!(fixture.find(&https, None).await.is_none());
    });
}

#[test]
fn a_length_that_nobody_told_changes_nothing() {
    everywhere(async |fixture| {
        for (number, length) in LENGTHS.into_iter().enumerate() {
            let page = Page { is_declared: false, ..Page::new(&format!("/{number}"), 1, length) };
            assert!(fixture.put(&page, 0).await, "{:?} {length}", fixture.kind);
            fixture.settle();
            fixture.empty_memory();
            finds(fixture, &page).await;
        }
    });
}

#[test]
fn what_is_stored_again_takes_the_place_of_what_was() {
    everywhere(async |fixture| {
        for (before, after) in [(134, 20_000), (20_000, 1_000_000), (1_000_000, 134), (600_000, 600_000)] {
            for version in [1, 2] {
                let length = if version == 1 { before } else { after };
                assert!(fixture.put(&Page::new("/a", version, length), 0).await);
            }
            let newer = Page::new("/a", 2, after);
            finds(fixture, &newer).await;
            fixture.settle();
            fixture.empty_memory();
            finds(fixture, &newer).await;
            if let Some(usage) = fixture.behind.disks.as_ref().map(|disks| disks.usage()) {
                let copies =
                    if matches!(fixture.kind, Kind::Disks(larder_disk::Layout::Mirror, _)) { 2 } else { 1 };
                assert_eq!(usage.objects(), copies, "{:?}", fixture.kind);
            }
        }
    });
}

#[test]
fn a_304_changes_the_fields_and_keeps_the_body() {
    everywhere(async |fixture| {
        for (number, length) in LENGTHS.into_iter().enumerate() {
            let old = Page::new(&format!("/{number}"), 1, length);
            assert!(fixture.put(&old, 0).await);
            // Once while it may be on its way to the disks, once when it is there.
            for version in [2, 3] {
                let found = fixture.find(&old.key(), None).await.unwrap();
                let new = Page { version: (version, 1), ..old.clone() };
                let is_kept = fixture.confirm(&found, &new, 0);
                if !is_kept && fixture.kind == Kind::Files && version == 2 {
                    // On its way to its file at this moment: it is validated once more.
                    fixture.settle();
                    let found = fixture.find(&old.key(), None).await.unwrap();
                    assert!(fixture.confirm(&found, &new, 0), "{length}");
                } else {
                    assert!(is_kept, "{:?} {length}", fixture.kind);
                }
                fixture.settle();
                fixture.empty_memory();
                finds(fixture, &new).await;
            }
        }
    });
}

/// As many fields as 304s may add to a head over time.
#[test]
fn a_large_head_is_stored_whole() {
    everywhere(async |fixture| {
        for (number, length) in LENGTHS.into_iter().enumerate() {
            let small = Page::new(&format!("/{number}"), 1, length);
            assert!(fixture.put(&small, 0).await);
            fixture.settle();
            let found = fixture.find(&small.key(), None).await.unwrap();
            let large = Page { version: (2, 1), lines: 120, ..small.clone() };
            assert!(fixture.confirm(&found, &large, 0), "{:?} {length}", fixture.kind);
            fixture.settle();
            fixture.empty_memory();
            if fixture.kind == Kind::Files && found.stored.body.is_a_file() {
                // Its content is the file, and no file can have such a head.
                lacks(fixture, &small.path).await;
                continue;
            }
            finds(fixture, &large).await;
            let found = fixture.find(&small.key(), None).await.unwrap().stored;
            let is_line = |name: &http::HeaderName| name.as_str().starts_with("x-line");
            assert_eq!(found.head.fields.map.keys().filter(|name| is_line(name)).count(), 120);
        }
    });
}

#[test]
fn variants_are_told_apart_and_kept_together() {
    everywhere(async |fixture| {
        for length in [134, 600_000] {
            let page = |flavour, version| Page { flavour, ..Page::new("/a", version, length) };
            let all = [page(Some("sweet"), 1), page(Some("plain"), 2)];
            for page in &all {
                assert!(fixture.put(page, 0).await);
            }
            for _ in 0..2 {
                for page in &all {
                    finds(fixture, page).await;
                }
                assert!(fixture.find(&key("/a"), Some("sour")).await.is_none());
                fixture.settle();
                fixture.empty_memory();
            }
            // One of them anew: the other stays.
            assert!(fixture.put(&page(Some("sweet"), 3), 0).await);
            fixture.settle();
            fixture.empty_memory();
            finds(fixture, &page(Some("sweet"), 3)).await;
            finds(fixture, &all[1]).await;
        }
    });
}

#[test]
fn parts_lie_beside_the_whole_and_go_with_it() {
    everywhere(async |fixture| {
        let whole = Page::new("/a", 1, 900_000);
        let parts = [(0, 99), (100_000, 899_999)].map(|part| Page { part: Some(part), ..whole.clone() });
        for page in &parts {
            assert!(fixture.put(page, 0).await);
        }
        lacks(fixture, "/a").await;
        fixture.settle();
        fixture.empty_memory();
        let now = fixture.clock.now();
        if fixture.has_disks() {
            fixture.store.recall(&parts[0].key(), true, now, |_| true).await;
        }
        let (there, _) = fixture.store.responses(&parts[0].key(), now.monotonic);
        assert_eq!(there.len(), 2, "{:?}", fixture.kind);
        for stored in there {
            let part = stored.head.part.clone().unwrap();
            let page = parts.iter().find(|page| page.part.unwrap().0 == part.range.start).unwrap();
            let length = stored.body.length();
            assert!(fixture.read(&stored, 0..length).await == Some(page.body()), "{:?}", fixture.kind);
        }
        assert!(fixture.put(&whole, 0).await);
        finds(fixture, &whole).await;
        assert!(fixture.store.invalidate(&whole.key(), 1) > 0);
        lacks(fixture, "/a").await;
        fixture.settle();
        fixture.empty_memory();
        lacks(fixture, "/a").await;
        assert!(fixture.find(&parts[0].key(), None).await.is_none());
    });
}

#[test]
fn ranges_of_what_is_stored_are_the_same_bytes() {
    everywhere(async |fixture| {
        for length in [20_000, 1_000_000] {
            let page = Page::new("/a", 1, length);
            assert!(fixture.put(&page, 0).await);
            fixture.settle();
            fixture.empty_memory();
            let (stored, body) = (fixture.find(&page.key(), None).await.unwrap().stored, page.body());
            let end = length as u64;
            for range in [0..1, 0..end, 1..end, end - 1..end, end / 2..end / 2 + 1000, 262_143..262_146] {
                let range = range.start.min(end)..range.end.min(end);
                let expected = body.slice(range.start as usize..range.end as usize);
                assert!(
                    fixture.read(&stored, range.clone()).await == Some(expected),
                    "{:?} {range:?}",
                    fixture.kind
                );
            }
        }
    });
}

#[test]
fn readers_follow_a_large_body_while_it_arrives() {
    use http_body_util::BodyExt;
    everywhere(async |fixture| {
        let page = Page::new("/a", 1, 2_000_000);
        let body = page.body();
        let streaming = StreamingBody::keep(&fixture.store, &page.key(), Some(2_000_000)).unwrap();
        let early = tokio::spawn(streaming.reader(None).unwrap().collect());
        let idle = streaming.reader(None).unwrap();
        for at in (0..body.len()).step_by(64_000) {
            streaming.push(body.slice(at..body.len().min(at + 64_000))).await.unwrap();
            tokio::task::yield_now().await;
        }
        let middle = streaming.reader(Some(300_000..1_700_000)).unwrap();
        streaming.finish(None, |_| ()).await.unwrap().unwrap();
        assert!(early.await.unwrap().unwrap().to_bytes() == body, "{:?}", fixture.kind);
        assert!(idle.collect().await.unwrap().to_bytes() == body, "{:?}", fixture.kind);
        let middle = middle.collect().await.unwrap().to_bytes();
        assert!(middle == body.slice(300_000..1_700_000), "{:?}", fixture.kind);
    });
}

#[test]
fn what_is_too_large_is_not_stored_and_takes_nothing_from_others() {
    let sizes = Sizes { memory: 4 << 20, disk: 64 << 20, max_object: 2 << 20 };
    everywhere_of(sizes, async |fixture| {
        let small = Page::new("/small", 1, 1000);
        assert!(fixture.put(&small, 0).await);
        let larger = 3 << 20;
        assert!(fixture.store.max_object() < larger as u64);
        assert!(!fixture.put(&Page::new("/large", 1, larger), 0).await);
        // Of unknown length it is found out on the way; nobody reads it, so the fetch is told to stop.
        let unknown = Page { is_declared: false, ..Page::new("/unknown", 1, larger) };
        assert!(!fixture.put(&unknown, 0).await);
        lacks(fixture, "/large").await;
        lacks(fixture, "/unknown").await;
        finds(fixture, &small).await;
    });
}

#[test]
fn a_look_up_tells_what_is_there_for_others() {
    everywhere(async |fixture| {
        let page = Page { flavour: Some("sweet"), ..Page::new("/a", 1, 134) };
        assert!(fixture.put(&page, 0).await);
        let now = fixture.clock.now().monotonic;
        assert!(matches!(fixture.store.lookup(None, &key("/a"), now, |_| false), Selection::VaryMiss(_)));
        let mut https = crate::CacheKey::new("example.com", "/a");
        https.push_part(b"https");
        assert!(matches!(fixture.store.lookup(None, &https, now, |_| true), Selection::OtherVariant));
        assert!(matches!(fixture.store.lookup(None, &key("/b"), now, |_| true), Selection::Absent));
    });
}
