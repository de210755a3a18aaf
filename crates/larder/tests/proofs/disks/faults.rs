//! Disks that are full, that fail, and that are slow, under load: every answer is right and none waits for the disk.
//!
//! Each fault is a real one, made as root: a small tmpfs, an ext4 on a loop device, system calls that strace lets fail or
//! delays. Where the means are missing the test says so and is done. In each: nobody is cut, a line of the log and a metric
//! tell the operator, and where the fault can end, the disk is used again without anybody's doing.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Site;
use super::catalogue::Catalogue;
use super::load::Load;
use super::mounted::{Mounted, skip};
use super::origin::Origin;
use crate::support::{Process, Signal, until};

const RESOURCES: usize = 60;
const CLIENTS: u64 = 4;
/// Answers before a fault, during it, and after it.
const ANSWERS: u64 = 60;
/// What a request may take at most: a look on a disk that does not answer ends after one second.
const LONGEST: Duration = Duration::from_secs(4);

/// A larder with one disk, under load all the time.
struct Running {
    larder: Process,
    load: Load,
    clients: Vec<tokio::task::JoinHandle<()>>,
    _origin: Origin,
    _site: Site,
}

impl Running {
    async fn start(disk: &Path, name: &str) -> Self {
        let origin = Origin::start(Catalogue::new(RESOURCES)).await;
        let site = Site::at(&origin.url(), disk);
        let larder = Process::run_config(&site.config).await;
        let load = Load::new(larder.addr, &origin.catalogue);
        let clients = load.begin(CLIENTS, &format!("{} {name}", super::seed()));
        Self { larder, load, clients, _origin: origin, _site: site }
    }

    /// Waits until so many more answers came.
    async fn serves(&self, more: u64) {
        let enough = self.load.tally.answers.load(Ordering::Relaxed) + more;
        let answers = || self.load.tally.answers.load(Ordering::Relaxed);
        until("clients are served", async || {
            assert!(!self.clients.iter().any(tokio::task::JoinHandle::is_finished), "a client has ended");
            answers() >= enough
        })
        .await;
    }

    async fn sum(&self, family: &str) -> u64 {
        self.larder.metrics().await.sum(family)
    }

    /// Waits until a metric is more than it was.
    async fn counts(&self, family: &str, before: u64) {
        let started = std::time::Instant::now();
        while self.sum(family).await <= before {
            if started.elapsed() > crate::support::BOUND {
                let metrics = self.larder.metrics().await;
                let disk: Vec<&str> =
                    metrics.0.lines().filter(|line| line.starts_with("larder_disk")).collect();
                panic!("{family} stays at {before}: {disk:#?}, {:?}", self.larder.stderr());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until something new is on the disk.
    async fn writes(&self) {
        let before = self.sum("larder_disk_written_objects_total").await;
        self.counts("larder_disk_written_objects_total", before).await;
    }

    async fn end(self) {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_others_fill_costs_nobody_an_answer() {
    let Some(disk) = Mounted::tmpfs("20M") else { return skip("a tmpfs cannot be mounted") };
    let running = Running::start(&disk.path().join("disk"), "full").await;
    running.writes().await;
    // Until nothing is left, also of what larder gives up meanwhile.
    let filler = disk.path().join("filler");
    let filled = fill(&filler);
    running.larder.says("is full before").await;
    running.serves(ANSWERS).await;
    running.counts("larder_disk_refused_total", 0).await;
    drop(filled);
    std::fs::remove_file(filler).unwrap();
    running.writes().await;
    running.serves(ANSWERS).await;
    // Room came and went many times.
    let told = running.larder.stderr().into_iter().filter(|line| line.contains("is full before")).count();
    assert_eq!(told, 1, "{:?}", running.larder.stderr());
    running.end().await;
}

/// Takes what is free on a file system, and goes on taking what becomes free.
fn fill(path: &Path) -> impl Drop {
    struct Filling(std::sync::Arc<std::sync::atomic::AtomicBool>, Option<std::thread::JoinHandle<()>>);
    impl Drop for Filling {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
            let _ = self.1.take().map(std::thread::JoinHandle::join);
        }
    }
    let is_over = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
    let (path, over) = (path.to_owned(), std::sync::Arc::clone(&is_over));
    let filling = std::thread::spawn(move || {
        use std::io::Write;
        let mut file = std::fs::File::create(path).unwrap();
        let page = [7; 4096];
        while !over.load(Ordering::SeqCst) {
            if file.write_all(&page).is_err() {
                std::thread::park_timeout(Duration::from_micros(100));
            }
        }
    });
    Filling(is_over, Some(filling))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_shut_down_costs_nobody_an_answer() {
    let Some(disk) = Mounted::ext4("errors=continue") else { return skip("an ext4 cannot be mounted") };
    let running = Running::start(&disk.path().join("disk"), "shut down").await;
    running.writes().await;
    running.load.may_cut_hits.store(true, Ordering::SeqCst);
    if !disk.shut_down() {
        skip("the file system cannot be shut down");
        return running.end().await;
    }
    running.larder.says("goes on without").await;
    running.serves(10 * ANSWERS).await;
    assert_eq!(running.sum("larder_disk_failing").await, 1);
    // Whoever was cut told the others: nothing is begun twice that cannot be read.
    let cut = running.load.tally.cut.load(Ordering::Relaxed);
    assert!(cut <= RESOURCES as u64, "{cut} were cut");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_becomes_read_only_costs_nobody_an_answer() {
    let Some(disk) = Mounted::ext4("errors=remount-ro") else { return skip("an ext4 cannot be mounted") };
    let running = Running::start(&disk.path().join("disk"), "read-only").await;
    running.writes().await;
    if !disk.make_read_only() {
        skip("the file system cannot be told of an error");
        return running.end().await;
    }
    running.larder.says("goes on without").await;
    running.serves(5 * ANSWERS).await;
    assert!(running.sum("larder_disk_write_errors_total").await > 0);
    running.end().await;
}

/// strace on a process, until it is dropped.
struct Injecting(Child);

impl Injecting {
    fn into(larder: &Process, what: &str) -> Option<Self> {
        let traced = what.split_once(':')?.0;
        let strace = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-p", &larder.pid.to_string()])
            .args(["-e", &format!("trace={traced}"), "-e", &format!("inject={what}")])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        strace.ok().map(Self)
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Injecting {
    fn drop(&mut self) {
        // Asked to end it lets the process go on; killed it would as well, but in the middle of a call.
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, Signal::TERM);
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_whose_writes_fail_now_and_then_costs_nobody_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(&folder.path().join("disk"), "failing writes").await;
    running.writes().await;
    let Some(mut injecting) = Injecting::into(&running.larder, "pwrite64:error=EIO:when=3+5") else {
        skip("there is no strace");
        return running.end().await;
    };
    let failed = async || injecting.has_ended() || running.sum("larder_disk_write_errors_total").await > 0;
    until_mut("writes fail", failed).await;
    if injecting.has_ended() {
        skip("strace cannot attach");
        return running.end().await;
    }
    running.larder.says("goes on without").await;
    running.serves(ANSWERS).await;
    drop(injecting);
    until("the disk is used again", async || running.sum("larder_disk_failing").await == 0).await;
    running.writes().await;
    running.serves(ANSWERS).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_slow_slows_nobody_down() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(&folder.path().join("disk"), "slow writes").await;
    running.writes().await;
    // A third of a second for each write and sync: some 3 MB/s at most.
    let what = "pwrite64,fdatasync:delay_enter=300000";
    let Some(mut injecting) = Injecting::into(&running.larder, what) else {
        skip("there is no strace");
        return running.end().await;
    };
    running.serves(3 * ANSWERS).await;
    if injecting.has_ended() {
        skip("strace cannot attach");
        return running.end().await;
    }
    let queued = running.sum("larder_disk_queued_bytes").await;
    assert!(queued <= super::QUEUED_BYTES_MAX, "{queued} bytes wait");
    drop(injecting);
    running.writes().await;
    running.serves(ANSWERS).await;
    running.end().await;
}

async fn until_mut(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let started = std::time::Instant::now();
    while !holds().await {
        assert!(started.elapsed() < crate::support::BOUND, "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
