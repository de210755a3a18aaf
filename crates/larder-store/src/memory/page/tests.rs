#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::super::tests::{head, key, request, response, store};
use super::*;

/// What a walk holds the lock of a shard for.
const SLICE: usize = 256;

/// One of many keys of one base; they lie in one shard.
fn variant(number: u32) -> CacheKey {
    let mut key = key("/a");
    key.push_part(&number.to_le_bytes());
    key
}

fn with_variants(count: u32) -> std::sync::Arc<MemoryStore> {
    let store = store(64 << 20);
    for number in 0..count {
        let response = response(&store, &variant(number), head(&request(&[]), None), 10).unwrap();
        assert!(store.insert(&variant(number), response, |_| true, || true));
    }
    store
}

fn keys(found: &Lying) -> BTreeSet<Vec<u8>> {
    found.iter().map(|(key, _)| key.bytes().to_vec()).collect()
}

#[test]
fn a_listing_meets_each_response_once_a_slice_at_a_time() {
    let store = with_variants(1000);
    let expected: BTreeSet<_> = (0..1000).map(|number| variant(number).bytes().to_vec()).collect();
    let (mut found, mut from) = (Lying::new(), Some(MemoryCursor::default()));
    while let Some(start) = from {
        let (mut page, next) = store.page(start, usize::MAX, &|_| true);
        assert!(page.len() <= SLICE);
        found.append(&mut page);
        from = next;
    }
    assert!(found.len() == 1000 && keys(&found) == expected);
    let found = store.under(&variant(0));
    assert!(found.len() == 1000 && keys(&found) == expected);
}

#[test]
fn what_stays_under_a_url_is_listed_once_although_others_go_between_two_slices() {
    let store = with_variants(1000);
    let counted = store.counted(variant(0).hash());
    let (mut found, mut met, mut rest, mut gone) = (Lying::new(), HashSet::new(), Some(usize::MAX), 0);
    while let Some(end) = rest {
        let (mut slice, next) = counted.shard.read().under(&variant(0), end, &mut met);
        assert!(slice.len() <= SLICE);
        found.append(&mut slice);
        rest = next;
        // So many that those left move to the front together.
        for number in (gone..gone + 300).filter(|number| number % 3 > 0) {
            store.discard(&variant(number), |_| true);
        }
        gone += 300;
    }
    let listed = keys(&found);
    assert_eq!(listed.len(), found.len(), "some were met twice");
    assert!((0..1000).step_by(3).all(|number| listed.contains(variant(number).bytes())));
}
