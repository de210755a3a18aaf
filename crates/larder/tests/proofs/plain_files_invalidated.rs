//! What is invalidated is served from no plain file: not where the file system has become read-only, and not after a larder was
//! killed before it removed the file.
//!
//! The faults are made as root; where the means are missing the test says so and is done.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use larder_testkit::client::Request;
use larder_testkit::origin::Origin;

use super::disks::mounted::{Mounted, skip};
use super::plain_files::{config_with, file};
use crate::support::{
    Process, Signal, answer_of, assert_whole, cache_status, connect, get, script, until, within,
};

const BYTES: u64 = 2_000;
/// What may lie under the path of the site, and how it is invalidated.
const MODES: [&str; 2] = ["", "invalidate = \"remove\""];

/// Pages in a group, and what takes that out.
fn origin() -> Origin {
    let page = ["Cache-Control: max-age=3600", "ETag: \"v\""];
    let grouped = [&page[..], &["Cache-Groups: \"g\""]].concat();
    let group = answer_of(&["Cache-Group-Invalidation: \"g\""], 0);
    let pages = ["/a", "/b", "/c"].map(|target| script(target, answer_of(&page, BYTES)));
    let others = [script("/in", answer_of(&grouped, BYTES)), script("/group", group)];
    Origin::simple(pages.into_iter().chain(others).collect()).unwrap()
}

async fn post(larder: &Process, target: &str) {
    let request = Request::new("POST", target, "localhost");
    let answer =
        within("a POST", async { connect(larder.addr).await.exchange(&request).await.unwrap() }).await;
    assert!(answer.status < 300, "{answer}");
}

/// Whether the origin was asked for it.
async fn is_asked(larder: &Process, origin: &Origin, target: &str) -> bool {
    let before = origin.log().count();
    let answer = within("an answer", get(larder.addr, target)).await;
    assert_whole(&answer, target, BYTES);
    let is_asked = origin.log().count() > before;
    assert_eq!(is_asked, !cache_status(&answer).contains("; hit"), "{answer}");
    is_asked
}

async fn stored(larder: &Process, folder: &Path, targets: &[&str]) {
    for target in targets {
        within("a miss", get(larder.addr, target)).await;
        file(folder, &target[1..]).await;
    }
    until("all are hits", async || {
        let mut hits = 0;
        for target in targets {
            hits += usize::from(cache_status(&get(larder.addr, target).await).contains("; hit"));
        }
        hits == targets.len()
    })
    .await;
}

#[tokio::test]
async fn what_is_invalidated_on_a_file_system_that_became_read_only_is_not_served() {
    for mode in MODES {
        let Some(disk) = Mounted::tmpfs("4M") else { return skip("a file system cannot be mounted") };
        let origin = origin();
        let path = config_with(disk.path(), &origin.url(), mode);
        let mut larder = Process::run_config(&path).await;
        stored(&larder, disk.path(), &["/a", "/b", "/c", "/in"]).await;
        until("nothing is open for writing", async || disk.remount("remount,ro")).await;
        post(&larder, "/a").await;
        post(&larder, "/group").await;
        for _ in 0..2 {
            assert!(is_asked(&larder, &origin, "/a").await, "{mode}: the old page is served");
            assert!(is_asked(&larder, &origin, "/in").await, "{mode}: the old page of a group is served");
            assert!(!is_asked(&larder, &origin, "/b").await, "{mode}: what is there is served");
        }
        // A purge that cannot be kept is not acknowledged, and nothing is served that it has named.
        let purge = Request::new("DELETE", "/object?url=http%3A%2F%2Flocalhost%2Fc", "localhost");
        let answer = within("a purge", async { connect(larder.admin).await.exchange(&purge).await.unwrap() });
        assert!(answer.await.status >= 500, "{mode}");
        assert!(is_asked(&larder, &origin, "/c").await, "{mode}: a purged page is served");
        larder.says("what was invalidated cannot be written down").await;
        let metrics = larder.metrics().await;
        let figures = ["larder_files_journal_behind", "larder_files_invalidated", "larder_store_degraded"];
        // What could not be stored anew counts as well: its file is older than what was given out.
        assert_eq!(figures.map(|name| metrics.sum(name)), [1, 3, 1], "{mode}");
        // Writable again: it is written down, and holds after a kill.
        assert!(disk.remount("remount,rw"));
        until("it is written down", async || larder.metrics().await.sum("larder_files_journal_behind") == 0)
            .await;
        let said = larder.stderr();
        let told = said.iter().filter(|line| line.contains("cannot be written down")).count();
        assert_eq!(told, 1, "{mode}: {said:?}");
        larder.signal(Signal::KILL);
        larder.gone().await;
        let larder = Process::run_config(&path).await;
        assert!(is_asked(&larder, &origin, "/a").await, "{mode}: the old page is back");
        assert!(is_asked(&larder, &origin, "/in").await, "{mode}: the old page of a group is back");
        assert!(is_asked(&larder, &origin, "/c").await, "{mode}: a purged page is back");
        assert!(!is_asked(&larder, &origin, "/b").await, "{mode}: what nobody invalidated is a hit");
    }
}

/// strace on a process, which holds up whatever takes files out, until it is dropped.
struct HeldUp(RefCell<Child>);

impl HeldUp {
    async fn of(larder: &Process) -> Option<Self> {
        let strace = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-p", &larder.pid.to_string()])
            .args(["-e", "trace=renameat,unlinkat"])
            .args(["-e", "inject=renameat,unlinkat:delay_enter=600000000"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let held = Self(RefCell::new(strace.ok()?));
        // Each thread: the one that takes files out may be the last that it attaches to.
        let is_traced = || {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", larder.pid)).unwrap();
            let mut statuses =
                tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
            statuses.all(|status| {
                status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
            })
        };
        let has_ended = || held.0.borrow_mut().try_wait().is_ok_and(|status| status.is_some());
        until("strace has attached", async || has_ended() || is_traced()).await;
        let is_held = !has_ended();
        is_held.then_some(held)
    }
}

impl Drop for HeldUp {
    fn drop(&mut self) {
        let strace = self.0.get_mut();
        let _ = strace.kill();
        let _ = strace.wait();
    }
}

#[tokio::test]
async fn what_was_invalidated_before_a_kill_is_not_served_although_its_file_is_there() {
    for mode in MODES {
        let root = tempfile::tempdir().unwrap();
        let origin = origin();
        let path = config_with(root.path(), &origin.url(), mode);
        let mut larder = Process::run_config(&path).await;
        stored(&larder, root.path(), &["/a", "/b", "/c", "/in"]).await;
        let (a, mine) = (file(root.path(), "a").await, file(root.path(), "c").await);
        let Some(held) = HeldUp::of(&larder).await else {
            return skip("there is no strace, or it cannot attach");
        };
        post(&larder, "/a").await;
        post(&larder, "/c").await;
        post(&larder, "/group").await;
        assert!(a.exists(), "it is held up");
        larder.signal(Signal::KILL);
        drop(held);
        larder.gone().await;
        assert!(a.exists(), "{mode}: the file is still there");
        // What a person puts there afterwards is newer than the invalidation.
        std::fs::remove_file(&mine).unwrap();
        std::fs::write(&mine, "by hand").unwrap();
        let larder = Process::run_config(&path).await;
        assert_eq!(within("by hand", get(larder.addr, "/c")).await.body, b"by hand", "{mode}");
        assert!(is_asked(&larder, &origin, "/a").await, "{mode}: the old page is back");
        assert!(is_asked(&larder, &origin, "/in").await, "{mode}: the old page of a group is back");
        assert!(!is_asked(&larder, &origin, "/b").await, "{mode}: what nobody invalidated is a hit");
    }
}

/// What a larder has left elsewhere that could not write to this folder.
fn witnesses(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.to_str().unwrap().to_owned();
    let files =
        ["/var/tmp", "/dev/shm"].into_iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten();
    let is_ours = |path: &PathBuf| {
        let is_named = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("larder-"));
        is_named && std::fs::read_to_string(path).is_ok_and(|text| text.contains(&folder))
    };
    files.map(|file| file.unwrap().path()).filter(is_ours).collect()
}

#[tokio::test]
async fn what_could_not_be_written_down_before_a_kill_is_not_believed() {
    let Some(disk) = Mounted::tmpfs("4M") else { return skip("a file system cannot be mounted") };
    let origin = origin();
    let path = config_with(disk.path(), &origin.url(), "");
    for signal in [Signal::KILL, Signal::TERM] {
        let mut larder = Process::run_config(&path).await;
        stored(&larder, disk.path(), &["/a", "/b"]).await;
        let mine = file(disk.path(), "a").await.with_file_name("mine");
        std::fs::write(&mine, "by hand").unwrap();
        until("nothing is open for writing", async || disk.remount("remount,ro")).await;
        post(&larder, "/a").await;
        larder.says("until then a restart uses nothing that larder stored there before").await;
        larder.signal(signal);
        larder.gone().await;
        assert!(disk.remount("remount,rw"));
        let mut larder = Process::run_config(&path).await;
        assert!(is_asked(&larder, &origin, "/a").await, "the old page is back");
        assert!(is_asked(&larder, &origin, "/b").await, "nobody knows whether it was invalidated");
        assert_eq!(within("by hand", get(larder.addr, "/mine")).await.body, b"by hand");
        until("what was left elsewhere is gone", async || witnesses(disk.path()).is_empty()).await;
        larder.signal(Signal::KILL);
        larder.gone().await;
    }
}

#[tokio::test]
async fn a_crash_of_the_file_system_ends_no_answer_and_serves_nothing_old() {
    let Some(disk) = Mounted::ext4("errors=continue") else { return skip("an ext4 cannot be mounted") };
    let origin = origin();
    let path = config_with(disk.path(), &origin.url(), "");
    let text = std::fs::read_to_string(&path).unwrap();
    // Where the file system is gone the config is still there.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("larder.toml");
    std::fs::write(&path, text).unwrap();
    let mut larder = Process::run_config(&path).await;
    stored(&larder, disk.path(), &["/a", "/b"]).await;
    disk.sync();
    if !disk.shut_down() {
        return skip("the file system cannot be shut down");
    }
    post(&larder, "/a").await;
    for _ in 0..2 {
        assert!(is_asked(&larder, &origin, "/a").await, "the old page is served");
    }
    larder.says("cannot be written down").await;
    larder.signal(Signal::TERM);
    larder.end().await;
    let left = witnesses(disk.path());
    assert!(!left.is_empty(), "the next start is warned");
    left.iter().for_each(|path| std::fs::remove_file(path).unwrap());
}
