//! Bodies on their way into a tier.

use std::sync::Arc;

use super::life::{Life, content, offer, read};
use super::subject::Subject;
use crate::fill::{CHUNK_BYTES, Offered};
use crate::uri::TargetUri;

pub(super) async fn what_is_taken_is_read_at_once_and_at_its_end<S: Subject>(life: &Life<'_, S>) {
    for (number, length) in [CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 2 * CHUNK_BYTES + 7].into_iter().enumerate() {
        let (key, content) = (life.key(&format!("/taken/{number}")), content(0, length));
        let fill = Arc::clone(&life.tier).begin_fill(&key, Some(length as u64));
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

pub(super) fn a_fill_that_is_dropped_leaves_nothing<S: Subject>(life: &Life<'_, S>) {
    let (key, tier) = (life.key("/dropped"), &life.tier);
    let mut fill = Arc::clone(tier).begin_fill(&key, Some(2 * CHUNK_BYTES as u64)).expect("it is taken");
    assert!(!matches!(fill.offer(0, &content(0, CHUNK_BYTES)), Offered::Lost(_)));
    drop(fill);
    assert!(!tier.has(&key));
    assert!(TargetUri::of_key(&key).is_none_or(|uri| !tier.has_apart(&uri)));
    assert!(Arc::clone(tier).under(&key, life.subject.now()).is_empty());
}

pub(super) fn what_is_too_large_is_not_taken<S: Subject>(life: &Life<'_, S>) {
    let length = life.tier.max_object() + 1;
    assert!(Arc::clone(&life.tier).begin_fill(&life.key("/large"), Some(length)).is_none());
}
