//! Segments that cannot be read any more: each costs what is in it, and nothing waits behind it.

use std::fs::{self, OpenOptions};
use std::process::Command;

use super::damage::files;
use super::*;
use crate::engine::files::{segment_path, toc_path};

/// A disk with objects of 20 kB in more segments than it may have open, so that the first are closed, and how many there are.
fn filled(folder: &Path) -> (Arc<Disk>, u64) {
    const OBJECTS: u64 = 20 * MIB / 20_000;
    let few = DiskSettings { files: FilesMax::new(0), ..settings(folder, 32 * MIB) };
    let disk = Disk::open(few).unwrap();
    for k in 0..OBJECTS {
        disk.put(object(k, 1, inline(k, 20_000))).unwrap();
        if k % 50 == 0 {
            settled(&disk);
        }
    }
    settled(&disk);
    assert!(disk.shared.segments.find(1).unwrap().file.now().is_none(), "the first is open");
    (disk, OBJECTS)
}

#[test]
fn the_oldest_makes_room_although_it_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, mut k) = filled(folder.path());
    fs::remove_file(segment_path(folder.path(), 1)).unwrap();
    fs::remove_file(toc_path(folder.path(), 1)).unwrap();
    let mut is_first_gone = false;
    wait(|| {
        // Refused for a while: the disk counts as failing.
        k += u64::from(disk.put(object(k, 1, inline(k, 20_000))).is_ok());
        is_first_gone |= disk.usage().reclaimed_segments > 0 && disk.find(&disk.address(&key(0))).is_empty();
        disk.usage().reclaimed_segments > 5
    });
    assert!(is_first_gone && disk.usage().read_errors == 1, "{:?}", disk.usage());
    assert!(disk.usage().allocated_bytes <= 32 * MIB, "{:?}", disk.usage());
}

#[test]
fn a_journal_is_made_short_although_a_segment_cannot_be_read_and_nothing_in_that_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, objects) = filled(folder.path());
    let (segment, table) = (segment_path(folder.path(), 1), toc_path(folder.path(), 1));
    let away = folder.path().join("away");
    fs::rename(&segment, &away).unwrap();
    fs::write(&table, b"damaged").unwrap();
    disk.invalidate(&disk.address(&key(0)), 5);
    for k in 0..10_000 {
        disk.invalidate(&disk.address(&key(1_000_000 + k)), 6);
    }
    // What a table said of the dead is not trusted any more.
    wait(|| !disk.shared.journal.is_long() && !table.exists());
    disk.kill();
    drop(disk);
    // It can be read again.
    fs::rename(&away, &segment).unwrap();
    let disk = open(folder.path(), 32 * MIB);
    assert_eq!(look(&disk, 0), None);
    assert!(look(&disk, objects - 1).is_some());
}

#[test]
fn what_cannot_be_read_at_the_start_counts_and_goes_in_its_turn() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), 16 * MIB).close();
    // A program that runs cannot be opened for writing, whoever asks.
    let busy = segment_path(folder.path(), 1);
    fs::copy("/bin/sleep", &busy).unwrap();
    let file = OpenOptions::new().append(true).open(&busy).unwrap();
    std::io::Write::write_all(&mut &file, &vec![0; 4 * MIB as usize]).unwrap();
    drop(file);
    let mut program = Command::new(&busy).arg("60").spawn();
    // Another test's program may have the file open for writing yet.
    wait(|| {
        if program.is_err() {
            program = Command::new(&busy).arg("60").spawn();
        }
        program.is_ok()
    });
    let disk = reopen(folder.path(), 16 * MIB).unwrap();
    assert!(
        matches!(disk.findings(), [Finding::Unreadable { path, .. }] if *path == busy),
        "{:?}",
        disk.findings()
    );
    assert!(disk.usage().allocated_bytes > 4 * MIB, "{:?}", disk.usage());
    // The last of all segments does not go.
    disk.put(object(1, 1, inline(1, 100))).unwrap();
    wait(|| disk.usage().reclaimed_segments == 1 && disk.usage().allocated_bytes < 4 * MIB);
    assert_eq!(files(folder.path(), &[".seg"]), [segment_path(folder.path(), 2)]);
    assert!(look(&disk, 1).is_some());
    let mut program = program.unwrap();
    program.kill().and_then(|()| program.wait()).unwrap();
}
