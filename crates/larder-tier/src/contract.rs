//! What every tier must do, as behaviours that each tier's own tests run.
//!
//! In: a tier that was just made, and responses that it takes ([`Subject`]). Out: a panic where one of them does not hold. A
//! behaviour asks for nothing but the traits, so that a tier of another kind can be held against them too. What a store makes of
//! its tiers is tested with the store. Behind the feature `contract`, which tests alone switch on.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(clippy::expect_used, clippy::missing_panics_doc)]

use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use http_body::Body;
use larder_http::time::Now;

use crate::fill::{CHUNK_BYTES, Fill, Offered, StoredChunk};
use crate::key::CacheKey;
use crate::source::BodySource;
use crate::tier::Tier;
use crate::uri::TargetUri;
use crate::vocabulary::Vocabulary;

/// A tier under test, which is empty and takes bodies of 1 MiB.
pub struct Subject<V: Vocabulary> {
    /// The tier.
    pub tier: Arc<dyn Tier<V>>,
    /// The head of a response that it keeps.
    pub head: V::Head,
    /// The time.
    pub now: Now,
}

/// Runs all of them.
///
/// # Panics
/// One does not hold.
pub async fn run<V: Vocabulary>(subject: &Subject<V>) {
    a_tier_takes_what_it_keeps_and_says_where(subject);
    what_is_taken_is_read_at_once_and_at_its_end(subject).await;
    a_fill_that_is_dropped_leaves_nothing(subject);
    what_is_too_large_is_not_taken(subject);
    a_page_begins_at_the_beginning_and_at_nothing_else(subject);
    a_base_without_anything_is_invalidated_without_harm(subject);
}

fn key(path: &str) -> CacheKey {
    let mut key = CacheKey::new("example.com", path);
    key.push_part(b"http");
    key
}

fn content(length: usize) -> Bytes {
    (0..length).map(|at| (at % 251) as u8 ^ (at / CHUNK_BYTES) as u8).collect()
}

/// Offers all of it, and waits for room where there is none.
async fn offer(fill: &mut dyn Fill, content: &Bytes) -> Vec<Arc<dyn StoredChunk>> {
    let mut chunks = Vec::new();
    for (number, start) in (0..content.len()).step_by(CHUNK_BYTES).enumerate() {
        let chunk = content.slice(start..content.len().min(start + CHUNK_BYTES));
        loop {
            match fill.offer(number, &chunk) {
                Offered::Taken(taken) => break chunks.push(taken),
                Offered::Full => {
                    // Once more after somebody else had a turn.
                    let mut has_waited = false;
                    poll_fn(|cx| {
                        cx.waker().wake_by_ref();
                        match std::mem::replace(&mut has_waited, true) {
                            true => std::task::Poll::Ready(()),
                            false => std::task::Poll::Pending,
                        }
                    })
                    .await;
                }
                Offered::Lost(why) => panic!("chunk {number} is lost: {why:?}"),
            }
        }
    }
    chunks
}

async fn read(source: &Arc<dyn BodySource>, range: Range<u64>) -> Vec<u8> {
    let mut stream = Arc::clone(source).reader(range).expect("what is there can be read");
    let mut got = Vec::new();
    while let Some(frame) = poll_fn(|cx| Body::poll_frame(stream.as_mut(), cx)).await {
        let data = frame.expect("nobody has changed it").into_data();
        got.extend_from_slice(&data.unwrap_or_default());
    }
    got
}

fn a_tier_takes_what_it_keeps_and_says_where<V: Vocabulary>(subject: &Subject<V>) {
    let tier = &subject.tier;
    assert!(tier.takes(&key("/a"), Some(&subject.head)));
    let figures: Vec<_> = tier.figures().into_iter().map(|figures| figures.path).collect();
    assert!(!figures.is_empty() && figures == tier.directories(), "{figures:?}");
    assert!(tier.figures().iter().all(|figures| !figures.is_failing && figures.objects == 0));
    assert_eq!(tier.would_hold_back(&key("/a"), &subject.head), None);
    assert_eq!(tier.take_event("store"), None);
    assert!(tier.findings().is_empty() && !tier.is_behind());
}

async fn what_is_taken_is_read_at_once_and_at_its_end<V: Vocabulary>(subject: &Subject<V>) {
    for (number, length) in [CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 2 * CHUNK_BYTES + 7].into_iter().enumerate() {
        let (key, content) = (key(&format!("/taken/{number}")), content(length));
        let fill = Arc::clone(&subject.tier).begin_fill(&key, Some(length as u64));
        let mut fill = fill.expect("it takes what it keeps");
        let chunks = offer(&mut *fill, &content).await;
        for (number, chunk) in chunks.iter().enumerate() {
            for within in [0, 1, CHUNK_BYTES / 2] {
                let from = number * CHUNK_BYTES + within;
                if from < length {
                    let got = Arc::clone(chunk).read(within).await.expect("a chunk that was taken is there");
                    assert!(
                        !got.is_empty() && content[from..].starts_with(&got),
                        "{length}: {number}, {within}"
                    );
                }
            }
        }
        let body = fill.finish().expect("all of it was taken");
        assert!(body.is_there() && !body.has_moved() && !body.is_by_hand());
        assert_eq!(body.length(), length as u64);
        for range in [0..length, 5..length - 1, CHUNK_BYTES - 1..CHUNK_BYTES + 1, length - 1..length] {
            let got = read(&body, range.start as u64..range.end as u64).await;
            assert!(got == content[range.clone()], "{length}: {range:?}");
        }
    }
}

fn a_fill_that_is_dropped_leaves_nothing<V: Vocabulary>(subject: &Subject<V>) {
    let (key, tier) = (key("/dropped"), &subject.tier);
    let mut fill = Arc::clone(tier).begin_fill(&key, Some(2 * CHUNK_BYTES as u64)).expect("it is taken");
    assert!(!matches!(fill.offer(0, &content(CHUNK_BYTES)), Offered::Lost(_)));
    drop(fill);
    assert!(!tier.has(&key));
    assert!(TargetUri::of_key(&key).is_none_or(|uri| !tier.has_apart(&uri)));
    assert!(Arc::clone(tier).under(&key, subject.now).is_empty());
}

fn what_is_too_large_is_not_taken<V: Vocabulary>(subject: &Subject<V>) {
    let length = subject.tier.max_object() + 1;
    assert!(Arc::clone(&subject.tier).begin_fill(&key("/large"), Some(length)).is_none());
}

fn a_page_begins_at_the_beginning_and_at_nothing_else<V: Vocabulary>(subject: &Subject<V>) {
    let tier = &subject.tier;
    let page = Arc::clone(tier).page(&tier.first_page(), 10, subject.now, &|_| true);
    let page = page.expect("the first page has a cursor");
    assert!(page.entries.is_empty() && page.unreadable == 0);
    for text in ["", "-", "x", "0-x"] {
        assert!(Arc::clone(tier).page(text, 10, subject.now, &|_| true).is_err(), "{text:?}");
    }
}

fn a_base_without_anything_is_invalidated_without_harm<V: Vocabulary>(subject: &Subject<V>) {
    let (key, tier) = (key("/none"), &subject.tier);
    assert_eq!(tier.take_out(&key, 1), 0);
    tier.write_journals();
    tier.invalidate_behind(&key, 1, false);
    tier.remove(&key, 7);
    tier.forget(&key, 7);
    assert!(!tier.has(&key) && tier.folders_of(&key, 7).is_empty() && !tier.lists(&key, 7));
    assert_eq!(tier.take_event("store"), None);
}
