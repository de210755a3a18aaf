//! What goes, and what stays although something goes, each for every kind of store.
//!
//! Invalidations and removals, what comes too late, restarts and crashes, damage, and room that runs out. Whoever reads what
//! goes meanwhile reads to its end, or is cut: nobody gets a wrong byte.

use std::sync::Arc;

use crate::StreamingBody;

use crate::contract::behaviours::{LENGTHS, everywhere, everywhere_of, finds, lacks};
use crate::contract::fixture::{Kind, Page, Sizes, key};

#[test]
fn an_invalidation_takes_every_variant_and_nothing_else() {
    everywhere(async |fixture| {
        for length in [134, 600_000] {
            let path = format!("/{length}");
            let pages =
                [Some("sweet"), Some("plain")].map(|flavour| Page { flavour, ..Page::new(&path, 1, length) });
            let other = Page::new(&format!("{path}/other"), 1, length);
            for page in pages.iter().chain([&other]) {
                assert!(fixture.put(page, 0).await);
            }
            // While they may be on their way to the disks, and when they are there.
            if length > 134 {
                fixture.settle();
            }
            assert_eq!(fixture.store.invalidate(&key(&path), 7), 2, "{:?}", fixture.kind);
            for _ in 0..2 {
                for page in &pages {
                    assert!(fixture.find(&page.key(), page.flavour).await.is_none(), "{:?}", fixture.kind);
                }
                finds(fixture, &other).await;
                fixture.settle();
                fixture.empty_memory();
            }
            // What is fetched afterwards is there.
            let newer = Page::new(&path, 2, length);
            assert!(fixture.put(&newer, 7).await);
            finds(fixture, &newer).await;
        }
    });
}

#[test]
fn what_was_removed_is_gone() {
    everywhere(async |fixture| {
        for length in [134, 600_000] {
            let page = Page::new("/a", 1, length);
            assert!(fixture.put(&page, 0).await);
            fixture.settle();
            let found = fixture.find(&page.key(), None).await.unwrap();
            fixture.store.remove(&page.key(), &found.stored);
            lacks(fixture, "/a").await;
            // Whoever holds it still reads it.
            assert!(
                fixture.read(&found.stored, 0..length as u64).await == Some(page.body()),
                "{:?}",
                fixture.kind
            );
            fixture.settle();
            fixture.empty_memory();
            lacks(fixture, "/a").await;
            assert!(fixture.put(&page, 0).await);
            fixture.store.discard(&page.key(), |_| true);
            lacks(fixture, "/a").await;
            fixture.settle();
            fixture.empty_memory();
            lacks(fixture, "/a").await;
        }
    });
}

#[test]
fn what_became_invalid_meanwhile_is_not_stored() {
    everywhere(async |fixture| {
        for length in [134, 600_000] {
            let page = Page::new("/a", 1, length);
            let (key, head, body) = (page.key(), page.head(&fixture.clock), page.body());
            let streaming = StreamingBody::keep(&fixture.store, &key, Some(body.len() as u64)).unwrap();
            streaming.push(body).await.unwrap();
            let whole = streaming.finish(None, |_| ()).await.unwrap().unwrap();
            let room = fixture.store.reserve(10_000).unwrap();
            let response = Arc::new(crate::StoredResponse::new(head, whole, 0, room));
            assert!(!fixture.store.insert(&key, response, |_| true, || false));
            lacks(fixture, "/a").await;
            fixture.settle();
            fixture.empty_memory();
            lacks(fixture, "/a").await;
        }
    });
}

/// What memory does not take in the end must not be on the disks either: it would come back when memory has forgotten.
#[test]
fn what_was_outdated_when_it_came_leaves_no_trace() {
    everywhere(async |fixture| {
        for length in [134, 600_000] {
            let page = |version| Page::new(&format!("/{length}"), version, length);
            assert!(fixture.put(&page(1), 0).await);
            let first = fixture.find(&page(1).key(), None).await.unwrap();
            let slow = page(2).head(&fixture.clock);
            fixture.clock.advance(std::time::Duration::from_secs(10));
            assert!(fixture.put(&page(3), 0).await);
            // A 304 for what is not there any more, and a response that took longer than the next one.
            let is_kept = [fixture.confirm(&first, &page(4), 0), fixture.insert(&page(2), slow).await];
            if fixture.kind == Kind::Files {
                // Where it takes a look that waits, this is found out when it would be written.
                fixture.settle();
            } else {
                assert_eq!(is_kept, [false; 2], "{:?}", fixture.kind);
            }
            finds(fixture, &page(3)).await;
            fixture.settle();
            fixture.empty_memory();
            finds(fixture, &page(3)).await;
        }
    });
}

/// Everything that lay on the disks when somebody began to read is given up before the end is read.
#[test]
fn who_began_to_read_reads_to_the_end() {
    use http_body_util::BodyExt;
    use larder_http::body::Body;
    // What is read and on its way to disks stays below the quarter of memory beyond which readers are let go of.
    let sizes = Sizes { memory: 16 << 20, disk: 16 << 20, max_object: 4 << 20 };
    for waits in [true, false] {
        everywhere_of(sizes, async |fixture| {
            let page = Page::new("/a", 1, 1_000_000);
            assert!(fixture.put(&page, 0).await);
            // What is read lies on the disk already, or is still on its way there.
            if waits {
                fixture.settle();
            }
            let stored = fixture.find(&page.key(), None).await.unwrap().stored;
            let reading = stored.body.content(0..1_000_000).unwrap();
            drop(stored);
            for n in 0..80 {
                fixture.put(&Page::new(&format!("/{n}"), 1, 900_000), 0).await;
                fixture.settle();
            }
            fixture.check_caps();
            if let Some(usage) = fixture.behind.disks.as_ref().map(|disks| disks.usage()) {
                // What is in use is written once more; the rest of it goes.
                assert!(usage.0.iter().all(|(_, usage)| usage.reclaimed_segments > 8), "{usage:?}");
            }
            let Body::Stream { stream, .. } = reading else { return assert!(!fixture.has_disks()) };
            let read = stream.collect().await.map(http_body_util::Collected::to_bytes);
            assert!(read.unwrap() == page.body(), "{:?}", fixture.kind);
        });
    }
}

#[test]
fn what_is_damaged_is_cut_once_and_never_begun_again() {
    everywhere(async |fixture| {
        let Kind::Disks(layout, count) = fixture.kind else { return };
        let page = Page::new("/a", 1, 1_500_000);
        assert!(fixture.put(&page, 0).await);
        fixture.settle();
        if layout == larder_disk::Layout::Mirror {
            fixture.damage(1);
            fixture.empty_memory();
            return finds(fixture, &page).await;
        }
        fixture.damage(count);
        let found = fixture.find(&page.key(), None).await.unwrap();
        assert!(found.body.is_none(), "{:?}: bytes that were spoilt", fixture.kind);
        lacks(fixture, "/a").await;
        fixture.empty_memory();
        lacks(fixture, "/a").await;
        let newer = Page::new("/a", 2, 1_500_000);
        assert!(fixture.put(&newer, 0).await);
        fixture.settle();
        fixture.empty_memory();
        finds(fixture, &newer).await;
    });
}

#[test]
fn what_was_stored_is_there_after_a_restart_and_what_was_invalidated_is_not() {
    everywhere(async |fixture| {
        if !fixture.is_durable() {
            return;
        }
        let kept: Vec<Page> =
            LENGTHS.iter().enumerate().map(|(n, length)| Page::new(&format!("/{n}"), 1, *length)).collect();
        for page in &kept {
            assert!(fixture.put(page, 4).await);
            assert!(fixture.put(&Page::new(&format!("/gone{}", page.path), 1, page.length), 4).await);
        }
        fixture.settle();
        for page in &kept {
            fixture.store.invalidate(&key(&format!("/gone{}", page.path)), 5);
        }
        for _ in 0..3 {
            fixture.restart();
            for page in &kept {
                finds(fixture, page).await;
                lacks(fixture, &format!("/gone{}", page.path)).await;
            }
            if let Some(disks) = &fixture.behind.disks {
                assert_eq!(disks.last_number(), 5);
            }
        }
        fixture.crash();
        for page in &kept {
            finds(fixture, page).await;
            lacks(fixture, &format!("/gone{}", page.path)).await;
        }
    });
}

/// A record on one disk waits for its pieces on others, also while the disks are being closed one after the other.
#[test]
fn what_is_on_its_way_at_an_orderly_end_is_written() {
    everywhere(async |fixture| {
        if !fixture.is_durable() {
            return;
        }
        for round in 0..8 {
            let page = |n: usize, version| Page::new(&format!("/{n}"), version, 300_000 * n + 1);
            for n in 0..4 {
                assert!(fixture.put(&page(n, 2 * round), 0).await);
            }
            fixture.settle();
            for n in 0..4 {
                assert!(fixture.put(&page(n, 2 * round + 1), 0).await);
            }
            fixture.restart();
            for n in 0..4 {
                finds(fixture, &page(n, 2 * round + 1)).await;
            }
        }
    });
}

#[test]
fn the_caps_hold_while_far_more_is_stored_than_fits() {
    let sizes = Sizes { memory: 2 << 20, disk: 16 << 20, max_object: 4 << 20 };
    everywhere_of(sizes, async |fixture| {
        let lengths = [134, 20_000, 250_000, 600_000, 1_500_000];
        let mut newest = None;
        for n in 0..150u64 {
            let page = Page::new(&format!("/{n}"), n, lengths[n as usize % lengths.len()]);
            let is_stored = fixture.put(&page, 0).await;
            fixture.settle();
            fixture.check_caps();
            newest = is_stored.then_some(page).or(newest);
        }
        fixture.empty_memory();
        if fixture.is_durable() {
            finds(fixture, &newest.unwrap()).await;
            fixture.restart();
            fixture.check_caps();
        }
    });
}
