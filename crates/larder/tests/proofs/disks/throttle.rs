//! A device that is held to a pace by the kernel's block throttle.
//!
//! In: a device, a direction, bytes per second. Out: a [`Throttle`] that lasts until it is dropped; `None`, with the reason
//! printed, where this machine or this user cannot. The limit stands in the root group of cgroup v1's `blkio`: what is
//! written goes through the page cache, and kernel threads bring it to the device, in that group whoever wrote it.
//! Deliberately absent: cgroup v2, whose root group has no limits.

use std::path::{Path, PathBuf};

use super::mounted::skip;

const ROOT_GROUP: &str = "/sys/fs/cgroup/blkio";

/// What is held.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Reads,
    Writes,
}

/// A limit, taken back when it is dropped.
pub(super) struct Throttle {
    file: PathBuf,
    device: String,
}

impl Throttle {
    /// Holds a device, `7:0` as the kernel numbers it, to so many bytes per second.
    pub(super) fn hold(device: &str, way: Way, bytes_per_s: u64) -> Option<Self> {
        let name = match way {
            Way::Reads => "blkio.throttle.read_bps_device",
            Way::Writes => "blkio.throttle.write_bps_device",
        };
        let file = Path::new(ROOT_GROUP).join(name);
        let why = if !file.exists() {
            Some(format!("there is no {}: that takes cgroup v1", file.display()))
        } else if !is_in_root_group(&std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default()) {
            Some("this process is not in the root group of blkio".to_owned())
        } else {
            let written = std::fs::write(&file, format!("{device} {bytes_per_s}"));
            written.err().map(|error| format!("{}: {error}", file.display()))
        };
        if let Some(why) = why {
            skip(&why);
            return None;
        }
        Some(Self { file, device: device.to_owned() })
    }

    /// Holds it to another pace from now on.
    pub(super) fn set(&self, bytes_per_s: u64) {
        std::fs::write(&self.file, format!("{} {bytes_per_s}", self.device)).unwrap();
    }
}

/// By lines of `7:blkio:/`.
fn is_in_root_group(groups: &str) -> bool {
    groups.lines().any(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let is_it = parts.next().is_some_and(|names| names.split(',').any(|name| name == "blkio"));
        is_it && parts.next() == Some("/")
    })
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // A device that is gone has no limit any more.
        let _ = std::fs::write(&self.file, format!("{} 0", self.device));
    }
}
