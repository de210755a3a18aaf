//! The cap, what goes to keep it, and what stays.

use super::*;

/// Puts objects of 20 kB in, as many as `total` bytes take, calling `each` for every one.
fn flood(disk: &Arc<Disk>, from: u64, total: u64, mut each: impl FnMut(u64)) {
    for k in from..from + total / 20_000 {
        disk.put(object(k, 1, inline(k, 20_000))).unwrap();
        if k % 50 == 0 {
            settled(disk);
        }
        each(k);
    }
    settled(disk);
}

#[test]
fn the_cap_holds_at_every_moment_and_the_newest_stay() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 16 * MIB);
    flood(&disk, 0, 60 * MIB, |_| {
        assert!(taken(folder.path()) <= 16 * MIB, "{:?}", disk.usage());
    });
    let usage = disk.usage();
    assert!(usage.high_water_bytes <= 16 * MIB, "{usage:?}");
    assert!(usage.allocated_bytes > 10 * MIB, "most of it is used: {usage:?}");
    assert!(usage.reclaimed_segments > 30 && usage.dropped_objects > 1000, "{usage:?}");
    let last = 60 * MIB / 20_000 - 1;
    assert!((last - 300..=last).all(|k| look(&disk, k).is_some()));
    assert_eq!(look(&disk, 0), None);
    assert_eq!(usage.damaged, 0);
    disk.close();
    let usage = disk.usage();
    drop(disk);
    let disk = open(folder.path(), 16 * MIB);
    let again = disk.usage();
    assert_eq!((again.objects, disk.findings()), (usage.objects, &[][..]));
    assert!(again.allocated_bytes <= 16 * MIB);
}

#[test]
fn what_is_in_use_gets_another_life_and_its_pieces_too() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 16 * MIB);
    disk.put(object(1_000_000, 7, inline(1, 5000))).unwrap();
    let parts = pieces(&disk, 1_000_001, 2, 300_000).unwrap();
    disk.put(object(1_000_001, 8, RecordContent::Pieces(parts))).unwrap();
    disk.put(object(1_000_002, 9, inline(3, 5000))).unwrap();
    flood(&disk, 0, 60 * MIB, |_| {
        for k in [1_000_000, 1_000_001] {
            let at = disk.address(&key(k));
            disk.find(&at).iter().for_each(|place| disk.note_use(&at, *place));
        }
    });
    assert!(disk.usage().rescued_objects > 4, "{:?}", disk.usage());
    let check = |disk: &Arc<Disk>| {
        assert_eq!(look(disk, 1_000_000), Some((7, bytes_of(1, 5000))));
        assert_eq!(look(disk, 1_000_001), Some((8, bytes_of(2, 300_000))));
        assert_eq!(look(disk, 1_000_002), None);
    };
    check(&disk);
    disk.kill();
    drop(disk);
    check(&open(folder.path(), 16 * MIB));
}

#[test]
fn a_large_object_goes_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 16 * MIB);
    for k in 0..40 {
        let parts = pieces(&disk, k, k, 1_500_000).unwrap();
        disk.put(object(k, 1, RecordContent::Pieces(parts))).unwrap();
        settled(&disk);
    }
    let objects = disk.usage().objects;
    let found: Vec<u64> = (0..40).filter(|k| look(&disk, *k).is_some()).collect();
    assert_eq!(objects, found.len() as u64, "none is in the index that cannot be read");
    assert!(found.len() >= 4 && found.contains(&39), "{found:?}");
    let usage = disk.usage();
    assert!(usage.high_water_bytes <= 16 * MIB && usage.damaged == 0, "{usage:?}");
}

#[test]
fn a_pinned_segment_stays_readable_and_counts_until_it_is_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 16 * MIB);
    let mut pins = Vec::new();
    let (mut k, mut first) = (0, None);
    // Everything is being read: sooner or later there is no room for more.
    while k < 100 && !disk.shared.health.is_without_room() {
        let Ok(parts) = pieces(&disk, k, k, 500_000) else { break };
        settled(&disk);
        pins.extend(parts.iter().filter_map(|piece| disk.pin(piece)));
        first = first.or_else(|| parts.first().cloned());
        let _ = disk.put(object(k, 1, RecordContent::Pieces(parts)));
        settled(&disk);
        k += 1;
        assert!(disk.usage().high_water_bytes <= 16 * MIB);
    }
    assert!(k < 100, "the cap cannot hold and everything be kept");
    assert_eq!(disk.take_event(), Some(DiskEvent::NoRoom));
    assert_eq!(disk.put(object(7, 1, inline(7, 10))), Err(Refused::NoRoom));
    drop(pins);
    wait(|| !disk.shared.health.is_without_room());
    disk.put(object(7, 1, inline(7, 10))).unwrap();
    settled(&disk);
    assert_eq!(look(&disk, 7), Some((1, bytes_of(7, 10))));
    assert_eq!(read_piece(&disk, &first.unwrap()), Err(ReadError::Gone));
}

#[test]
fn a_body_that_arrives_for_long_keeps_its_pieces_although_no_record_lists_them_yet() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 16 * MIB);
    let segments = |disk: &Disk| disk.usage().segments;
    // Something older, so that the moment shows in which empty segments are given up.
    let first = pieces(&disk, 1, 1, 300_000).unwrap();
    disk.put(object(1, 1, RecordContent::Pieces(first))).unwrap();
    settled(&disk);
    while segments(&disk) < 2 {
        disk.put(object(1, 1, inline(1, 5000))).unwrap();
        settled(&disk);
    }
    let (mut arriving, mut pins, begun) = (Vec::new(), Vec::new(), segments(&disk));
    while segments(&disk) < begun + 3 {
        let piece = disk.put_piece(&key(2), bytes_of(arriving.len() as u64, PIECE_BYTES_MAX)).unwrap();
        pins.extend(disk.pin(&piece));
        arriving.push(piece);
        settled(&disk);
    }
    let places = disk.find(&disk.address(&key(1)));
    places.into_iter().for_each(|place| disk.remove(&disk.address(&key(1)), place));
    wait(|| disk.usage().reclaimed_segments > 0);
    disk.put(object(2, 2, RecordContent::Pieces(arriving.clone()))).unwrap();
    settled(&disk);
    drop(pins);
    assert_eq!(disk.find(&disk.address(&key(2))).len(), 1, "{:?}", disk.usage());
    for (number, piece) in arriving.iter().enumerate() {
        assert_eq!(read_piece(&disk, piece).unwrap(), bytes_of(number as u64, PIECE_BYTES_MAX));
    }
}

#[test]
fn a_queue_that_is_full_refuses_and_what_was_there_before_goes() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    disk.put(object(1, 1, inline(1, 100))).unwrap();
    settled(&disk);
    let mut pieces = Vec::new();
    let refused = loop {
        match disk.put_piece(&key(2), bytes_of(1, PIECE_BYTES_MAX)) {
            Ok(piece) => pieces.push(piece),
            Err(why) => break why,
        }
        assert!(disk.usage().queued_bytes <= 8 * MIB);
        assert!(pieces.len() < 10_000, "the writer is faster than memory");
    };
    assert_eq!(refused, Refused::QueueFull);
    // One that is refused as well, since the queue is still full.
    let big = object(1, 2, inline(2, INLINE_BYTES_MAX));
    if disk.put(big) == Err(Refused::QueueFull) {
        assert!(disk.find(&disk.address(&key(1))).is_empty(), "a store does not go back");
    }
    settled(&disk);
    assert!(disk.usage().refused.of(RefusalReason::QueueFull) >= 1);
}

#[test]
fn what_is_too_large_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 16 * MIB);
    assert_eq!(disk.put(object(1, 1, inline(1, INLINE_BYTES_MAX + 1))), Err(Refused::TooLarge));
    assert!(disk.put_piece(&key(1), bytes_of(1, PIECE_BYTES_MAX + 1)).is_err());
    let head = bytes_of(1, 600_000);
    assert_eq!(disk.put(Object { head, ..object(1, 1, inline(1, 1)) }), Err(Refused::TooLarge));
}

#[test]
fn a_smaller_size_gives_up_the_oldest_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 32 * MIB);
    flood(&disk, 0, 25 * MIB, |_| ());
    disk.close();
    drop(disk);
    let disk = open(folder.path(), 12 * MIB);
    let usage = disk.usage();
    assert!(usage.allocated_bytes <= 12 * MIB && usage.objects > 200, "{usage:?}");
    assert!(taken(folder.path()) <= 12 * MIB);
    flood(&disk, 10_000, 25 * MIB, |_| assert!(taken(folder.path()) <= 12 * MIB));
}

#[test]
fn what_nobody_asks_for_goes_and_its_segments_too() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Clock::default();
    let idle = Some(Duration::from_secs(640));
    let disk =
        Disk::open_with(DiskSettings { idle, ..settings(folder.path(), 16 * MIB) }, clock.clone()).unwrap();
    flood(&disk, 0, 8 * MIB, |_| ());
    clock.advance(Duration::from_secs(600));
    let at = disk.address(&key(5));
    disk.note_use(&at, disk.find(&at)[0]);
    clock.advance(Duration::from_secs(100));
    wait(|| disk.usage().objects == 1);
    assert_eq!(look(&disk, 5), Some((1, bytes_of(5, 20_000))));
    clock.advance(Duration::from_secs(1300));
    wait(|| disk.usage().objects == 0 && disk.usage().allocated_bytes < 4 * MIB);
}

#[test]
fn a_long_journal_is_made_short_and_what_it_said_still_holds() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 16 * MIB);
    flood(&disk, 0, 6 * MIB, |_| ());
    for k in 0..100 {
        disk.invalidate(&disk.address(&key(k)), 5);
    }
    let at = disk.address(&key(100));
    disk.remove(&at, disk.find(&at)[0]);
    // In the segment that is still open.
    disk.invalidate(&disk.address(&key(6 * MIB / 20_000 - 1)), 5);
    disk.note(&note(6, b"kept"));
    for round in 0..5 {
        for k in 0..3000 {
            disk.invalidate(&disk.address(&key(1_000_000 + k)), 10 + round);
        }
        wait(|| !disk.shared.journal.is_long());
        disk.put(object(200 + round, 20, inline(round, 50))).unwrap();
    }
    block_on(disk.sync_journal()).unwrap();
    wait(|| disk.usage().journal_bytes < 100_000);
    settled(&disk);
    disk.kill();
    drop(disk);
    let disk = open(folder.path(), 16 * MIB);
    assert_eq!(disk.findings(), []);
    assert!((0..=100).all(|k| look(&disk, k).is_none()));
    assert_eq!(look(&disk, 6 * MIB / 20_000 - 1), None);
    assert!((101..200).all(|k| look(&disk, k).is_some()));
    assert!((0..5).all(|round| look(&disk, 200 + round) == Some((20, bytes_of(round, 50)))));
    assert_eq!(disk.notes(), [note(6, b"kept")]);
    assert_eq!(disk.last_number(), 20);
    // And where a table that is needed now is damaged, its dead stay dead.
    disk.kill();
    drop(disk);
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "toc") {
            std::fs::write(path, b"damaged").unwrap();
        }
    }
    let disk = open(folder.path(), 16 * MIB);
    assert!((0..=100).all(|k| look(&disk, k).is_none()));
}

#[test]
fn a_disk_that_may_have_fewer_files_than_segments_open_finds_everything() {
    let folder = tempfile::tempdir().unwrap();
    let few = DiskSettings { files: FilesMax::new(0), ..settings(folder.path(), 32 * MIB) };
    let opened = |disk: &Arc<Disk>| disk.shared.handles.count();
    let disk = Disk::open(few.clone()).unwrap();
    let all = 24 * MIB / 20_000;
    let most = FilesMax::LEAST;
    flood(&disk, 0, 24 * MIB, |_| assert!(opened(&disk) < most, "{}", opened(&disk)));
    let check = |disk: &Arc<Disk>| {
        for k in (0..all).step_by(7) {
            assert_eq!(look(disk, k), Some((1, bytes_of(k, 20_000))), "{k}");
            assert!(opened(disk) < most, "{}", opened(disk));
        }
    };
    assert!(disk.usage().segments > 10, "{:?}", disk.usage());
    check(&disk);
    disk.close();
    drop(disk);
    let mut again = Disk::open(few.clone());
    wait(|| {
        if matches!(again, Err(DiskError::InUse(_))) {
            again = Disk::open(few.clone());
        }
        again.is_ok()
    });
    let disk = again.unwrap();
    assert!(disk.findings().is_empty() && opened(&disk) < most, "{:?}", disk.findings());
    check(&disk);
    // More, and fewer again.
    few.files.set(100);
    assert_eq!((disk.usage().read_errors, disk.usage().damaged), (0, 0));
    check(&disk);
    // What is pinned is read after its segment was given up.
    let parts = pieces(&disk, 1_000_000, 2, 300_000).unwrap();
    settled(&disk);
    let pins: Vec<_> = parts.iter().map(|piece| disk.pin(piece).unwrap()).collect();
    few.files.set(0);
    flood(&disk, all, 64 * MIB, |_| ());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (piece, at) in parts.iter().zip((0..300_000).step_by(PIECE_BYTES_MAX)) {
        let bytes = runtime.block_on(disk.read_piece(piece)).unwrap();
        assert_eq!(bytes, bytes_of(2, 300_000).slice(at..300_000.min(at + PIECE_BYTES_MAX)));
    }
    drop(pins);
    disk.close();
}
