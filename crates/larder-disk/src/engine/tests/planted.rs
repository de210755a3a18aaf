//! Files that nobody's crash and no rot explains: names and lengths that larder does not give, and what a crash leaves.
//!
//! Whoever may write into the folder may do this; it must cost what was stored at most, never memory or the start. And what
//! `fsck` calls sound is opened without a finding.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use super::*;
use crate::engine::format::record::HEADER_BYTES;
use crate::engine::format::segment::SEGMENT_HEAD_BYTES;

fn with_one_object(folder: &Path) {
    let disk = open(folder, 16 * MIB);
    disk.put(object(1, 1, inline(1, 100))).unwrap();
    settled(&disk);
    disk.close();
}

#[test]
fn a_table_without_an_end_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    with_one_object(folder.path());
    OpenOptions::new()
        .write(true)
        .open(folder.path().join("00000001.toc"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let report = checked(folder.path());
    assert_eq!(report.findings, [Finding::DamagedTable(folder.path().join("00000001.toc"))]);
    // Of a size under which it would fit.
    let disk = open(folder.path(), 1 << 46);
    assert_eq!(disk.findings(), report.findings);
    assert_eq!(look(&disk, 1), Some((1, bytes_of(1, 100))));
    assert!(disk.usage().index_bytes < 64 * MIB, "{}", disk.usage().index_bytes);
}

#[test]
fn names_that_larder_does_not_give_are_foreign() {
    let folder = tempfile::tempdir().unwrap();
    with_one_object(folder.path());
    let odd =
        ["+0000001.seg", "00000001.toc.old", "0000000A.seg", "1.seg", "ffffffff.journal", "ffffffff.seg"];
    odd.iter().for_each(|name| fs::write(folder.path().join(name), b"").unwrap());
    let mut report = checked(folder.path());
    report.findings.sort_by_key(|finding| format!("{finding:?}"));
    assert!(report.is_sound());
    let disk = open(folder.path(), 16 * MIB);
    let foreign: Vec<Finding> = odd.iter().map(|name| Finding::Foreign(folder.path().join(name))).collect();
    assert_eq!((disk.findings(), &report.findings), (&foreign[..], &foreign));
    // And its own go on being found and made.
    disk.put(object(2, 2, inline(2, 100))).unwrap();
    settled(&disk);
    disk.close();
    drop(disk);
    let disk = open(folder.path(), 16 * MIB);
    assert_eq!((1..3).map(|k| look(&disk, k).map(|found| found.0)).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert!(folder.path().join("00000002.seg").exists());
}

#[test]
fn what_a_crash_leaves_while_files_are_made_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    with_one_object(folder.path());
    fs::write(folder.path().join("00000002.journal"), b"").unwrap();
    fs::write(folder.path().join("00000002.seg"), vec![0; 1 << 20]).unwrap();
    fs::write(folder.path().join("00000001.toc.new"), b"half").unwrap();
    fs::write(folder.path().join("00000003.journal.new"), b"half").unwrap();
    assert_eq!(checked(folder.path()).findings, []);
    assert!(checked(folder.path()).is_sound());
    let disk = open(folder.path(), 16 * MIB);
    assert_eq!(disk.findings(), []);
    assert_eq!(look(&disk, 1), Some((1, bytes_of(1, 100))));
}

#[test]
fn a_record_that_never_reached_the_disk_is_found_by_its_table() {
    let folder = tempfile::tempdir().unwrap();
    with_one_object(folder.path());
    let segment = OpenOptions::new().write(true).open(folder.path().join("00000001.seg")).unwrap();
    // Zeros, as a file system has them where a write was lost: no damage to who knows nothing of the table.
    segment.write_all_at(&[0; 4 * HEADER_BYTES], SEGMENT_HEAD_BYTES as u64).unwrap();
    let report = checked(folder.path());
    assert_eq!(report.findings, [Finding::DamagedTable(folder.path().join("00000001.toc"))]);
    assert_eq!(look(&open(folder.path(), 16 * MIB), 1), None);
}

#[test]
fn an_empty_table_is_a_damaged_one() {
    let folder = tempfile::tempdir().unwrap();
    with_one_object(folder.path());
    fs::write(folder.path().join("00000001.toc"), b"").unwrap();
    assert_eq!(checked(folder.path()).findings, open(folder.path(), 16 * MIB).findings());
}
