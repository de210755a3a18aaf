//! The promises of the README, each against every kind of store: memory, disks in each layout, plain files, Redis.
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

use larder_testkit::client::Request;
use larder_testkit::redis::RedisServer;

use crate::disks::purging;
use crate::support::{Process, connect, until};

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
    /// Records that larders share.
    Redis,
}

pub(crate) const SINGLE: Kind = Kind::Disks("single");
pub(crate) const MIRROR: Kind = Kind::Disks("mirror");
pub(crate) const STRIPE: Kind = Kind::Disks("stripe");
pub(crate) const HASH: Kind = Kind::Disks("hash");

impl Kind {
    /// What it has beside memory: directories, or the socket of a server.
    fn places(self) -> usize {
        match self {
            Self::Memory => 0,
            SINGLE | Self::Files | Self::Redis => 1,
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
            Self::Redis => {
                let timeout = "timeout = \"5s\"";
                let fleet = if name == "default" { "[fleet]\nlease = \"3s\"\nwait = \"20s\"\n" } else { "" };
                format!("{head}redis = {{ url = \"unix://{}\", {timeout} }}\n{fleet}", places[0].display())
            }
            Self::Disks(layout) => {
                let disk = |path: &PathBuf| format!("{{ path = {path:?}, size = \"{SIZE}\" }}");
                let disks: Vec<String> = places.iter().take(self.places()).map(disk).collect();
                format!("{head}layout = \"{layout}\"\ndisks = [{}]\n", disks.join(", "))
            }
        }
    }
}

/// A config with one store, and the directories or the server of that.
struct Stand {
    kind: Kind,
    config: PathBuf,
    places: Vec<PathBuf>,
    redis: Option<RedisServer>,
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
        let redis = (kind == Kind::Redis).then(RedisServer::start);
        let places = match &redis {
            Some(redis) => vec![redis.socket()],
            None => vec![first.join("place-0"), second.join("place-1")],
        };
        let site = purging::site_line() + &kind.table("default", memory, &places);
        let text = crate::support::config(origin, "workers = 2", &site);
        let config = folder.path().join("larder.toml");
        std::fs::write(&config, text).unwrap();
        Self { kind, config, places, redis, _folder: folder }
    }

    async fn start(&self) -> Process {
        let larder = Process::run_config(&self.config).await;
        if self.redis.is_some() {
            until("it has a lease", async || larder.metrics().await.sum("larder_fleet_lease_seconds") > 0)
                .await;
            // No sooner: what was stored before a purge that comes without a lease is in doubt.
            until("its purges are complete", async || {
                let nothing = Request::new("POST", "/api/v1/purges", "localhost")
                    .field("Content-Type", "application/json");
                let nothing = nothing.body(r#"{"tags": ["nothing"]}"#.to_owned());
                connect(larder.admin).await.exchange(&nothing).await.unwrap().status == 200
            })
            .await;
        }
        larder
    }

    /// Waits until nothing is on its way to a disk or a server, and as many files or records are there as there should be.
    async fn is_settled(&self, larder: &Process, files: u64) {
        until("it is written", async || {
            let metrics = larder.metrics().await;
            match self.kind {
                Kind::Memory => true,
                Kind::Files => metrics.sum("larder_files_objects") >= files,
                Kind::Redis => {
                    let records = self.redis.as_ref().unwrap().names("larder:1:default:r:*");
                    records.len() as u64 >= files && metrics.sum("larder_remote_queue_bytes") == 0
                }
                Kind::Disks(_) => {
                    metrics.sum("larder_disk_queued_bytes") + metrics.sum("larder_disk_queued_objects") == 0
                }
            }
        })
        .await;
    }
}
