//! A store of plain files without its directory: it is read-only, full, gone for a while, or another than before. Each time the
//! origin answers, the operator is told, and the directory is used as soon as it can be.

use std::path::{Path, PathBuf};
use std::process::Command;

use larder_testkit::origin::Origin;

use super::disks::mounted::{Mounted, skip};
use super::plain_files::{config, file};
use crate::support::{Process, Signal, assert_whole, cache_status, cacheable, get, until, within};

const BYTES: u64 = 2_000;

/// A config with the files of its store in `files`.
fn config_at(folder: &Path, origin: &str, files: &Path) -> PathBuf {
    let path = config(folder, origin);
    let text = std::fs::read_to_string(&path).unwrap();
    let before = format!("{:?}", folder.join("html"));
    std::fs::write(&path, text.replace(&before, &format!("{files:?}"))).unwrap();
    path
}

async fn health(larder: &Process) -> String {
    let answer = get(larder.admin, "/healthz").await;
    assert_eq!(answer.status, 200, "{answer}");
    String::from_utf8(answer.body).unwrap()
}

/// What `larder check` says of a config, and its exit code.
fn check(path: &Path) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_larder")).args(["check", "-c"]).arg(path).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

async fn until_hit(larder: &Process, target: &str) {
    until("it is stored", async || {
        let answer = get(larder.addr, target).await;
        assert_whole(&answer, target, BYTES);
        cache_status(&answer).contains("; hit")
    })
    .await;
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_to_ends_no_start() {
    for kind in ["read-only", "full"] {
        let disk = if kind == "full" { Mounted::ext4("errors=continue") } else { Mounted::tmpfs("1M") };
        let Some(disk) = disk else { return skip("a file system cannot be mounted") };
        let folder = tempfile::tempdir().unwrap();
        let origin = Origin::simple(vec![cacheable("/a", BYTES), cacheable("/b", BYTES)]).unwrap();
        let path = config_at(folder.path(), &origin.url(), &disk.path().join("html"));
        // What was stored before is there again afterwards.
        let mut larder = Process::run_config(&path).await;
        assert_eq!((check(&path).0, health(&larder).await), (0, "ok".to_owned()));
        until_hit(&larder, "/a").await;
        larder.signal(Signal::TERM);
        larder.end().await;
        let filler = disk.path().join("filler");
        match kind {
            "read-only" => assert!(disk.remount("remount,ro")),
            _ => {
                std::fs::remove_dir_all(disk.path().join("html")).unwrap();
                // What a file leaves takes a few directories.
                std::fs::create_dir(&filler).unwrap();
                assert!(std::fs::write(filler.join("file"), vec![7; 64 << 20]).is_err());
                let mut more = 0..100_000;
                assert!(more.any(|number| std::fs::create_dir(filler.join(number.to_string())).is_err()));
            }
        }
        let (code, said) = check(&path);
        assert!(code != 0 && said.contains("stores.default") && said.contains("os error"), "{kind}: {said}");
        let larder = Process::run_config(&path).await;
        larder.says("goes on without its files").await;
        assert_eq!(health(&larder).await, "degraded", "{kind}");
        let before = origin.log().count();
        for _ in 0..2 {
            assert_whole(&within("an answer", get(larder.addr, "/b")).await, "/b", BYTES);
        }
        assert_eq!(origin.log().count(), before + 2, "{kind}: {}", origin.log());
        let metrics = larder.metrics().await;
        for family in ["larder_files_absent", "larder_store_degraded"] {
            assert_eq!(metrics.sum(family), 1, "{kind}: {family}");
        }
        let stats = get(larder.admin, "/stats").await;
        let stats: serde_json::Value = serde_json::from_slice(&stats.body).unwrap();
        assert_eq!((&stats["health"], &stats["stores"][0]["degraded"]), (&"degraded".into(), &true.into()));
        assert_eq!(stats["stores"][0]["tiers"][1]["state"], "absent", "{stats}");
        match kind {
            "read-only" => assert!(disk.remount("remount,rw")),
            _ => std::fs::remove_dir_all(&filler).unwrap(),
        }
        larder.says("again").await;
        assert_eq!(health(&larder).await, "ok", "{kind}");
        let before = origin.log().count();
        if kind == "read-only" {
            let hit = within("a hit", get(larder.addr, "/a")).await;
            assert!(cache_status(&hit).contains("; hit"), "{hit}");
            assert_eq!(origin.log().count(), before, "what was stored before is used");
        }
        until_hit(&larder, "/b").await;
        assert_eq!((larder.metrics().await.sum("larder_store_degraded"), check(&path).0), (0, 0), "{kind}");
    }
}

#[tokio::test]
async fn files_of_a_directory_that_is_replaced_are_not_served() {
    let root = tempfile::tempdir().unwrap();
    let origin = Origin::simple(vec![cacheable("/a", BYTES), cacheable("/b", BYTES)]).unwrap();
    let larder = Process::run_config(&config(root.path(), &origin.url())).await;
    until_hit(&larder, "/a").await;
    let host = file(root.path(), "a").await.parent().unwrap().to_owned();
    let (path, name) = (root.path().join("html"), host.file_name().unwrap().to_owned());
    // Removed and built anew, with the content of a release.
    let release = |content: &str| {
        let host = root.path().join("next").join(&name);
        std::fs::create_dir_all(&host).unwrap();
        std::fs::write(host.join("b"), content).unwrap();
        root.path().join("next")
    };
    let next = release("first");
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::rename(next, &path).unwrap();
    until("the new one is served", async || get(larder.addr, "/b").await.body == b"first").await;
    let before = origin.log().count();
    assert_whole(&within("an answer", get(larder.addr, "/a")).await, "/a", BYTES);
    assert_eq!(origin.log().count(), before + 1, "what was in the old one is not served");
    until_hit(&larder, "/a").await;
    // Gone for a while: what was in it is neither served from files nor from memory.
    let away = root.path().join("away");
    std::fs::rename(&path, &away).unwrap();
    larder.says("the directory is gone").await;
    let before = origin.log().count();
    assert_whole(&within("an answer", get(larder.addr, "/a")).await, "/a", BYTES);
    assert_eq!(origin.log().count(), before + 1);
    assert_eq!(health(&larder).await, "degraded");
    std::fs::rename(&away, &path).unwrap();
    larder.says("again").await;
    assert_eq!(within("by hand", get(larder.addr, "/b")).await.body, b"first");
    // A newer one was given out meanwhile.
    let before = origin.log().count();
    assert_whole(&within("an answer", get(larder.addr, "/a")).await, "/a", BYTES);
    assert_eq!(origin.log().count(), before + 1);
    until_hit(&larder, "/a").await;
    assert_eq!(health(&larder).await, "ok");
}

/// It has not heard of what was invalidated while another was in use.
#[tokio::test]
async fn what_was_stored_in_a_directory_is_not_used_after_another_was_in_use() {
    let root = tempfile::tempdir().unwrap();
    let origin = Origin::simple(vec![cacheable("/a", BYTES), cacheable("/b", BYTES)]).unwrap();
    let larder = Process::run_config(&config(root.path(), &origin.url())).await;
    until_hit(&larder, "/a").await;
    let mine = file(root.path(), "a").await.with_file_name("mine");
    std::fs::write(&mine, "mine").unwrap();
    let [path, first, second] = ["html", "first", "second"].map(|name| root.path().join(name));
    let is_absent = async |absent: u64| {
        until("the directory is looked for", async || {
            larder.metrics().await.sum("larder_files_absent") == absent
        })
        .await;
    };
    // Each goes for a while before the other comes.
    std::fs::rename(&path, &first).unwrap();
    is_absent(1).await;
    std::fs::create_dir(&path).unwrap();
    is_absent(0).await;
    until_hit(&larder, "/b").await;
    std::fs::rename(&path, &second).unwrap();
    is_absent(1).await;
    std::fs::rename(&first, &path).unwrap();
    is_absent(0).await;
    assert_eq!(within("by hand", get(larder.addr, "/mine")).await.body, b"mine");
    let before = origin.log().count();
    let answer = within("an answer", get(larder.addr, "/a")).await;
    assert!(cache_status(&answer).contains("fwd="), "{answer}: {:?}", larder.stderr());
    assert_eq!(origin.log().count(), before + 1);
    until_hit(&larder, "/a").await;
}

#[tokio::test]
async fn files_of_a_root_that_is_replaced_are_not_served() {
    let root = tempfile::tempdir().unwrap();
    let origin = Origin::simple(vec![cacheable("/page", BYTES)]).unwrap();
    let dist = root.path().join("dist");
    let build = |content: &str| {
        std::fs::create_dir(&dist).unwrap();
        std::fs::write(dist.join("page"), content).unwrap();
    };
    build("one");
    let path = root.path().join("larder.toml");
    let text = crate::support::config(&origin.url(), "", &format!("root = {dist:?}"));
    std::fs::write(&path, text).unwrap();
    let larder = Process::run_config(&path).await;
    assert_eq!(within("a file", get(larder.addr, "/page")).await.body, b"one");
    std::fs::remove_dir_all(&dist).unwrap();
    build("two");
    until("the new one is served", async || get(larder.addr, "/page").await.body == b"two").await;
    std::fs::rename(&dist, root.path().join("old")).unwrap();
    until("there is none", async || get(larder.addr, "/page").await.body.len() as u64 == BYTES).await;
    build("three");
    until("it is back", async || get(larder.addr, "/page").await.body == b"three").await;
}
