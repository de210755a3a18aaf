//! In which order the journal's calls reach the file system: what a crash of the machine may leave of it follows from that.

use std::process::{Command, Stdio};

use super::*;

/// The child of the tests below: has the journal written as a whole.
#[test]
#[ignore = "runs as a child of another test"]
fn writes_its_journal() {
    let Some(path) = std::env::var_os("LARDER_FILES_TEST") else { return };
    let store = open(Path::new(&path), 1 << 20, |_| {});
    store.note(&Note { number: 7, moment: 9, what: b"g-one".to_vec() });
    store.shared().journal.sync();
    store.close();
}

/// The child's calls, each a line; `None` without strace.
fn calls_of_child(more: &[&str]) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-e", "trace=renameat,renameat2,pwrite64,fdatasync,ftruncate"]).args(more);
    strace.arg("-o").arg(&log).arg(std::env::current_exe().unwrap());
    strace.args(["--exact", "--ignored", "tests::ordered::writes_its_journal"]);
    strace.env("LARDER_FILES_TEST", folder.path().join("store"));
    let is_run = strace.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|run| run.success());
    let calls = is_run.then(|| std::fs::read_to_string(&log).ok()).flatten();
    if calls.is_none() {
        eprintln!("skipped: there is no strace, or it may not be used");
    }
    let calls = calls?;
    Some(calls.lines().filter(|line| line.contains(".larder/journal")).map(str::to_owned).collect())
}

fn is_call(line: &str, name: &str, file: &str) -> bool {
    line.contains(&format!(" {name}(")) && line.contains(file)
}

#[test]
fn a_journal_that_takes_the_place_of_another_is_on_the_disk_before() {
    let Some(calls) = calls_of_child(&[]) else { return };
    let renamed = calls.iter().position(|line| line.contains(" renameat")).unwrap();
    let before = &calls[..renamed];
    let written = before.iter().rposition(|line| is_call(line, "pwrite64", ".larder/journal.new>")).unwrap();
    let synced = before.iter().rposition(|line| is_call(line, "fdatasync", ".larder/journal.new>"));
    assert!(synced.is_some_and(|synced| synced > written), "{calls:#?}");
}

#[test]
fn a_journal_that_is_written_over_another_gets_its_head_last() {
    // Nothing can take its place.
    let Some(calls) = calls_of_child(&["-e", "inject=renameat,renameat2:error=ENOSPC"]) else { return };
    let cut = calls.iter().position(|line| is_call(line, "ftruncate", ".larder/journal>")).unwrap();
    let over: Vec<&str> = calls[cut..]
        .iter()
        .filter(|line| line.contains(".larder/journal>"))
        .map(|line| line.split_once(' ').unwrap().1.trim_start())
        .collect();
    let [_, rest, synced, head, ..] = &over[..] else { panic!("{calls:#?}") };
    let is_at = |line: &str, at: usize| {
        let ends = [format!(", {at})"), format!(", {at} <unfinished")];
        line.starts_with("pwrite64(") && ends.iter().any(|end| line.contains(end))
    };
    assert!(is_at(rest, larder_tier::format::log::LOG_HEAD_BYTES), "{over:#?}");
    assert!(synced.starts_with("fdatasync(") && is_at(head, 0), "{over:#?}");
}
