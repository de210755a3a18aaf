//! The promises of the README, each against every kind of store: memory, disks in each layout, plain files.
//!
//! docs/design/promises.md is the table of them, and names the test of each cell. Here are those cells that have a fault of their
//! own for each kind; each test makes it for real, on the binary, and where the means are missing it says so and is done.

mod ambiguous;
mod config_swap;
mod failing;
mod killed;
mod memory;
mod one_fetch;
mod purges;
mod spilled;
mod stamps;

use std::path::{Path, PathBuf};

use crate::disks::purging;
use crate::support::{Process, until};

/// Of each disk, and of a directory of files: two of them go on a file system of [`Mounted`](crate::disks::mounted::Mounted).
const SIZE: &str = "16MiB";
const MEMORY: &str = "8MiB";

/// What a store keeps its responses in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    /// One disk, or two in another layout.
    Disks(&'static str),
    Files,
}

pub(crate) const SINGLE: Kind = Kind::Disks("single");
pub(crate) const MIRROR: Kind = Kind::Disks("mirror");
pub(crate) const STRIPE: Kind = Kind::Disks("stripe");
pub(crate) const HASH: Kind = Kind::Disks("hash");

impl Kind {
    /// Directories that it has beside memory.
    fn places(self) -> usize {
        match self {
            Self::Memory => 0,
            SINGLE | Self::Files => 1,
            Self::Disks(_) => 2,
        }
    }

    /// Whether what it has stored outlives the process.
    fn is_durable(self) -> bool {
        self != Self::Memory
    }

    /// Its table in a config, with as many directories of `places` as it needs.
    fn table(self, name: &str, memory: &str, places: &[PathBuf]) -> String {
        let head = format!("[stores.{name}]\nmemory = \"{memory}\"\n");
        match self {
            Self::Memory => head,
            Self::Files => format!("{head}files = {{ path = {:?}, size = \"{SIZE}\" }}\n", places[0]),
            Self::Disks(layout) => {
                let disk = |path: &PathBuf| format!("{{ path = {path:?}, size = \"{SIZE}\" }}");
                let disks: Vec<String> = places.iter().take(self.places()).map(disk).collect();
                format!("{head}layout = \"{layout}\"\ndisks = [{}]\n", disks.join(", "))
            }
        }
    }
}

/// A config with one store, and the directories of that.
struct Stand {
    kind: Kind,
    config: PathBuf,
    places: Vec<PathBuf>,
    _folder: tempfile::TempDir,
}

impl Stand {
    /// Directories of its own.
    fn new(kind: Kind, origin: &str) -> Self {
        Self::with_memory(kind, origin, MEMORY)
    }

    /// The same, with so much memory.
    fn with_memory(kind: Kind, origin: &str, memory: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        Self::made(kind, (origin, memory), folder, &path, &path)
    }

    /// The first directory within `first`, the second, where there is one, within `second`.
    fn within(kind: Kind, origin: &str, first: &Path, second: &Path) -> Self {
        Self::made(kind, (origin, MEMORY), tempfile::tempdir().unwrap(), first, second)
    }

    fn made(
        kind: Kind,
        (origin, memory): (&str, &str),
        folder: tempfile::TempDir,
        first: &Path,
        second: &Path,
    ) -> Self {
        let places = vec![first.join("place-0"), second.join("place-1")];
        let site = purging::site_line() + &kind.table("default", memory, &places);
        let text = crate::support::config(origin, "workers = 2", &site);
        let config = folder.path().join("larder.toml");
        std::fs::write(&config, text).unwrap();
        Self { kind, config, places, _folder: folder }
    }

    async fn start(&self) -> Process {
        Process::run_config(&self.config).await
    }

    /// Waits until nothing is on its way to a disk, and as many files are there as there should be.
    async fn is_settled(&self, larder: &Process, files: u64) {
        until("it is written", async || {
            let metrics = larder.metrics().await;
            match self.kind {
                Kind::Memory => true,
                Kind::Files => metrics.sum("larder_files_objects") >= files,
                Kind::Disks(_) => {
                    metrics.sum("larder_disk_queued_bytes") + metrics.sum("larder_disk_queued_objects") == 0
                }
            }
        })
        .await;
    }
}
