//! Disks that fail while they are in use, and work again.
//!
//! A disk fails by the folder that it lies in: while that is away no segment can be made, which holds for root as well. A disk
//! that fails goes on hearing of everything, so that it is used again as it is.

use super::absent::{LAYOUTS, NEWER, Shelf, length, lengths, store};
use super::*;

/// Whatever a layout does about a disk that fails, it has to find out that the disk works again: by writing to it.
#[test]
fn a_disk_that_failed_is_used_again_when_it_works() {
    for (layout, count) in LAYOUTS {
        let shelf = Shelf::new(layout, count);
        let disks = shelf.open();
        let store = store(&disks);
        let usage = || disks.usage().0[0].1;
        let mut number = 0;
        let mut keep_until = |is_enough: &dyn Fn() -> bool| {
            let until = Instant::now() + Duration::from_secs(20);
            while !is_enough() {
                assert!(Instant::now() < until, "{layout:?}: {:?}", usage());
                keep(&store, &path(number), CHUNK_BYTES);
                number += 1;
                written(&disks);
            }
        };
        keep_until(&|| usage().written_objects > 2);
        // No segment can be made any more.
        shelf.take_away();
        keep_until(&|| usage().is_failing);
        shelf.bring_back();
        let before = usage().written_objects;
        keep_until(&|| usage().written_objects > before + 2);
        assert!(!usage().is_failing, "{layout:?}");
    }
}

/// A disk that failed hears of everything meanwhile: its index is there.
#[test]
fn what_was_replaced_while_a_disk_of_a_mirror_failed_is_not_served_from_it() {
    let shelf = Shelf::new(Layout::Mirror, 2);
    let disks = shelf.open();
    let store = store(&disks);
    for number in 0..20 {
        keep(&store, &path(number), length(number));
        written(&disks);
    }
    let usage = || disks.usage().0[0].1;
    let keep_until = |is_enough: &dyn Fn() -> bool| {
        let until = Instant::now() + Duration::from_secs(20);
        while !is_enough() {
            assert!(Instant::now() < until, "{:?}", usage());
            // The other disk does not have room for all that could be kept in a second.
            if disks.is_working_at(0) {
                keep(&store, "/other", CHUNK_BYTES);
            }
            written(&disks);
        }
    };
    shelf.take_away();
    keep_until(&|| usage().is_failing);
    for number in [3, 13] {
        keep(&store, &path(number), NEWER);
    }
    store.invalidate(&key("/5"), 1);
    written(&disks);
    let at = disks.disk(0).unwrap().address(&key("/3"));
    assert!(disks.disk(0).unwrap().find(&at).is_empty(), "the disk has not taken it");
    shelf.bring_back();
    let before = usage().written_objects;
    keep_until(&|| usage().written_objects > before);
    let check = |disks: &Arc<Disks>| {
        for (number, found) in lengths(disks).into_iter().enumerate() {
            let expected = match number {
                3 | 13 => Some(NEWER),
                5 => None,
                _ => Some(length(number)),
            };
            assert_eq!(found, expected, "{number}");
        }
    };
    check(&disks);
    disks.close();
    drop((store, disks));
    check(&shelf.open());
}
