//! Joined bodies, and how often a refresh may begin.

use proptest::prelude::*;

use super::*;
use crate::memory::MemoryStore;
use crate::memory::MemoryStoreSettings;

fn store(memory: u64) -> Arc<MemoryStore> {
    MemoryStore::new(&MemoryStoreSettings { memory, max_object: memory })
}

fn body(store: &MemoryStore, pieces: Vec<Bytes>) -> StoredBody {
    let bytes: u64 = pieces.iter().map(|piece| piece.len() as u64 + PIECE_OVERHEAD_BYTES).sum();
    let room = store.reserve_free(bytes).unwrap_or_else(|| panic!("no room for {bytes} bytes"));
    StoredBody::new(pieces, room)
}

fn bytes_of(body: &StoredBody) -> Vec<u8> {
    body.pieces().iter().flat_map(|piece| piece.iter().copied()).collect()
}

/// What the pieces of `body` keep in memory that no other body holds: a piece that is the only one of its allocation.
fn are_all_its_own(body: &StoredBody) -> bool {
    body.pieces().iter().all(Bytes::is_unique)
}

#[test]
fn what_is_cut_keeps_nothing_else_in_memory() {
    let store = store(64 << 20);
    let mut kept = body(&store, vec![Bytes::from(vec![1; 256 * 1024])]);
    for _ in 0..1000 {
        let newer = body(&store, vec![Bytes::from(vec![2; 256 * 1024])]);
        let first = kept.length() - newer.length() + 1;
        let joined = StoredBody::joined(&store, &[(&kept, 0..first), (&newer, 0..newer.length())]);
        kept = joined.unwrap_or_else(|| panic!("there is room"));
    }
    assert_eq!(kept.length(), 256 * 1024 + 1000);
    assert!(are_all_its_own(&kept));
    assert!(kept.pieces().len() < 64, "{} pieces", kept.pieces().len());
    assert_eq!(store.usage().bytes, kept.length() + kept.pieces().len() as u64 * PIECE_OVERHEAD_BYTES);
}

#[test]
fn joining_evicts_nothing_and_needs_room() {
    let store = store(3000);
    let (a, b) = (body(&store, vec![vec![1; 1000].into()]), body(&store, vec![vec![2; 1000].into()]));
    assert!(StoredBody::joined(&store, &[(&a, 0..1000), (&b, 0..1000)]).is_none());
    assert!(StoredBody::joined(&store, &[(&a, 0..300), (&b, 0..200)]).is_some());
}

proptest! {
    #[test]
    fn a_joined_body_is_the_ranges_one_after_the_other(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 1..12),
        cuts in proptest::collection::vec((0..400_u64, 0..400_u64), 1..4),
    ) {
        let store = store(1 << 20);
        let whole: Vec<u8> = pieces.concat();
        let body = body(&store, pieces.into_iter().map(Bytes::from).collect());
        let length = body.length();
        let ranges: Vec<Range<u64>> = cuts.iter().map(|(a, b)| {
            let (a, b) = (a.min(&length), b.min(&length));
            *a.min(b)..*a.max(b)
        }).collect();
        let from: Vec<(&StoredBody, Range<u64>)> = ranges.iter().map(|range| (&body, range.clone())).collect();
        let joined = StoredBody::joined(&store, &from).map(|joined| bytes_of(&joined));
        let cut = |range: &Range<u64>| {
            whole[usize::try_from(range.start).unwrap_or(0)..usize::try_from(range.end).unwrap_or(0)].to_vec()
        };
        prop_assert_eq!(joined, Some(ranges.iter().flat_map(cut).collect()));
    }
}
