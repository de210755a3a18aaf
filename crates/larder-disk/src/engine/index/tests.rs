//! The index alone: what is found, what is forgotten, what it weighs.

use super::super::address::Seed;
use super::*;

fn place(k: u64) -> Location {
    Location::written((k / 60_000) as u32 + 1, k % 60_000 * 1024, 1024)
}

/// Spread like the hashes it stands for.
fn base(k: u64) -> u64 {
    Seed([7, 9]).base(&k.to_le_bytes())
}

#[test]
fn an_entry_is_24_bytes_and_an_object_at_most_64_at_any_time() {
    assert_eq!(size_of::<Entry>(), 24);
    let index = Index::new(4 << 30);
    for k in 0..1_000_000 {
        index.insert_pending(base(k), 0, Location::pending(k), 0, |_| (), &mut Locations::new());
        assert!(index.settle(base(k), Location::pending(k), place(k)));
        // A shard's least table is larger than what the first objects may cost.
        if k > 20_000 && (k % 10_000 == 0 || (k & (k - 1)) == 0) {
            let each = index.memory_bytes() / (k + 1);
            assert!(each <= 64, "{each} bytes per object at {k}");
        }
    }
    let (objects, _) = index.objects();
    assert_eq!(objects, 1_000_000);
    for k in 0..970_000 {
        assert!(index.remove(base(k), place(k)));
        if k % 10_000 == 0 {
            let left = 1_000_000 - k - 1;
            let each = index.memory_bytes() / left;
            assert!(each <= 64, "{each} bytes per object with {left} left");
        }
    }
}

#[test]
fn an_object_of_the_same_identity_replaces_and_others_stay() {
    let index = Index::new(1 << 30);
    let at = Address { base: 1, variant: 2 };
    let put = |identity, k| {
        let replaced =
            index.insert_pending(1, at.tag(identity), Location::pending(k), 0, |_| (), &mut Locations::new());
        index.settle(1, Location::pending(k), place(k));
        replaced
    };
    assert_eq!(put(5, 1), None);
    assert_eq!(put(6, 2), None);
    assert_eq!(put(5, 3), Some(place(1)));
    assert_eq!(index.find(&at).as_slice(), [place(3), place(2)]);
    assert!(index.find(&Address { base: 1, variant: 3 }).is_empty());
    assert_eq!(index.remove_base(1).len(), 2);
    assert_eq!(index.objects(), (0, 0));
}

#[test]
fn a_base_has_at_most_so_many_and_the_oldest_go() {
    let index = Index::new(1 << 30);
    let mut gone = Vec::new();
    for k in 0..2000_u64 {
        let mut surplus = Locations::new();
        let tag = Address { base: 1, variant: k as u16 }.tag(0);
        assert_eq!(index.insert_pending(1, tag, Location::pending(k), 0, |_| (), &mut surplus), None);
        assert!(index.settle(1, Location::pending(k), place(k)));
        gone.extend(surplus);
    }
    assert_eq!(gone, (0..2000 - UNDER_ONE_BASE_MAX as u64).map(place).collect::<Vec<_>>());
    assert_eq!(index.objects().0, UNDER_ONE_BASE_MAX as u64);
    assert_eq!(index.remove_base(1).len(), UNDER_ONE_BASE_MAX);
    assert_eq!(index.objects(), (0, 0));
}

#[test]
fn what_was_taken_out_while_it_was_pending_does_not_settle() {
    let index = Index::new(1 << 30);
    index.insert_pending(1, 0, Location::pending(1), 0, |_| (), &mut Locations::new());
    assert_eq!(index.remove_base(1).len(), 1);
    assert!(!index.settle(1, Location::pending(1), place(1)));
    assert_eq!(index.pending(), 0);
}

#[test]
fn recovery_keeps_the_latest_place_dead_or_alive() {
    let index = Index::new(1 << 30);
    let record = |base, k, is_dead| RecoveredRecord { base, tag: 0, place: place(k), is_dead };
    index.recover(vec![record(1, 2, false), record(2, 4, true), record(3, 5, false)]);
    index.recover(vec![record(1, 1, false), record(2, 3, false)]);
    let live = index.finish_recovery(|removed| removed == place(5));
    assert_eq!(live.into_iter().collect::<Vec<_>>(), [(1, 1)]);
    assert_eq!(index.of_base(1).as_slice(), [place(2)]);
    assert_eq!(index.objects().0, 1);
}

#[test]
fn a_listing_shows_each_once() {
    let index = Index::new(1 << 30);
    for k in 0..1000 {
        index.insert_pending(base(k), 0, Location::pending(k), 0, |_| (), &mut Locations::new());
        index.settle(base(k), Location::pending(k), place(k));
    }
    let (mut all, mut from) = (Vec::new(), None);
    loop {
        let page = index.list(from, 7);
        assert!(page.places.len() <= 7);
        all.extend(page.places);
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    all.sort_unstable();
    assert_eq!(all, (0..1000).map(place).collect::<Vec<_>>());
}

#[test]
fn a_sweep_takes_what_was_not_used_and_use_is_known_for_one_life() {
    let index = Index::new(1 << 30);
    for k in 0..2 {
        index.insert_pending(k << 40, 0, Location::pending(k), 10, |_| (), &mut Locations::new());
        index.settle(k << 40, Location::pending(k), place(k));
    }
    index.note_use(1 << 40, place(1), 20);
    assert_eq!(index.was_used(1 << 40, place(1)), Some(true));
    assert!(index.settle(1 << 40, place(1), place(9)));
    assert_eq!(index.was_used(1 << 40, place(9)), Some(false));
    let gone: Vec<Location> = (0..index.shards()).flat_map(|shard| index.sweep(shard, 15)).collect();
    assert_eq!(gone, [place(0)]);
    assert!(index.holds(1 << 40, place(9)));
}

/// Spread like hashes, and all in the first shard.
fn base_in_one_shard(k: u64) -> u64 {
    base(k) & !((SHARDS_MAX - 1) << 40)
}

#[test]
fn a_walk_through_a_large_shard_looks_at_256_entries_at_a_time_and_misses_none() {
    let index = Index::new(1 << 30);
    for k in 0..5000 {
        let used = if k < 2000 { 10 } else { 20 };
        let base = base_in_one_shard(k);
        index.insert_pending(base, 0, Location::pending(k), used, |_| (), &mut Locations::new());
        index.settle(base, Location::pending(k), place(k));
    }
    let (mut slices, mut from) = (0, Some(0));
    while let Some(start) = from {
        let shard = index.shards[0].read();
        let (slice, next) = shard.slice(start);
        assert!(slice.len() <= 256);
        slices += 1;
        from = next;
    }
    assert!(slices > 5000 / 256, "{slices}");
    let (mut all, mut from) = (Vec::new(), None);
    loop {
        let page = index.list(from, 97);
        all.extend(page.places);
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert!(all.is_sorted() && all == (0..5000).map(place).collect::<Vec<_>>());
    let mut gone = index.sweep(0, 15);
    gone.sort_unstable();
    assert_eq!(gone, (0..2000).map(place).collect::<Vec<_>>());
    assert_eq!(index.objects().0, 3000);
}

#[test]
fn entries_stay_in_their_buckets_until_a_rebuild_is_counted() {
    let mut shard = Shard::default();
    let bucket = |shard: &Shard, k| shard.entries.find_bucket_index(base(k), |entry| entry.base == base(k));
    let (mut rebuilds, mut moves) = (0, 0);
    for k in 0..30_000 {
        let before: Vec<_> = (0..20).map(|old| bucket(&shard, old)).collect();
        shard.insert(Entry::new(base(k), 0, place(k), 0));
        // Those in the middle go, so that the table is also rebuilt in its place, and shrunk in the end.
        if k > 3000 {
            let gone = base(k - 2000);
            if let Ok(found) = shard.entries.find_entry(gone, |entry| entry.base == gone) {
                found.remove();
            }
        }
        if k == 29_999 {
            shard.entries.retain(|entry| (0..20).any(|old| base(old) == entry.base));
            shard.shrink();
        }
        let has_moved =
            (0..20).zip(before).any(|(old, before)| before.is_some() && bucket(&shard, old) != before);
        assert!(!has_moved || shard.rebuilds > rebuilds, "{k}");
        moves += u64::from(has_moved);
        rebuilds = shard.rebuilds;
    }
    assert!(moves > 5, "{moves}");
}
