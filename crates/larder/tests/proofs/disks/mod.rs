//! Stores with disks, proved on the binary: killed at any moment, and with disks that are full, broken, slow or absent.
//!
//! One origin and one catalogue of resources serve all of it: whatever happens to a disk, each answer is right, and what
//! differs is only who gave it.

mod absent;
pub(crate) mod catalogue;
mod crash;
mod faults;
pub(crate) mod injecting;
mod large;
pub(crate) mod load;
pub(crate) mod mounted;
pub(crate) mod origin;
pub(crate) mod purging;
pub(crate) mod running;
mod slow;
mod throttle;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use larder_disk::engine::fsck;

/// How several disks are used, and one.
const LAYOUTS: [&str; 4] = ["single", "mirror", "stripe", "hash"];
/// The smallest that can be had: segments of 1 MiB.
const DISK_SIZE: &str = "16MiB";

/// What may wait for one disk: what its queue has of its own, and a quarter of the store's memory.
const QUEUED_BYTES_MAX: u64 = (8 << 20) + (2 << 20);

/// What random choices are drawn from; LARDER_SEED repeats those of another run.
pub(crate) fn seed() -> String {
    let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros().to_string();
    std::env::var("LARDER_SEED").unwrap_or_else(|_| now())
}

/// A config with disks in a folder of the test's own, which goes with it.
struct Site {
    config: PathBuf,
    disks: Vec<PathBuf>,
    _folder: tempfile::TempDir,
}

impl Site {
    /// Two disks, or with the layout `single` one.
    fn new(origin: &str, layout: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let count = if layout == "single" { 1 } else { 2 };
        let disks = (0..count).map(|number| folder.path().join(format!("disk-{number}"))).collect();
        Self::of(origin, layout, disks, folder)
    }

    /// One disk in a folder that is somebody else's.
    fn at(origin: &str, disk: &Path) -> Self {
        Self::of(origin, "single", vec![disk.to_owned()], tempfile::tempdir().unwrap())
    }

    fn of(origin: &str, layout: &str, disks: Vec<PathBuf>, folder: tempfile::TempDir) -> Self {
        let listed: Vec<String> =
            disks.iter().map(|path| format!("{{ path = {path:?}, size = \"{DISK_SIZE}\" }}")).collect();
        let store = format!(
            "{}[stores.default]\nmemory = \"8MiB\"\nlayout = \"{layout}\"\ndisks = [{}]\n",
            purging::site_line(),
            listed.join(", ")
        );
        let text = crate::support::config(origin, "workers = 2", &store);
        let config = folder.path().join("larder.toml");
        std::fs::write(&config, text).unwrap();
        Self { config, disks, _folder: folder }
    }

    /// Records in order on each disk; of a larder that does not run.
    fn objects(&self) -> Vec<u64> {
        self.disks.iter().map(|disk| fsck(disk, |_, _| ()).unwrap().objects).collect()
    }
}
