//! `larder fsck` on the directory of a disk that a larder has written: sound, damaged, in use, and none at all.

use std::path::Path;
use std::process::{Command, Output};

use larder_testkit::origin::Origin;
use serde_json::Value;

use crate::support::{Process, Signal, cache_status, cacheable, config, get, until, written};

async fn fsck(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg("fsck").args(arguments);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn json(disk: &str, code: i32) -> Value {
    let output = fsck(&[disk, "--json"]).await;
    assert_eq!(output.status.code(), Some(code), "{}", said(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Turns one bit of the first file in `disk` that contains `text`, there.
fn damage(disk: &Path, text: &[u8]) {
    for entry in std::fs::read_dir(disk).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let is_segment = path.extension().is_some_and(|kind| kind == "seg");
        if let (true, Some(at)) = (is_segment, bytes.windows(text.len()).position(|window| window == text)) {
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            return;
        }
    }
    panic!("nothing in {} has {}", disk.display(), text.escape_ascii());
}

#[tokio::test]
async fn a_disk_is_read_without_a_larder() {
    let origin = Origin::simple(vec![cacheable("/a", 1000), cacheable("/b", 700_000)]).unwrap();
    let store = "[stores.default]\nmemory = \"16MiB\"\ndisks = [{ path = \"d1\", size = \"64MiB\" }]\n";
    let (directory, path) = written(&config(&origin.url(), "", store));
    let disk = directory.path().join("d1");
    let name = disk.to_str().unwrap();
    let mut larder = Process::run_config(&path).await;
    for target in ["/a", "/b"] {
        until("it is stored", async || cache_status(&get(larder.addr, target).await).contains("; hit")).await;
    }
    let output = fsck(&[name]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output.stderr).contains("in use by another larder"), "{}", said(&output.stderr));
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0);

    std::fs::write(disk.join("notes.txt"), "mine").unwrap();
    let report = json(name, 0).await;
    assert_eq!((&report["sound"], &report["responses"]), (&Value::from(true), &Value::from(2)), "{report}");
    assert_eq!(
        (&report["pieces"], &report["damaged"]),
        (&Value::from(3), &serde_json::json!([])),
        "{report}"
    );
    assert!(report["foreign"][0].as_str().unwrap().ends_with("/notes.txt"), "{report}");
    let output = fsck(&[name]).await;
    let text = said(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("not larder's: ") && text.ends_with("\nsound\n"), "{text}");

    damage(&disk, b"localhost/a");
    let report = json(name, 1).await;
    assert_eq!((&report["sound"], &report["responses"]), (&Value::from(false), &Value::from(1)), "{report}");
    assert!(report["damaged"][0]["file"].as_str().unwrap().ends_with(".seg"), "{report}");
    let output = fsck(&[name]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output.stdout).ends_with("\ndamaged\n"), "{}", said(&output.stdout));

    // What is damaged is not served, and the rest is.
    let larder = Process::run_config(&path).await;
    assert!(cache_status(&get(larder.addr, "/b").await).contains("; hit"));
    assert!(cache_status(&get(larder.addr, "/a").await).contains("fwd="));
}

#[tokio::test]
async fn what_is_no_disk_is_wrong_use() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().to_str().unwrap();
    let none = directory.path().join("none");
    for arguments in [&[empty][..], &[none.to_str().unwrap()], &[], &[empty, "more"]] {
        let output = fsck(arguments).await;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output.stderr));
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
    std::fs::write(directory.path().join("larder"), "nonsense").unwrap();
    let report = json(empty, 1).await;
    assert_eq!((&report["disk"], &report["sound"]), (&Value::Null, &Value::from(false)));
}
