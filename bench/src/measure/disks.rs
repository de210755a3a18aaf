//! Disks that are files in memory: loop devices with ext4, for servers that store on disks.
//!
//! In: a folder in memory, a name, a size. Out: a mounted [`Disk`], whose device tells how many bytes have reached it, as the
//! kernel counts them; dropped, it is unmounted, detached and removed, and orphans.rs does that where this program is
//! killed. Not the machine's own disk, whose pace is another one on each machine and shared with everything that runs there.
//! The file systems are made as mkfs makes them, but that nothing is left to be written later: a kernel thread that
//! clears tables behind the measurement would be counted as the server's.
//! Deliberately absent: holding the device to a pace (placement/throttle.rs).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::fs::{FallocateFlags, fallocate, statvfs};

use harness::children::output_within;
use harness::orphans::{Watched, detach, unmount};

/// Longest run of a program that sets a disk up.
const SET_UP_MAX: Duration = Duration::from_secs(60);
/// Longest writing of what the kernel still holds for a disk.
const FLUSH_MAX: Duration = Duration::from_secs(300);
/// In which the kernel counts, whatever the device has.
const SECTOR_BYTES: u64 = 512;
/// What ext4 takes for each inode, in tables that no file system's count of used blocks has.
pub(super) const INODE_BYTES: u64 = 256;

/// What a disk is to have.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) bytes: u64,
    /// One inode for so many bytes.
    pub(super) bytes_per_inode: u64,
    /// All of its memory is taken before anything is measured: a device has its blocks, and need not find each when it is written.
    pub(super) is_taken: bool,
}

/// A mounted file system on a device of its own.
pub(super) struct Disk {
    /// `loop0`.
    device: String,
    image: PathBuf,
    folder: PathBuf,
    _watched: [Watched; 2],
}

impl Disk {
    /// Makes a file in `scratch`, a device of it, and mounts it beside it.
    ///
    /// # Errors
    /// One of the programs is not there, or not allowed.
    pub(super) fn make(scratch: &Path, name: &str, size: Size) -> Result<Self> {
        let (image, folder) = (scratch.join(format!("{name}.image")), scratch.join(name));
        // Before there is anything: whatever is left of it when it fails half-way, or is killed, is undone.
        let watched = [Watched::mount(&folder), Watched::loops(&image)];
        let mut disk = Self { device: String::new(), image, folder, _watched: watched };
        disk.set_up(size).with_context(|| format!("setting up the disk {name}"))?;
        Ok(disk)
    }

    fn set_up(&mut self, size: Size) -> Result<()> {
        let image = fs::File::create(&self.image)?;
        image.set_len(size.bytes)?;
        if size.is_taken {
            fallocate(&image, FallocateFlags::empty(), 0, size.bytes).context("no memory for the image")?;
        }
        fs::create_dir(&self.folder)?;
        let per_inode = size.bytes_per_inode.to_string();
        run(Command::new("mkfs.ext4")
            .args(["-q", "-F", "-m", "0", "-i", &per_inode, "-I", &INODE_BYTES.to_string()])
            // The file has holes, which read as zeros: tables need no clearing, and the mount asks for none.
            .args(["-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1"])
            .arg(&self.image))?;
        let device = run(Command::new("losetup").args(["--find", "--show"]).arg(&self.image))?;
        run(Command::new("mount")
            .args(["-t", "ext4", "-o", "noinit_itable", device.trim()])
            .arg(&self.folder))?;
        let name = device.trim().strip_prefix("/dev/").with_context(|| format!("losetup said {device}"))?;
        name.clone_into(&mut self.device);
        Ok(())
    }

    /// Where it is mounted.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// `7:0`, as settings of the kernel name it.
    pub(super) fn number(&self) -> Result<String> {
        let file = format!("/sys/block/{}/dev", self.device);
        Ok(fs::read_to_string(&file).context(file)?.trim().to_owned())
    }

    /// Bytes that have reached the device so far.
    pub(super) fn written_bytes(&self) -> Result<u64> {
        let file = format!("/sys/block/{}/stat", self.device);
        let text = fs::read_to_string(&file).with_context(|| file.clone())?;
        written_bytes(&text).with_context(|| format!("{file}: `{text}`"))
    }

    /// Bytes that the file system has given away: blocks, and the inodes in its tables.
    pub(super) fn used_bytes(&self) -> Result<u64> {
        let told = statvfs(&self.folder).with_context(|| self.folder.display().to_string())?;
        let blocks = told.f_blocks.saturating_sub(told.f_bfree).saturating_mul(told.f_frsize);
        let inodes = told.f_files.saturating_sub(told.f_ffree).saturating_mul(INODE_BYTES);
        Ok(blocks.saturating_add(inodes))
    }

    /// Has the kernel write what it still holds for this disk.
    pub(super) fn flush(&self) -> Result<()> {
        output_within(Command::new("sync").arg("--file-system").arg(&self.folder), FLUSH_MAX)?;
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        unmount(&self.folder);
        detach(&self.image);
        // Where one of them is not there, it is as it should be.
        let _ = fs::remove_file(&self.image);
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Has the kernel forget what it has cached of any file.
pub(super) fn forget() -> Result<()> {
    const FORGET: &str = "/proc/sys/vm/drop_caches";
    rustix::fs::sync();
    fs::write(FORGET, "3").context(FORGET)
}

fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    output_within(command, SET_UP_MAX).context(program)
}

/// The seventh figure of a device's line: sectors written.
fn written_bytes(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(6)?.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES)
}

/// Why no disk can be made here; `None` where it can be tried.
pub(super) fn hindrance(scratch_bytes: u64) -> Result<Option<String>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Some("only root may make loop devices and mount them".to_owned()));
    }
    if !Path::new("/dev/loop-control").exists() {
        return Ok(Some("there are no loop devices (/dev/loop-control)".to_owned()));
    }
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        return Ok(Some("there is no /dev/shm for the images of the disks".to_owned()));
    }
    let room = statvfs(shm).context("/dev/shm")?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let memory = fs::read_to_string("/proc/meminfo").context("/proc/meminfo")?;
    let available = available_bytes(&memory).context("no MemAvailable")?;
    // What is written lies twice: in the image, and in the cache of the file system on it.
    let wanted = scratch_bytes.saturating_mul(2);
    let gib = |bytes: u64| bytes >> 30;
    if free < scratch_bytes || available < wanted {
        return Ok(Some(format!(
            "{} GiB are wanted in /dev/shm, which has {}, and {} GiB of memory, of which {} are available",
            gib(scratch_bytes),
            gib(free),
            gib(wanted),
            gib(available)
        )));
    }
    Ok(None)
}

fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Fails where a disk that could not be made is not the machine's fault; its reason otherwise.
pub(super) fn tried(scratch: &Path) -> Result<Option<String>> {
    let size = Size { bytes: 64 << 20, bytes_per_inode: 65_536, is_taken: false };
    match Disk::make(scratch, "tried", size) {
        Ok(disk) => {
            ensure!(disk.used_bytes()? < size.bytes, "a disk that is full from its start");
            Ok(None)
        }
        Err(error) => Ok(Some(format!("{error:#}"))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sectors_written_are_the_seventh_figure() {
        let stat = "     100        2     1600       30      200        4    81920       50        0       60       70\n";
        assert_eq!(written_bytes(stat), Some(81_920 * 512));
        for odd in ["", "1 2 3 4 5 6", "1 2 3 4 5 6 x 8", "1 2 3 4 5 6 18446744073709551615 8"] {
            assert_eq!(written_bytes(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_memory_that_can_be_had_is_read() {
        let meminfo = "MemTotal:       24684088 kB\nMemFree:        1 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(available_bytes(meminfo), Some(2 << 20));
        assert_eq!(available_bytes("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn more_than_any_machine_has_is_a_hindrance() {
        assert!(hindrance(u64::MAX / 4).unwrap().is_some());
    }

    #[test]
    fn a_disk_counts_what_reaches_it_and_leaves_nothing() {
        // Only root has disks, and not everywhere.
        let scratch = tempfile::tempdir().unwrap();
        if hindrance(64 << 20).unwrap().is_some() || tried(scratch.path()).unwrap().is_some() {
            return;
        }
        let size = Size { bytes: 64 << 20, bytes_per_inode: 65_536, is_taken: false };
        let disk = Disk::make(scratch.path(), "one", size).unwrap();
        let (written, used) = (disk.written_bytes().unwrap(), disk.used_bytes().unwrap());
        fs::write(disk.folder().join("file"), vec![7; 4 << 20]).unwrap();
        disk.flush().unwrap();
        let grown = disk.written_bytes().unwrap() - written;
        assert!((4 << 20..5 << 20).contains(&grown), "{grown}");
        let grown = disk.used_bytes().unwrap() - used;
        assert!((4 << 20..5 << 20).contains(&grown), "{grown}");
        drop(disk);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
}
