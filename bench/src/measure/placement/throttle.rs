//! Disks that are held to a pace, by the kernel's block throttle.
//!
//! In: disks, and the bytes per second that each may write. Out: a [`Throttle`] that lasts until it is dropped; where
//! this program is killed, orphans.rs takes the limits back. And a [`tried`]: whether a disk really takes what was
//! written, and no more, for that is not the same in every kernel and container.
//!
//! The limit stands in the root group of cgroup v1's `blkio`. What servers write lies in the page cache first, and
//! kernel threads bring it to the device, in the root group whoever wrote it: a limit in a group of the server's own
//! would not hold them. What a server writes past the page cache is its own, so it has to be in the root group as well.
//! Deliberately absent: cgroup v2, whose root group has no limits. There the measurement is skipped, and says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::measure::disks::Disk;
use harness::children::output_within;
use harness::orphans::Watched;

const ROOT_GROUP: &str = "/sys/fs/cgroup/blkio";
const WRITE_LIMIT: &str = "blkio.throttle.write_bps_device";

/// What is written to see whether the limit holds.
const TRIED_BYTES: u64 = 48_000_000;
const TRIED_MAX: Duration = Duration::from_secs(60);
/// By how much the pace may be off.
const OFF_MAX: f64 = 0.1;

/// Limits of some disks, taken back when it is dropped.
pub(in crate::measure) struct Throttle {
    file: PathBuf,
    /// What takes them back, a line for each disk.
    lines: Vec<String>,
    _watched: Vec<Watched>,
}

impl Throttle {
    /// Holds each of these disks to so many bytes per second, of what is written.
    pub(in crate::measure) fn hold(disks: &[Disk], bytes_per_s: u64) -> Result<Self> {
        let file = Path::new(ROOT_GROUP).join(WRITE_LIMIT);
        let mut throttle = Self { file: file.clone(), lines: Vec::new(), _watched: Vec::new() };
        for disk in disks {
            let number = disk.number()?;
            let none = limit(&number, 0);
            throttle._watched.push(Watched::setting(&file, &none));
            throttle.lines.push(none);
            fs::write(&file, limit(&number, bytes_per_s)).with_context(|| file.display().to_string())?;
        }
        Ok(throttle)
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        for line in &self.lines {
            // A device that is gone has no limit any more.
            let _ = fs::write(&self.file, line);
        }
    }
}

/// A line of the limits' file; 0 is no limit.
fn limit(number: &str, bytes_per_s: u64) -> String {
    format!("{number} {bytes_per_s}")
}

/// Why nothing can be throttled here; `None` where it can be tried.
pub(in crate::measure) fn hindrance() -> Result<Option<String>> {
    if !Path::new(ROOT_GROUP).join(WRITE_LIMIT).exists() {
        return Ok(Some(format!("no {WRITE_LIMIT} in {ROOT_GROUP} (it needs cgroup v1)")));
    }
    let groups = fs::read_to_string("/proc/self/cgroup").context("/proc/self/cgroup")?;
    Ok(match own_group(&groups) {
        Some("/") => None,
        group => Some(format!("this process is not in the root group of blkio, but in {group:?}")),
    })
}

/// The group of `blkio`, in lines of `7:blkio:/`.
fn own_group(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|controller| controller == "blkio").then_some(group)
    })
}

/// Why the pace does not hold for what goes through the page cache; `None` where it does.
///
/// # Errors
/// The disk cannot be written to at all.
pub(in crate::measure) fn tried(disk: &Disk, bytes_per_s: u64) -> Result<Option<String>> {
    let _throttle = Throttle::hold(std::slice::from_ref(disk), bytes_per_s)?;
    let (file, before, began) = (disk.folder().join("tried"), disk.written_bytes()?, Instant::now());
    let count = format!("count={}", TRIED_BYTES / 1_000_000);
    let mut write = Command::new("dd");
    write.args(["if=/dev/zero", "bs=1000000", &count, "conv=fsync"]).arg(format!("of={}", file.display()));
    output_within(&mut write, TRIED_MAX).context("dd")?;
    let pace = pace(disk.written_bytes()?.saturating_sub(before), began.elapsed());
    fs::remove_file(&file)?;
    Ok(judge(pace, bytes_per_s))
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn pace(bytes: u64, took: Duration) -> f64 {
    bytes as f64 / took.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn judge(pace: f64, bytes_per_s: u64) -> Option<String> {
    let wanted = bytes_per_s as f64;
    let holds = (pace / wanted - 1.0).abs() <= OFF_MAX;
    (!holds).then(|| {
        format!("a disk held to {:.0} MB/s took {:.1} MB/s when it was tried", wanted / 1e6, pace / 1e6)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_block_devices_is_found() {
        assert_eq!(own_group("9:name=systemd:/a\n7:blkio:/\n0::/b\n"), Some("/"));
        assert_eq!(own_group("4:cpu,blkio:/x:y\n"), Some("/x:y"));
        assert_eq!(own_group("0::/\n"), None);
        assert_eq!(own_group("garbage\n\n"), None);
    }

    #[test]
    fn a_pace_that_is_off_is_told() {
        assert_eq!(judge(41_000_000.0, 40_000_000), None);
        assert_eq!(judge(36_500_000.0, 40_000_000), None);
        let told = judge(800_000_000.0, 40_000_000).unwrap_or_default();
        assert!(told.contains("40 MB/s took 800.0"), "{told}");
        assert!(judge(20_000_000.0, 40_000_000).is_some());
        assert!(judge(f64::NAN, 40_000_000).is_some());
    }
}
