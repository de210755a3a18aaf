//! Which large bodies stay when room is needed, and that each stays or goes as a whole, whatever disks its pieces lie on.
//!
//! Disks so small that all of them give up segments all the time. A few bodies are asked for again and again while many others
//! come that nobody asks for twice: in every layout about as many of the few are found as on a single disk. Waiting is for what
//! the disks say of themselves.

use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use larder_disk::Layout;
use larder_disk::engine::DiskUsage;
use larder_http::body::Body;

use crate::contract::fixture::{Fixture, Kind, Page, Sizes};

const LENGTH: usize = 700_000;
const DISK: u64 = 32 << 20;
/// Too small for a body to be kept there.
const SIZES: Sizes = Sizes { memory: 2 << 20, disk: DISK, max_object: 8 << 20 };
const HOT: u64 = 6;
/// How often what the disks hold goes over them.
const ROUNDS: u64 = 3;

const ALL: [(Layout, usize); 4] =
    [(Layout::Single, 1), (Layout::Mirror, 2), (Layout::Stripe, 2), (Layout::Hash, 2)];

fn run(test: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test());
}

fn page(kind: &str, number: u64) -> Page {
    Page::new(&format!("/{kind}/{number}"), 1, LENGTH)
}

fn usage(fixture: &Fixture) -> Vec<DiskUsage> {
    fixture.behind.disks.as_ref().unwrap().usage().0.into_iter().map(|(_, usage)| usage).collect()
}

fn wait(fixture: &Fixture, until: impl Fn(&DiskUsage) -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !usage(fixture).iter().all(&until) {
        assert!(Instant::now() < end, "{:?}: {:?}", fixture.kind, usage(fixture));
        std::thread::yield_now();
    }
}

/// Whether it is found; then it is whole and right.
async fn is_found(fixture: &Fixture, page: &Page) -> bool {
    let Some(found) = fixture.find(&page.key(), None).await else { return false };
    let body = found.body.unwrap_or_else(|| panic!("{:?}: {} was cut", fixture.kind, page.path));
    assert!(body == page.body(), "{:?}: another body under {}", fixture.kind, page.path);
    true
}

async fn put(fixture: &Fixture, page: &Page) {
    assert!(fixture.put(page, 0).await, "{:?}", fixture.kind);
    fixture.settle();
}

/// How often what is asked for again and again was gone, while `ROUNDS` times what the disks hold went over it.
async fn losses(fixture: &Fixture, disks: u64) -> u64 {
    let mut losses = 0;
    for cold in 0..colds(disks) {
        put(fixture, &page("cold", cold)).await;
        if cold < 6 * HOT && cold % 6 == 0 {
            put(fixture, &page("hot", cold / 6)).await;
        }
        // Each of them several times while a segment grows old.
        let hot = page("hot", cold % HOT);
        if cold >= 6 * HOT && !is_found(fixture, &hot).await {
            losses += 1;
            put(fixture, &hot).await;
        }
    }
    fixture.check_caps();
    losses
}

fn colds(disks: u64) -> u64 {
    ROUNDS * disks * DISK / LENGTH as u64
}

#[test]
fn what_is_in_use_survives_what_is_not_in_every_layout_and_nothing_is_left_once_all_is_invalidated() {
    run(async || {
        for (layout, count) in ALL {
            let fixture = Fixture::new(Kind::Disks(layout, count), SIZES);
            let disks = if layout == Layout::Mirror { 1 } else { count as u64 };
            let losses = losses(&fixture, disks).await;
            println!("{layout:?}: {losses} lost of {}", HOT * ROUNDS);
            assert!(losses * 4 <= HOT * ROUNDS, "{layout:?}: {losses} lost, {:?}", usage(&fixture));
            assert!(usage(&fixture).iter().all(|usage| usage.damaged == 0 && usage.reclaimed_segments > 10));
            // What was not asked for went, but for the last of it.
            let mut cold = 0;
            for number in 0..colds(disks) {
                cold += u64::from(is_found(&fixture, &page("cold", number)).await);
            }
            assert!(cold * LENGTH as u64 <= disks * DISK && cold > 10, "{layout:?}: {cold}");
            let all = (0..HOT)
                .map(|number| ("hot", number))
                .chain((0..colds(disks)).map(|number| ("cold", number)));
            for (kind, number) in all {
                fixture.store.invalidate(&page(kind, number).key(), 7);
            }
            fixture.settle();
            wait(&fixture, |usage| (usage.objects, usage.bytes) == (0, 0) && usage.segments <= 2);
        }
    });
}

#[test]
fn pieces_of_a_body_on_another_disk_are_not_taken_for_dead() {
    run(async || {
        let fixture = Fixture::new(Kind::Disks(Layout::Stripe, 2), SIZES);
        // The oldest segments of both disks, of which nothing will be left.
        for number in 0..8 {
            put(&fixture, &page("gone", number)).await;
        }
        let large = Page::new("/large", 1, 7 << 20);
        put(&fixture, &large).await;
        for number in 0..8 {
            fixture.store.invalidate(&page("gone", number).key(), 7);
        }
        wait(&fixture, |usage| usage.reclaimed_segments > 0);
        assert!(is_found(&fixture, &large).await);
        assert_eq!(usage(&fixture).iter().map(|usage| usage.objects).sum::<u64>(), 1);
    });
}

#[test]
fn who_has_begun_to_read_reads_to_the_end_whatever_is_given_up() {
    run(async || {
        for (layout, count) in ALL {
            let fixture = Fixture::new(Kind::Disks(layout, count), SIZES);
            let slow = Page::new("/slow", 1, 2_000_000);
            put(&fixture, &slow).await;
            let found = fixture.find(&slow.key(), None).await.unwrap();
            let Some(Body::Stream { mut stream, .. }) = found.stored.body.content(0..2_000_000) else {
                panic!("{layout:?}: in memory")
            };
            let mut read = stream.frame().await.unwrap().unwrap().into_data().unwrap().to_vec();
            // Nobody asks for it again: it goes, from whichever disk first.
            for cold in 0..colds(count as u64) {
                fixture.put(&page("cold", cold), 0).await;
                fixture.settle();
            }
            assert!(
                usage(&fixture).iter().all(|usage| usage.reclaimed_segments > 10),
                "{:?}",
                usage(&fixture)
            );
            assert!(fixture.find(&slow.key(), None).await.is_none(), "{layout:?}");
            read.extend_from_slice(&stream.collect().await.unwrap().to_bytes());
            assert!(read == slow.body(), "{layout:?}: another body");
            fixture.check_caps();
        }
    });
}

#[test]
fn a_body_in_use_is_whole_after_a_crash_or_missed() {
    run(async || {
        let mut fixture = Fixture::new(Kind::Disks(Layout::Stripe, 2), SIZES);
        let mut found = 0;
        for round in 0..6 {
            for number in 0..HOT {
                put(&fixture, &page("hot", number)).await;
            }
            for cold in 0..60 {
                assert!(fixture.put(&page("cold", round * 100 + cold), 0).await);
                if cold % 3 == 0 {
                    is_found(&fixture, &page("hot", cold % HOT)).await;
                }
                if cold % 4 == 0 {
                    fixture.settle();
                }
            }
            // In the midst of writing again.
            fixture.crash();
            for number in 0..HOT {
                found += u64::from(is_found(&fixture, &page("hot", number)).await);
            }
        }
        assert!(found > 6, "{found} found prove little");
    });
}
