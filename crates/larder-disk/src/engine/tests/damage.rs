//! Bytes that rot, and files that come and go: what is found is right, or it is not found.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::*;

const OBJECTS: u64 = 120;

/// A disk with objects, of which every tenth was invalidated, and entries behind that in the journal.
fn filled(is_killed: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 16 * MIB);
    for k in 0..OBJECTS {
        disk.put(object(k, 1, inline(k, 20_000))).unwrap();
    }
    let parts = pieces(&disk, OBJECTS, OBJECTS, 700_000).unwrap();
    disk.put(object(OBJECTS, 1, RecordContent::Pieces(parts))).unwrap();
    settled(&disk);
    for k in (0..OBJECTS).step_by(10) {
        assert_eq!(disk.invalidate(&disk.address(&key(k)), 5), 1);
    }
    (6..16).for_each(|number| disk.note(&note(number, b"behind")));
    match is_killed {
        true => disk.kill(),
        false => disk.close(),
    }
    folder
}

/// How many are found, after making sure that all that is found is right.
fn found(path: &Path) -> usize {
    let disk = match reopen(path, 16 * MIB) {
        Ok(disk) => disk,
        // What it was cannot be told any more.
        Err(DiskError::NotOurs(_)) => return 0,
        Err(error) => panic!("{error}"),
    };
    let found = (0..=OBJECTS).filter(|k| match look(&disk, *k) {
        Some((number, content)) => {
            let length = if *k == OBJECTS { 700_000 } else { 20_000 };
            assert!(k % 10 != 0 || *k == OBJECTS, "{k} came back");
            assert_eq!((number, content), (1, bytes_of(*k, length)));
            true
        }
        None => false,
    });
    let found = found.count();
    disk.kill();
    found
}

pub(super) fn files(path: &Path, kinds: &[&str]) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| kinds.iter().any(|kind| path.to_string_lossy().ends_with(kind));
    let mut files: Vec<PathBuf> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).filter(is_one).collect();
    files.sort();
    files
}

const ALL: usize = (OBJECTS - OBJECTS / 10 + 1) as usize;

#[test]
fn garbled_bytes_are_never_served() {
    for seed in 1..40 {
        let mut dice = Dice(seed * 7919);
        let folder = filled(seed % 2 == 0);
        let kind = [".seg", ".toc", ".journal", "larder"][(seed % 4) as usize];
        let files = files(folder.path(), &[kind]);
        // Killed before the last table: there may be few of them.
        let Some(path) = files.get(dice.below(files.len() as u64) as usize) else { continue };
        let file = OpenOptions::new().write(true).open(path).unwrap();
        let length = file.metadata().unwrap().len();
        // The end of a journal cannot be told from one that was torn: nobody was told that it is durable.
        let end = if kind == ".journal" { length - 100 } else { length };
        for _ in 0..=dice.below(3) {
            let at = dice.below(end);
            let garbage: Vec<u8> = match dice.below(2) {
                0 => vec![0; 1 + dice.below(64) as usize],
                _ => (0..=dice.below(64)).map(|_| dice.below(256) as u8).collect(),
            };
            let garbage = &garbage[..garbage.len().min((end - at) as usize)];
            file.write_all_at(garbage, at).unwrap();
        }
        let first = found(folder.path());
        // And again, from what the first start made of it.
        assert!(found(folder.path()) <= first, "seed {seed}");
        if kind == ".toc" {
            assert_eq!(first, ALL, "a table is not needed; seed {seed}");
        }
    }
}

#[test]
fn files_that_are_cut_short_cost_what_was_cut() {
    for seed in 1..12 {
        let mut dice = Dice(seed * 104_729);
        let folder = filled(seed % 2 == 0);
        let files = files(folder.path(), &[".seg", ".toc"]);
        let path = &files[dice.below(files.len() as u64) as usize];
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(dice.below(file.metadata().unwrap().len())).unwrap();
        assert!(found(folder.path()) <= ALL);
    }
}

#[test]
fn a_segment_that_is_missing_costs_what_was_in_it() {
    let folder = filled(false);
    assert_eq!(found(folder.path()), ALL);
    fs::remove_file(&files(folder.path(), &[".seg"])[0]).unwrap();
    let left = found(folder.path());
    assert!(left < ALL && left > 0);
}

#[test]
fn without_its_journal_nothing_on_a_disk_is_believed() {
    let folder = filled(false);
    files(folder.path(), &[".journal"]).iter().for_each(|path| fs::remove_file(path).unwrap());
    let disk = open(folder.path(), 16 * MIB);
    assert_eq!(disk.findings(), [Finding::NoJournal]);
    assert_eq!(disk.usage().objects, 0);
    assert!(taken(folder.path()) < MIB, "what is not believed takes no room");
}

#[test]
fn a_disk_without_an_identity_begins_anew() {
    let folder = filled(false);
    let name = folder.path().join("larder");
    let disk = open(folder.path(), 16 * MIB);
    let id = disk.id();
    disk.kill();
    drop(disk);
    let mut bytes = fs::read(&name).unwrap();
    bytes[20] ^= 1;
    fs::write(&name, bytes).unwrap();
    let disk = open(folder.path(), 16 * MIB);
    assert_ne!(disk.id(), id);
    assert_eq!(disk.findings(), [Finding::NewIdentity]);
    disk.put(object(1, 1, inline(1, 100))).unwrap();
    settled(&disk);
    disk.kill();
    drop(disk);
    assert_eq!(look(&open(folder.path(), 16 * MIB), 1), Some((1, bytes_of(1, 100))));
}

#[test]
fn a_segment_of_another_disk_is_not_read() {
    let (one, other) = (filled(false), tempfile::tempdir().unwrap());
    open(other.path(), 16 * MIB).close();
    let segment = &files(one.path(), &[".seg"])[0];
    fs::copy(segment, other.path().join("00000077.seg")).unwrap();
    fs::write(other.path().join("00000078.seg"), b"nobody's").unwrap();
    let disk = open(other.path(), 16 * MIB);
    assert_eq!(disk.findings().len(), 2, "{:?}", disk.findings());
    assert_eq!((0..OBJECTS).filter(|k| look(&disk, *k).is_some()).count(), 0);
    assert!(other.path().join("00000078.seg").exists());
    // Numbers of segments go on behind every name that is there.
    disk.put(object(1, 1, inline(1, 100))).unwrap();
    settled(&disk);
    assert!(other.path().join("00000079.seg").exists());
}

#[test]
fn the_smallest_of_damages_is_found_by_fsck() {
    let folder = filled(false);
    assert!(checked(folder.path()).is_sound());
    let path = &files(folder.path(), &[".seg"])[0];
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 5000).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 5000).unwrap();
    let report = checked(folder.path());
    assert_eq!(report.damaged.len(), 1);
    assert_eq!(&report.damaged[0].0, path);
}

#[test]
fn an_entry_that_is_lost_before_such_as_have_no_number_may_have_named_anything() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 16 * MIB);
    for k in 1..=3 {
        disk.put(object(k, 5, inline(k, 1000))).unwrap();
    }
    settled(&disk);
    disk.invalidate(&disk.address(&key(1)), 6);
    let at = disk.address(&key(2));
    disk.remove(&at, disk.find(&at)[0]);
    disk.kill();
    drop(disk);
    let journal = files(folder.path(), &[".journal"]).remove(0);
    let mut bytes = fs::read(&journal).unwrap();
    bytes[crate::engine::format::journal::JOURNAL_HEAD_BYTES + 9] ^= 1;
    fs::write(&journal, bytes).unwrap();
    let disk = open(folder.path(), 16 * MIB);
    assert_eq!(look(&disk, 1), None, "it was invalidated");
    assert_eq!(look(&disk, 2), None, "it was taken out");
}
