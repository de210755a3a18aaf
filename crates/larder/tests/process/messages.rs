//! larder's own messages where they cannot be written: a full disk, a reader who has gone, a pipe that nobody reads.
//!
//! Reload, signals and requests go on as if nothing were wrong, and what was not written is counted.

use std::io::PipeReader;
use std::path::Path;
use std::process::{Command, Stdio};

use larder_testkit::origin::Origin;

use crate::support::{Process, Signal, cacheable, config, get, until, written};

const MARKED: &str = "response = { set = { X-Config = \"two\" } }";

/// A larder whose messages go to `stderr`.
async fn started(path: &Path, stderr: impl Into<Stdio>) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(["run", "-c", path.to_str().unwrap()]);
    let mut larder = Process::spawn_with(command, Stdio::piped(), stderr.into());
    larder.greeted().await;
    larder
}

async fn reloads(larder: &Process, result: &str) -> u64 {
    let series = format!("larder_config_reloads_total{{result=\"{result}\"}}");
    larder.metrics().await.value(&series).unwrap_or(0.0) as u64
}

async fn dropped(larder: &Process) -> u64 {
    larder.metrics().await.sum("larder_messages_dropped_total")
}

/// A pipe with as little room as there can be.
fn pipe() -> (PipeReader, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    (reader, writer)
}

/// Reloads a bad config until messages are dropped, then a good one, and ends; each has to have its effect.
async fn goes_on(origin: &Origin, stderr: impl Into<Stdio>) {
    let good = |site: &str| config(&origin.url(), "", site);
    let (_directory, path) = written(&good(""));
    let mut larder = started(&path, stderr).await;
    assert_eq!(get(larder.addr, "/a").await.status, 200);
    // Two hundred errors are more than the pipe takes; after that nothing is written, and the queue fills.
    std::fs::write(&path, "wrong = 1\n[[site]]\nttl = \"ten\"\n".replace("wrong", &"x".repeat(2000)))
        .unwrap();
    let mut refused = 0;
    while dropped(&larder).await == 0 {
        larder.signal(Signal::HUP);
        refused += 1;
        until("the reload is refused", async || reloads(&larder, "error").await >= refused).await;
        assert!(refused < 2000, "the queue has no end");
    }
    std::fs::write(&path, good(MARKED)).unwrap();
    larder.signal(Signal::HUP);
    until("the reload took effect", async || reloads(&larder, "ok").await == 1).await;
    assert_eq!(get(larder.addr, "/a").await.fields.first("x-config"), Some("two"));
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0);
}

fn origin() -> Origin {
    Origin::simple(vec![cacheable("/a", 10)]).unwrap()
}

#[tokio::test]
async fn a_full_disk_behind_standard_error_ends_nothing() {
    goes_on(&origin(), std::fs::File::options().write(true).open("/dev/full").unwrap()).await;
}

#[tokio::test]
async fn a_standard_error_whose_reader_has_gone_ends_nothing() {
    let (reader, writer) = pipe();
    drop(reader);
    goes_on(&origin(), writer).await;
}

#[tokio::test]
async fn a_standard_error_that_nobody_reads_stops_neither_reload_nor_signals() {
    let (_reader, writer) = pipe();
    goes_on(&origin(), writer).await;
}

/// In all three cases for standard output too: the greeting is lost, and larder runs.
#[tokio::test]
async fn a_greeting_that_cannot_be_written_ends_nothing() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let (gone, unread) = (pipe(), pipe());
    drop(gone.0);
    // So that the greeting finds no room.
    rustix::io::write(&unread.1, &[b'-'; 4096]).unwrap();
    for stdout in [Stdio::from(full), gone.1.into(), unread.1.into()] {
        let origin = origin();
        let directory = tempfile::tempdir().unwrap();
        let [log, path] = ["access.log", "larder.toml"].map(|name| directory.path().join(name));
        let text = config(&origin.url(), "", "");
        std::fs::write(&path, format!("{text}[log]\naccess = \"{}\"\n", log.display())).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(["run", "-c", path.to_str().unwrap()]);
        let mut larder = Process::spawn_with(command, stdout, Stdio::piped());
        until("it has started", async || log.exists()).await;
        larder.signal(Signal::HUP);
        larder.says("larder: reloaded").await;
        larder.signal(Signal::TERM);
        assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
    }
}

/// `larder ls | head` and the like.
#[tokio::test]
async fn commands_end_well_when_their_reader_has_seen_enough() {
    let origin = origin();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    get(larder.addr, "/a").await;
    let (directory, path) = written(&config(&origin.url(), "", ""));
    let (admin, url) = (larder.admin.to_string(), "http://localhost/a");
    let (path, out) = (path.to_str().unwrap(), directory.path().join("out"));
    let asking = ["--admin", &admin];
    let commands: [&[&str]; 9] = [
        &["check", "-c", path],
        &["ls"],
        &["stats"],
        &["explain", url],
        &["get", url],
        &["export", out.to_str().unwrap()],
        &["rm", url],
        &["--help"],
        &["ls", "--help"],
    ];
    for command in commands {
        let asks = !matches!(command[0], "check" | "--help");
        let mut run = Command::new(env!("CARGO_BIN_EXE_larder"));
        run.args(command).args(asks.then_some(asking).into_iter().flatten());
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut ended = Process::spawn_with(run, writer.into(), Stdio::piped());
        let code = ended.end().await;
        assert!(ended.stderr().iter().all(|line| !line.contains("panicked")), "{:?}", ended.stderr());
        assert_eq!(code, 0, "{command:?}: {:?}", ended.stderr());
    }
    // A disk that is full is a failure, said where it can be.
    for command in [&["check", "-c", path][..], &["explain", url], &["stats"]] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_larder"));
        run.args(command).args((command[0] != "check").then_some(asking).into_iter().flatten());
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut ended = Process::spawn_with(run, full.into(), Stdio::piped());
        assert_eq!(ended.end().await, 1, "{command:?}: {:?}", ended.stderr());
        assert!(ended.stderr().join("\n").contains("larder: error: "), "{:?}", ended.stderr());
    }
}
