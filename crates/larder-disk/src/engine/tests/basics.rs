//! What is put in is found, what is taken out is not, and a restart changes neither.

use super::*;
use crate::engine::sys::ReadMode;

#[test]
fn what_was_stored_is_found_also_after_a_restart_and_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    let id = disk.id();
    for k in 0..500 {
        disk.put(object(k, k + 1, inline(k, 1000 + k as usize))).unwrap();
    }
    settled(&disk);
    let check = |disk: &Arc<Disk>| {
        for k in 0..500 {
            assert_eq!(look(disk, k), Some((k + 1, bytes_of(k, 1000 + k as usize))), "{k}");
        }
        assert_eq!(look(disk, 500), None);
        assert_eq!((disk.id(), disk.last_number(), disk.usage().objects), (id, 500, 500));
        assert_eq!(disk.findings(), []);
    };
    check(&disk);
    disk.kill();
    drop(disk);
    let disk = open(folder.path(), 64 * MIB);
    check(&disk);
    disk.close();
    drop(disk);
    let disk = open(folder.path(), 64 * MIB);
    check(&disk);
}

#[test]
fn a_large_content_is_stored_in_pieces_while_it_arrives() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    let length = 3 * MIB as usize + 17;
    let parts = pieces(&disk, 1, 5, length).unwrap();
    let read: Vec<Bytes> = parts.iter().map(|piece| read_piece(&disk, piece).unwrap()).collect();
    assert_eq!(read.concat(), bytes_of(5, length));
    assert_eq!(look(&disk, 1), None, "not before the record is there");
    disk.put(object(1, 9, RecordContent::Pieces(parts))).unwrap();
    settled(&disk);
    assert_eq!(look(&disk, 1), Some((9, bytes_of(5, length))));
    disk.kill();
    drop(disk);
    let disk = open(folder.path(), 64 * MIB);
    assert_eq!(look(&disk, 1), Some((9, bytes_of(5, length))));
}

#[test]
fn a_record_may_list_pieces_of_another_disk_and_waits_for_them() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let disks = folders.each_ref().map(|folder| open(folder.path(), 64 * MIB));
    let whole = bytes_of(3, 200_000);
    let parts: Vec<Piece> = (0..20)
        .map(|k| disks[k % 2].put_piece(&key(1), whole.slice(k * 10_000..(k + 1) * 10_000)).unwrap())
        .collect();
    disks[0].put(object(1, 1, RecordContent::Pieces(parts))).unwrap();
    disks.iter().for_each(|disk| settled(disk));
    disks.iter().for_each(|disk| settled(disk));
    let place = disks[0].find(&disks[0].address(&key(1)))[0];
    let FoundContent::Pieces(parts) = read(&disks[0], place).unwrap().content else { panic!("no pieces") };
    let read = parts.iter().map(|piece| {
        let disk = disks.iter().find(|disk| disk.id() == piece.disk()).unwrap();
        read_piece(disk, piece).unwrap()
    });
    assert_eq!(read.collect::<Vec<_>>().concat(), whole);
    assert_eq!(read_piece(&disks[0], &parts[1]), Err(ReadError::Gone), "of the other disk");
}

#[test]
fn a_piece_that_nobody_holds_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    // Something that keeps the writer busy, so that the pieces wait.
    for k in 0..20 {
        disk.put(object(k, 1, inline(k, 200_000))).unwrap();
    }
    let before = disk.usage();
    for _ in 0..8 {
        drop(disk.put_piece(&key(99), bytes_of(1, PIECE_BYTES_MAX)).unwrap());
    }
    settled(&disk);
    let written = disk.usage().written_bytes;
    assert!(written < 20 * 201_000 + 8 * PIECE_BYTES_MAX as u64, "{written} {before:?}");
}

#[test]
fn a_later_response_of_the_same_identity_replaces_and_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    let at = disk.address(&key(1));
    for (identity, number) in [(1, 10), (2, 20), (1, 30)] {
        disk.put(Object { identity, ..object(1, number, inline(number, 50)) }).unwrap();
    }
    settled(&disk);
    let numbers = |disk: &Arc<Disk>| -> Vec<u64> {
        disk.find(&at).iter().map(|place| read(disk, *place).unwrap().number).collect()
    };
    assert_eq!(numbers(&disk), [30, 20]);
    disk.kill();
    drop(disk);
    let disk = open(folder.path(), 64 * MIB);
    assert_eq!(numbers(&disk), [30, 20]);
}

#[test]
fn what_was_invalidated_or_removed_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut disk = open(folder.path(), 64 * MIB);
    for k in 0..30 {
        disk.put(object(k, 1, inline(k, 100))).unwrap();
    }
    settled(&disk);
    for k in 0..10 {
        assert_eq!(disk.invalidate(&disk.address(&key(k)), 5), 1);
    }
    for k in 10..20 {
        let at = disk.address(&key(k));
        let place = disk.find(&at)[0];
        disk.remove(&at, place);
        assert!(!disk.holds(&at, place));
    }
    // Taken out before it could be written.
    disk.put(object(40, 1, inline(40, 100))).unwrap();
    disk.invalidate(&disk.address(&key(40)), 6);
    block_on(disk.sync_journal()).unwrap();
    // Stored after the invalidation that took what was there before.
    disk.put(object(3, 7, inline(3, 100))).unwrap();
    settled(&disk);
    for _ in 0..3 {
        for k in 0..30 {
            let is_there = k >= 20 || k == 3;
            assert_eq!(look(&disk, k).is_some(), is_there, "{k}");
        }
        assert_eq!(look(&disk, 40), None);
        disk.kill();
        drop(disk);
        disk = open(folder.path(), 64 * MIB);
        assert_eq!(disk.last_number(), 7);
    }
}

#[test]
fn notes_are_handed_out_at_the_next_start_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    let (three, two) = (note(3, b"three"), note(2, b"two"));
    disk.note(&three);
    disk.note(&two);
    disk.kill();
    drop(disk);
    let disk = open(folder.path(), 64 * MIB);
    assert_eq!(disk.notes(), [two, three]);
    assert_eq!(disk.last_number(), 3);
}

#[test]
fn a_folder_is_open_once() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    assert!(matches!(Disk::open(settings(folder.path(), 64 * MIB)), Err(DiskError::InUse(_))));
    assert!(matches!(fsck(folder.path(), |_, _| ()), Err(DiskError::InUse(_))));
    disk.close();
    drop(disk);
    open(folder.path(), 64 * MIB);
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("larder"), b"my pantry").unwrap();
    assert!(matches!(Disk::open(settings(folder.path(), 64 * MIB)), Err(DiskError::NotOurs(_))));
    assert_eq!(std::fs::read(folder.path().join("larder")).unwrap(), b"my pantry");
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("notes.txt"), b"mine").unwrap();
    let disk = open(other.path(), 64 * MIB);
    assert_eq!(disk.findings(), [Finding::Foreign(other.path().join("notes.txt"))]);
}

#[test]
fn fsck_counts_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    for k in 0..50 {
        disk.put(object(k, 1, inline(k, 100))).unwrap();
    }
    let parts = pieces(&disk, 60, 1, 600_000).unwrap();
    disk.put(object(60, 1, RecordContent::Pieces(parts))).unwrap();
    disk.invalidate(&disk.address(&key(70)), 2);
    settled(&disk);
    disk.close();
    drop(disk);
    let report = checked(folder.path());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.objects, report.pieces, report.journal_entries), (51, 3, 1));
}

#[test]
fn what_the_page_cache_lacks_is_left_to_the_pool() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    if disk.shared.read_mode != ReadMode::NoWait {
        eprintln!("skipped: this file system reads everything at once, or nothing");
        return;
    }
    disk.put(object(1, 1, inline(1, 30_000))).unwrap();
    let parts = pieces(&disk, 2, 2, 600_000).unwrap();
    disk.put(object(2, 1, RecordContent::Pieces(parts.clone()))).unwrap();
    settled(&disk);
    let place = |k: u64| disk.find(&disk.address(&key(k)))[0];
    let forget = || {
        for segment in disk.shared.segments.all() {
            let file = segment.file.get().unwrap();
            file.sync_all().unwrap();
            rustix::fs::fadvise(&*file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        }
    };
    // Under load the kernel may read ahead again in between; not every time.
    wait(|| {
        forget();
        disk.read_now(place(1)).is_none()
    });
    assert_eq!(block_on(disk.read(place(1))).unwrap().content_bytes(), 30_000);
    assert!(disk.read_now(place(1)).is_some(), "it is in the page cache now");
    wait(|| {
        forget();
        disk.piece_now(&parts[1]).is_none()
    });
    assert_eq!(block_on(disk.read_piece(&parts[1])), Ok(bytes_of(2, 600_000).slice(262_144..524_288)));
    assert_eq!(disk.usage().damaged, 0, "what is not there yet is not damaged");
}

#[test]
fn syncs_of_the_journal_that_are_asked_for_together_are_all_answered() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let asked: Vec<_> = (0..100)
        .map(|number| {
            let disk = Arc::clone(&disk);
            runtime.spawn(async move {
                disk.invalidate(&disk.address(&key(number)), number);
                disk.sync_journal().await.is_ok()
            })
        })
        .collect();
    assert!(asked.into_iter().all(|asked| runtime.block_on(asked).unwrap()));
    disk.close();
    assert!(matches!(runtime.block_on(disk.sync_journal()), Err(DiskError::Closed(_))));
}

#[test]
fn what_is_stored_is_for_nobody_else_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("above").join("cache");
    let missing = Disk::open(settings(&path, 16 * MIB)).unwrap_err();
    assert!(matches!(missing, DiskError::Io { .. }), "those above it are not made: {missing}");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let disk = open(&path, 16 * MIB);
    disk.put(object(1, 1, inline(1, 1000))).unwrap();
    settled(&disk);
    disk.close();
    let others = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o077;
    assert_eq!(others(&path), 0);
    let names: Vec<_> = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    let kinds = ["seg", "toc", "journal"]
        .map(|kind| names.iter().any(|name| name.extension() == Some(kind.as_ref())));
    assert_eq!(kinds, [true; 3], "{names:?}");
    assert!(names.iter().all(|name| others(name) == 0), "{names:?}");
}
