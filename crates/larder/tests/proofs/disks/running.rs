//! A larder under load, to which something is done meanwhile.
//!
//! In: a config, and what it is a config of. Out: ways to wait until clients were served, until something was written, until a metric
//! moved; at the end each answer was right and in time, and larder still runs.

use std::any::Any;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::catalogue::Catalogue;
use super::load::Load;
use super::origin::Origin;
use crate::support::{BOUND, Process, until};

pub(crate) const RESOURCES: usize = 60;
const CLIENTS: u64 = 4;
/// What a request may take at most: a look on a disk that does not answer ends after one second.
const LONGEST: Duration = Duration::from_secs(4);

/// A larder under load all the time.
pub(crate) struct Running {
    pub(crate) larder: Process,
    pub(crate) load: Load,
    clients: Vec<JoinHandle<()>>,
    _origin: Origin,
    /// What goes when it ends.
    _held: Box<dyn Any>,
}

impl Running {
    /// The origin that [`start`](Self::start) wants.
    pub(crate) fn origin() -> Origin {
        Origin::start(Catalogue::new(RESOURCES))
    }

    /// Of a config before that origin.
    pub(crate) async fn start(config: &Path, origin: Origin, held: impl Any, name: &str) -> Self {
        let larder = Process::run_config(config).await;
        let load = Load::new(&larder, &origin.catalogue);
        let seed = super::seed();
        println!("{name}: LARDER_SEED={seed}");
        let clients = load.begin(CLIENTS, &format!("{seed} {name}"));
        Self { larder, load, clients, _origin: origin, _held: Box::new(held) }
    }

    /// Waits until so many more answers came.
    pub(crate) async fn serves(&self, more: u64) {
        let enough = self.load.tally.answers.load(Ordering::Relaxed) + more;
        let answers = || self.load.tally.answers.load(Ordering::Relaxed);
        until("clients are served", async || {
            assert!(!self.clients.iter().any(JoinHandle::is_finished), "a client has ended");
            answers() >= enough
        })
        .await;
    }

    pub(crate) async fn sum(&self, family: &str) -> u64 {
        self.larder.metrics().await.sum(family)
    }

    /// Waits until a metric is more than it was.
    pub(crate) async fn counts(&self, family: &str, before: u64) {
        let started = Instant::now();
        while self.sum(family).await <= before {
            if started.elapsed() > BOUND {
                let metrics = self.larder.metrics().await;
                let disk: Vec<&str> =
                    metrics.0.lines().filter(|line| line.starts_with("larder_disk")).collect();
                panic!("{family} stays at {before}: {disk:#?}, {:?}", self.larder.stderr());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until something new is on the disk.
    pub(crate) async fn writes(&self) {
        let before = self.sum("larder_disk_written_objects_total").await;
        self.counts("larder_disk_written_objects_total", before).await;
    }

    pub(crate) async fn end(self) {
        self.load.is_over.store(true, Ordering::SeqCst);
        for client in self.clients {
            client.await.unwrap();
        }
        let tally = &self.load.tally;
        println!("{tally:?}");
        let longest = Duration::from_millis(tally.longest_ms.load(Ordering::Relaxed));
        assert!(longest < LONGEST, "an answer took {longest:?}");
        assert!(self.larder.is_running());
    }
}
