//! Disks that are full, read-only, or fail: what can be read goes on being read, and storing comes back by itself.
//!
//! With a small tmpfs, which takes root to mount; without, these tests say so and do nothing.

use std::process::Command;

use super::*;
use crate::engine::sys::ReadMode;

/// A file system of its own, unmounted at the end.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(options: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: mounting a file system takes root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["-t", "tmpfs", "-o", options, "larder-test"];
        let is_mounted = Command::new("mount").args(arguments).arg(folder.path()).status().unwrap().success();
        if !is_mounted {
            eprintln!("skipped: a tmpfs cannot be mounted here");
        }
        is_mounted.then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn remount(&self, options: &str) -> bool {
        Command::new("mount").args(["-o", options]).arg(self.path()).status().unwrap().success()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: the disk's threads may be closing their files yet.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Puts in until `is_enough`, reading what was put in last now and then.
fn put_until(disk: &Arc<Disk>, mut is_enough: impl FnMut(Result<Location, Refused>) -> bool) -> u64 {
    for k in 0..20_000 {
        let stored = disk.put(object(k, 1, inline(k, 20_000)));
        if k % 50 == 0 || stored == Err(Refused::QueueFull) {
            settled(disk);
        }
        if is_enough(stored) {
            return k;
        }
    }
    panic!("never enough");
}

#[test]
fn a_file_system_smaller_than_the_cap_is_used_in_turns_and_never_fails_a_caller() {
    let Some(mounted) = Mounted::new("size=16m") else { return };
    let disk = open(&mounted.path().join("cache"), 64 * MIB);
    assert_eq!(disk.shared.read_mode, ReadMode::Inline);
    let mut left = 60 * MIB / 20_000;
    put_until(&disk, |stored| {
        assert!(stored.is_ok() || stored == Err(Refused::QueueFull), "{stored:?}");
        left -= 1;
        left == 0
    });
    settled(&disk);
    let usage = disk.usage();
    assert!(usage.reclaimed_segments > 2 && usage.objects > 100 && !usage.is_failing, "{usage:?}");
    let last = 60 * MIB / 20_000 - 1;
    assert!(look(&disk, last).is_some());
    assert!(disk.read_now(disk.find(&disk.address(&key(last)))[0]).is_some(), "at once");
}

#[test]
fn a_disk_that_others_fill_refuses_says_so_once_and_comes_back() {
    let Some(mounted) = Mounted::new("size=32m") else { return };
    let disk = Disk::open(DiskSettings {
        path: mounted.path().join("cache"),
        size: DiskSize::LeaveFree(4 * MIB),
        idle: None,
        files: Default::default(),
    })
    .unwrap();
    put_until(&disk, |_| disk.usage().segments > 5);
    let other = mounted.path().join("other");
    let free = || {
        let room = rustix::fs::statvfs(mounted.path()).unwrap();
        room.f_bavail * room.f_frsize
    };
    // Somebody else takes all but the four megabytes, and more than that: larder gives way.
    std::fs::write(&other, vec![1; (free() - 2 * MIB) as usize]).unwrap();
    wait(|| free() >= 4 * MIB);
    let filled = vec![1; 2 * MIB as usize];
    let mut others = 0;
    wait(|| {
        if free() > 2 * MIB {
            others += 1;
            std::fs::write(mounted.path().join(format!("other{others}")), &filled).unwrap();
        }
        let _ = disk.put(object(1, 1, inline(1, 20_000)));
        disk.usage().refused.of(RefusalReason::NoRoom) > 0
    });
    assert!(!disk.usage().is_failing);
    std::fs::remove_file(&other).unwrap();
    (1..=others).for_each(|k| std::fs::remove_file(mounted.path().join(format!("other{k}"))).unwrap());
    wait(|| disk.put(object(2, 1, inline(2, 20_000))).is_ok());
    wait(|| look(&disk, 2).is_some() || disk.put(object(2, 1, inline(2, 20_000))).is_err());
}

#[test]
fn a_read_only_disk_is_read_and_tried_again() {
    let Some(mounted) = Mounted::new("size=32m") else { return };
    let disk = open(&mounted.path().join("cache"), 16 * MIB);
    disk.put(object(1_000_000, 1, inline(9, 100))).unwrap();
    settled(&disk);
    // Files that are open for writing keep it writable for them: only a disk that has none can be made read-only.
    disk.close();
    drop(disk);
    wait(|| mounted.remount("remount,ro"));
    assert!(matches!(
        Disk::open(settings(&mounted.path().join("cache"), 16 * MIB)),
        Err(DiskError::Io { .. })
    ));
    assert!(mounted.remount("remount,rw"));
    let disk = open(&mounted.path().join("cache"), 16 * MIB);
    assert_eq!(look(&disk, 1_000_000), Some((1, bytes_of(9, 100))));
}

#[test]
fn a_disk_that_fails_is_left_alone_and_what_can_be_read_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let disk = open(&path, 16 * MIB);
    disk.put(object(1_000_000, 1, inline(9, 100))).unwrap();
    settled(&disk);
    // The folder goes from under it: no segment can be made any more.
    let away = folder.path().join("away");
    std::fs::rename(&path, &away).unwrap();
    put_until(&disk, |stored| stored == Err(Refused::Failing));
    let usage = disk.usage();
    assert!(
        usage.is_failing && usage.write_errors > 0 && usage.refused.of(RefusalReason::Failing) > 0,
        "{usage:?}"
    );
    assert!(matches!(disk.take_event(), Some(DiskEvent::Failing { .. })));
    assert_eq!(look(&disk, 1_000_000), Some((1, bytes_of(9, 100))), "still there");
    let errors = disk.usage().write_errors;
    assert_eq!(disk.put(object(5, 1, inline(5, 10))), Err(Refused::Failing));
    assert_eq!(disk.usage().write_errors, errors, "it is left alone");
    std::fs::rename(&away, &path).unwrap();
    wait(|| disk.put(object(6, 1, inline(6, 10))).is_ok());
    wait(|| look(&disk, 6).is_some());
    // What was accepted is found before the writer has written it.
    wait(|| !disk.usage().is_failing);
    assert_eq!(disk.take_event(), Some(DiskEvent::Recovered));
}

#[test]
fn what_was_replaced_by_something_that_was_lost_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let disk = open(&path, 16 * MIB);
    for number in 1..=2 {
        if number == 2 {
            // No segment can be made any more: what does not fit into the open one is lost.
            std::fs::rename(&path, folder.path().join("away")).unwrap();
        }
        for k in 0..60 {
            let _ = disk.put(object(k, number, inline(number, 20_000)));
        }
        settled(&disk);
    }
    assert!(disk.usage().refused.of(RefusalReason::Failing) > 0, "{:?}", disk.usage());
    std::fs::rename(folder.path().join("away"), &path).unwrap();
    disk.kill();
    drop(disk);
    let disk = open(&path, 16 * MIB);
    let found: Vec<u64> = (0..60).filter_map(|k| Some(look(&disk, k)?.0)).collect();
    assert!(!found.is_empty() && found.iter().all(|number| *number == 2), "{found:?}");
}
