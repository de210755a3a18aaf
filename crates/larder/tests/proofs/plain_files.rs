//! A store of plain files before a real origin: what people do to the files is what clients get next.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use larder_testkit::client::Request;
use larder_testkit::origin::{Answer, Hold, Origin};

use crate::support::{
    Process, Signal, answer_of, asking, assert_whole, cache_status, cacheable, connect, get, script, until,
    within,
};

const BODY_BYTES: u64 = 300_000;
const TARGET: &str = "/a/b.json";

/// A config with files below `root`, and the origin's address.
pub(crate) fn config(root: &Path, origin: &str) -> PathBuf {
    config_with(root, origin, "")
}

/// The same, with lines of the site.
pub(crate) fn config_with(root: &Path, origin: &str, site: &str) -> PathBuf {
    let path = root.join("larder.toml");
    let files = root.join("html");
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\nworkers = 2\n[origins.app]\nservers = [{origin:?}]\n\
         [stores.default]\nmemory = \"8MiB\"\nfiles = {files:?}\n[[site]]\norigin = \"app\"\n{site}\n"
    );
    fs::write(&path, text).unwrap();
    path
}

/// The only file of this name, once it is there.
pub(crate) async fn file(root: &Path, name: &str) -> PathBuf {
    let hosts = root.join("html");
    let find = || {
        let hosts = fs::read_dir(&hosts).unwrap().map(|host| host.unwrap().path());
        let mut found = hosts.map(|host| host.join(name)).filter(|path| path.is_file());
        found.next()
    };
    until(name, async || find().is_some()).await;
    find().unwrap()
}

#[tokio::test]
async fn what_is_done_to_a_file_is_what_clients_get_next() {
    let root = tempfile::tempdir().unwrap();
    let answer = answer_of(&["Cache-Control: max-age=3600", "ETag: \"v1\""], BODY_BYTES);
    let origin = Origin::simple(vec![script(TARGET, answer)]).unwrap();
    let config = config(root.path(), &origin.url());
    let mut larder = Process::run(&["-c", config.to_str().unwrap()]).await;

    assert_whole(&within("a miss", get(larder.addr, TARGET)).await, TARGET, BODY_BYTES);
    let stored = file(root.path(), "a/b.json").await;
    assert_eq!(fs::read(&stored).unwrap().len() as u64, BODY_BYTES);
    let hit = within("a hit", get(larder.addr, TARGET)).await;
    assert_whole(&hit, TARGET, BODY_BYTES);
    assert_eq!(origin.log().count(), 1, "the second came from the file");

    fs::write(&stored, "edited").unwrap();
    assert_eq!(within("an edit", get(larder.addr, TARGET)).await.body, b"edited");
    let beside = stored.with_file_name("never-asked-for.txt");
    fs::write(&beside, "hello").unwrap();
    let found = within("a new file", get(larder.addr, "/a/never-asked-for.txt")).await;
    assert_eq!((found.status, &found.body[..]), (200, &b"hello"[..]));
    assert_eq!(origin.log().count(), 1, "neither was asked for");

    // What a person put there outlives an invalidation; what larder stored does not.
    let mut connection = connect(larder.addr).await;
    within("a POST", connection.exchange(&Request::new("POST", TARGET, "localhost"))).await.unwrap();
    assert_eq!(within("an edit", connection.exchange(&asking(TARGET))).await.unwrap().body, b"edited");
    fs::remove_file(&stored).unwrap();
    assert_whole(&within("after rm", get(larder.addr, TARGET)).await, TARGET, BODY_BYTES);
    let stored = file(root.path(), "a/b.json").await;
    within("a POST", connection.exchange(&Request::new("POST", TARGET, "localhost"))).await.unwrap();
    until("the file is gone", async || !stored.is_file()).await;
    let before = origin.log().count();
    assert_whole(&within("after a POST", get(larder.addr, TARGET)).await, TARGET, BODY_BYTES);
    assert_eq!(origin.log().count(), before + 1);

    // And after a restart it is found.
    file(root.path(), "a/b.json").await;
    larder.signal(Signal::TERM);
    larder.end().await;
    let larder = Process::run(&["-c", config.to_str().unwrap()]).await;
    assert_whole(&within("after a restart", get(larder.addr, TARGET)).await, TARGET, BODY_BYTES);
    assert_eq!(origin.log().count(), before + 1);
}

/// Far more than a quarter of the store's memory.
const LARGE_BYTES: u64 = 6_000_000;

#[tokio::test]
async fn a_body_larger_than_memory_takes_becomes_a_file() {
    let root = tempfile::tempdir().unwrap();
    let origin = Origin::simple(vec![cacheable(TARGET, LARGE_BYTES)]).unwrap();
    let larder = Process::run_config(&config(root.path(), &origin.url())).await;
    assert_whole(&within("a miss", get(larder.addr, TARGET)).await, TARGET, LARGE_BYTES);
    let stored = file(root.path(), "a/b.json").await;
    assert_eq!(fs::metadata(&stored).unwrap().len(), LARGE_BYTES);
    let hit = within("a hit", get(larder.addr, TARGET)).await;
    assert_whole(&hit, TARGET, LARGE_BYTES);
    assert!(cache_status(&hit).contains("; hit"), "{hit}");
    assert_eq!(origin.log().count(), 1);
    let metrics = larder.metrics().await;
    assert!(metrics.sum("larder_cache_high_water_bytes") < 2_000_000, "it was in memory as a whole");
    assert_eq!(metrics.sum("larder_files_stored_total"), 1);
    assert!(metrics.sum("larder_files_bytes") > LARGE_BYTES);
}

#[tokio::test]
async fn a_large_body_that_a_client_leaves_is_stored_and_one_that_a_kill_ends_is_not() {
    let root = tempfile::tempdir().unwrap();
    let hold = |gate: &str| Answer {
        holds: vec![Hold { at: LARGE_BYTES / 2, gate: gate.to_owned() }],
        ..answer_of(&["Cache-Control: max-age=3600"], LARGE_BYTES)
    };
    let origin =
        Origin::simple(vec![script("/left", hold("left")), script("/killed", hold("killed"))]).unwrap();
    let config = config(root.path(), &origin.url());
    let mut larder = Process::run_config(&config).await;
    let temps = root.path().join("html/.larder/tmp");
    let written = || {
        let temps = fs::read_dir(&temps).unwrap().filter_map(|temp| temp.ok()?.metadata().ok());
        temps.map(|temp| temp.len()).max().unwrap_or(0)
    };
    for target in ["/left", "/killed"] {
        let mut connection = connect(larder.addr).await;
        within("a request", connection.write(&asking(target).to_http1())).await.unwrap();
        until("much of it is written", async || written() > LARGE_BYTES / 3).await;
        drop(connection);
        if target == "/left" {
            origin.gates().release("left");
            assert_eq!(fs::metadata(file(root.path(), "left").await).unwrap().len(), LARGE_BYTES);
        }
    }
    larder.signal(Signal::KILL);
    until("it is gone", async || !larder.is_running()).await;
    larder = Process::run_config(&config).await;
    assert_eq!(written(), 0);
    assert!(!root.path().join("html/localhost/killed").exists());
    assert_whole(&within("a hit", get(larder.addr, "/left")).await, "/left", LARGE_BYTES);
    assert_eq!(origin.log().count(), 2);
}

#[tokio::test]
async fn a_304_leaves_the_file_as_it_is_for_other_web_servers() {
    for bytes in [2_000, BODY_BYTES] {
        let root = tempfile::tempdir().unwrap();
        let answer = Answer { conditional: true, ..answer_of(&["ETag: \"v1\""], bytes) };
        let origin = Origin::simple(vec![script(TARGET, answer)]).unwrap();
        let larder = Process::run_config(&config_with(root.path(), &origin.url(), "ttl = \"200ms\"")).await;
        assert_whole(&within("a miss", get(larder.addr, TARGET)).await, TARGET, bytes);
        let stored = file(root.path(), "a/b.json").await;
        let identity = || {
            let found = fs::metadata(&stored).unwrap();
            (found.ino(), found.mtime(), found.mtime_nsec(), fs::read(&stored).unwrap())
        };
        let before = identity();
        for round in 1..=2 {
            until("it is validated", async || {
                let response = get(larder.addr, TARGET).await;
                assert_whole(&response, TARGET, bytes);
                cache_status(&response).contains("fwd-status=304")
            })
            .await;
            until("its meta is written", async || {
                larder.metrics().await.sum("larder_files_renewed_total") >= round
            })
            .await;
            assert!(identity() == before, "{bytes} bytes, round {round}");
        }
        assert_eq!(larder.metrics().await.sum("larder_files_stored_total"), 1);
        fs::write(&stored, "edited").unwrap();
        assert_eq!(within("an edit", get(larder.addr, TARGET)).await.body, b"edited");
    }
}

#[tokio::test]
async fn an_answer_put_there_by_hand_says_so() {
    let root = tempfile::tempdir().unwrap();
    let origin = Origin::simple(vec![cacheable(TARGET, 100)]).unwrap();
    let larder = Process::run_config(&config(root.path(), &origin.url())).await;
    assert_whole(&within("a miss", get(larder.addr, TARGET)).await, TARGET, 100);
    let stored = file(root.path(), "a/b.json").await;
    assert!(!cache_status(&get(larder.addr, TARGET).await).contains("detail"));
    fs::write(&stored, "edited").unwrap();
    let edited = within("an edit", get(larder.addr, TARGET)).await;
    let said = cache_status(&edited);
    assert!(said.starts_with("larder; hit; ttl=") && said.ends_with("; detail=by-hand"), "{said}");
    let metrics = larder.metrics().await;
    assert_eq!(metrics.sum("larder_files_by_hand_total"), 1);
    let explained = get(larder.admin, "/explain?url=http%3A%2F%2Flocalhost%2Fa%2Fb.json").await;
    let explained: serde_json::Value = serde_json::from_slice(&explained.body).unwrap();
    assert_eq!(explained["decision"]["reason"]["token"], "by-hand", "{explained}");
    assert_eq!(explained["decision"]["verdict"], "hit");
    assert_eq!(explained["stored"]["responses"][0]["freshness"]["source"]["token"], "by-hand", "{explained}");
    assert!(explained["cache_status"].as_str().unwrap().contains("detail=by-hand"));
    assert_eq!(explained["removal"].as_array().unwrap().len(), 1);
}
