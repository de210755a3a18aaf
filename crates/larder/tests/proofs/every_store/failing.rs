//! A store that fails costs hits, never answers: with each kind of store, under load.
//!
//! The faults of `disks::faults`, which are made to a single disk there: a file system that is full, one that becomes read-only, one on
//! which everything fails. Here one disk of two is on it, or a directory of files. Of a mirror the other disk stands in for it,
//! so no client is cut; elsewhere a large body that is just being sent from it may be, once, also while it arrives. Memory fails by the kernel, which
//! gives it no file to send from.

use std::sync::atomic::Ordering;

use larder_testkit::client::{Progress, Response};
use larder_testkit::origin::Origin;
use larder_testkit::seeded::bytes_of;

use super::{HASH, Kind, MIRROR, STRIPE, Stand};
use crate::disks::injecting::Injecting;
use crate::disks::mounted::{Mounted, fill, skip};
use crate::disks::running::{RESOURCES, Running};
use crate::support::{
    Process, Signal, asking, assert_whole, cache_status, cacheable, connect, get, until, within,
};

/// Answers during a fault and after it.
const ANSWERS: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Full,
    ReadOnly,
    ShutDown,
}

impl Fault {
    fn file_system(self) -> Option<Mounted> {
        match self {
            Self::Full => Mounted::tmpfs("20M"),
            Self::ReadOnly => Mounted::ext4("errors=remount-ro"),
            Self::ShutDown => Mounted::ext4("errors=continue"),
        }
    }
}

/// What there is of it beyond memory so far.
async fn written(running: &Running, kind: Kind) -> u64 {
    let of_files = kind == Kind::Files;
    let family = if of_files { "larder_files_stored_total" } else { "larder_disk_written_objects_total" };
    running.sum(family).await
}

async fn writes(running: &Running, kind: Kind) {
    let before = written(running, kind).await;
    until("something is written", async || written(running, kind).await > before).await;
}

/// The store has found out.
async fn is_noticed(running: &Running, kind: Kind, fault: Fault) {
    match (kind, fault) {
        (Kind::Files, _) => {
            until("errors are counted", async || running.sum("larder_files_errors_total").await > 0).await;
        }
        (_, Fault::Full) => running.larder.says("is full before").await,
        _ => {
            until("the disk is left alone", async || running.sum("larder_disk_failing").await > 0).await;
        }
    }
}

async fn fails(kind: Kind, fault: Fault) {
    let Some(disk) = fault.file_system() else { return skip("a file system cannot be mounted") };
    let origin = Running::origin();
    let sound = tempfile::tempdir().unwrap();
    let stand = Stand::within(kind, &origin.url(), disk.path(), sound.path());
    let name = format!("{kind:?} {fault:?}");
    let running = Running::start(&stand.config.clone(), origin, (stand, sound), &name).await;
    writes(&running, kind).await;
    let may_cut = fault == Fault::ShutDown && kind != MIRROR;
    running.load.may_cut_hits.store(may_cut, Ordering::SeqCst);
    running.load.may_cut_fills.store(may_cut, Ordering::SeqCst);
    let filler = disk.path().join("filler");
    let mut filled = None;
    let is_made = match fault {
        Fault::Full => {
            filled = Some(fill(&filler));
            true
        }
        Fault::ReadOnly => disk.make_read_only(),
        Fault::ShutDown => disk.shut_down(),
    };
    if !is_made {
        skip("the file system cannot be made to fail");
        return running.end().await;
    }
    is_noticed(&running, kind, fault).await;
    running.serves(ANSWERS).await;
    if let Some(filled) = filled {
        drop(filled);
        std::fs::remove_file(filler).unwrap();
        writes(&running, kind).await;
        running.serves(ANSWERS).await;
    }
    let cut = running.load.tally.cut.load(Ordering::Relaxed);
    assert!(cut <= RESOURCES as u64, "{cut} were cut");
    running.end().await;
}

/// More than sockets hold.
const LARGE_BYTES: u64 = 11_000_000;
const SMALL_BYTES: u64 = 2_000;
/// So many that each of two disks has some.
const SMALL: u64 = 24;

/// The answer from the store, without a request to the origin.
async fn stored(larder: &Process, target: &str) -> Option<Response> {
    let request = asking(target).field("Cache-Control", "only-if-cached");
    let answer = within("an answer", connect(larder.addr).await.exchange(&request)).await.unwrap();
    (answer.status != 504).then_some(answer)
}

/// Everything lies on disks alone when one of two is lost, and a client is in the middle of a large body.
async fn what_the_other_disk_has_is_served(kind: Kind) {
    let Some(disk) = Fault::ShutDown.file_system() else { return skip("an ext4 cannot be mounted") };
    let scripts = vec![cacheable("/small/*", SMALL_BYTES), cacheable("/large", LARGE_BYTES)];
    let origin = Origin::simple(scripts).unwrap();
    let sound = tempfile::tempdir().unwrap();
    let stand = Stand::within(kind, &origin.url(), disk.path(), sound.path());
    let text = std::fs::read_to_string(&stand.config).unwrap() + "max_object = \"12MiB\"\n";
    std::fs::write(&stand.config, text).unwrap();
    let mut larder = stand.start().await;
    let targets: Vec<String> = (0..SMALL).map(|number| format!("/small/{number}")).collect();
    assert_whole(&within("a miss", get(larder.addr, "/large")).await, "/large", LARGE_BYTES);
    for target in &targets {
        assert_whole(&within("a miss", get(larder.addr, target)).await, target, SMALL_BYTES);
    }
    stand.is_settled(&larder, 0).await;
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0);
    let larder = stand.start().await;
    let progress = Progress::default().pause_at(65_536);
    let (watched, mut client) = (progress.clone(), connect(larder.addr).await);
    client.write(&asking("/large").to_http1()).await.unwrap();
    let reading = tokio::spawn(async move { client.read_response("GET", &watched).await.unwrap() });
    within("its first bytes", progress.until(65_536)).await;
    let asked = origin.log().count();
    if !disk.shut_down() {
        return skip("the file system cannot be shut down");
    }
    progress.resume();
    let large = within("the large one", reading).await.unwrap();
    assert!(large.body == bytes_of("/large", 0, large.body.len() as u64), "{large}");
    let mut found = 0;
    for target in &targets {
        if let Some(answer) = stored(&larder, target).await {
            assert_whole(&answer, target, SMALL_BYTES);
            found += 1;
        }
    }
    println!("{kind:?}: {found} of {SMALL}, and {} bytes of {LARGE_BYTES}", large.body.len());
    assert_eq!(origin.log().count(), asked);
    if kind == MIRROR {
        assert_whole(&large, "/large", LARGE_BYTES);
        assert_whole(&stored(&larder, "/large").await.unwrap(), "/large", LARGE_BYTES);
        assert_eq!(found, SMALL);
    } else {
        assert!((1..SMALL).contains(&found));
    }
    for (target, bytes) in
        targets.iter().map(|target| (&target[..], SMALL_BYTES)).chain([("/large", LARGE_BYTES)])
    {
        assert_whole(&within("an answer", get(larder.addr, target)).await, target, bytes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_mirror_has_is_served_when_one_disk_is_lost() {
    what_the_other_disk_has_is_served(MIRROR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_other_disk_of_a_stripe_has_is_served_when_one_is_lost() {
    what_the_other_disk_has_is_served(STRIPE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_other_of_hashed_disks_has_is_served_when_one_is_lost() {
    what_the_other_disk_has_is_served(HASH).await;
}

const HOT_BYTES: u64 = 60_000;

/// Asks for it so often that memory would like to have it as a file.
async fn heat(larder: &Process, target: &str) {
    let mut connection = connect(larder.addr).await;
    for number in 0..400 {
        let answer = within("an answer", connection.exchange(&asking(target))).await.unwrap();
        assert_whole(&answer, target, HOT_BYTES);
        assert!(number < 2 || cache_status(&answer).contains("; hit"), "{answer}");
    }
}

/// Bodies that the kernel can send from a file in memory.
fn files_in_memory(larder: &Process) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", larder.pid)).unwrap();
    let links = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("/memfd:larder-body")).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_that_gets_no_files_costs_nobody_an_answer() {
    let origin = Origin::simple(vec![cacheable("/hot/*", HOT_BYTES)]).unwrap();
    let larder = Stand::new(Kind::Memory, &origin.url()).start().await;
    let Some(injecting) = Injecting::attached(&larder, &["memfd_create:error=ENFILE"]).await else { return };
    heat(&larder, "/hot/1").await;
    assert_eq!(files_in_memory(&larder), 0, "the fault was not made");
    drop(injecting);
    until("files are had again", async || {
        heat(&larder, "/hot/2").await;
        files_in_memory(&larder) > 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_a_mirror_costs_nobody_an_answer() {
    fails(MIRROR, Fault::Full).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_a_stripe_costs_nobody_an_answer() {
    fails(STRIPE, Fault::Full).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_hashed_ones_costs_nobody_an_answer() {
    fails(HASH, Fault::Full).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_directory_of_files_costs_nobody_an_answer() {
    fails(Kind::Files, Fault::Full).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_disk_of_a_mirror_costs_nobody_an_answer() {
    fails(MIRROR, Fault::ReadOnly).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_disk_of_a_stripe_costs_nobody_an_answer() {
    fails(STRIPE, Fault::ReadOnly).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_disk_of_hashed_ones_costs_nobody_an_answer() {
    fails(HASH, Fault::ReadOnly).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_directory_of_files_costs_nobody_an_answer() {
    fails(Kind::Files, Fault::ReadOnly).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_disk_of_a_mirror_costs_nobody_an_answer() {
    fails(MIRROR, Fault::ShutDown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_disk_of_a_stripe_costs_nobody_an_answer() {
    fails(STRIPE, Fault::ShutDown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_disk_of_hashed_ones_costs_nobody_an_answer() {
    fails(HASH, Fault::ShutDown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_directory_of_files_costs_nobody_an_answer() {
    fails(Kind::Files, Fault::ShutDown).await;
}
