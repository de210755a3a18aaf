//! A store of plain files before a real origin: what people do to the files is what clients get next.

use std::fs;
use std::path::{Path, PathBuf};

use larder_testkit::client::Request;
use larder_testkit::origin::Origin;

use crate::support::{Process, Signal, answer_of, asking, assert_whole, connect, get, script, until, within};

const BODY_BYTES: u64 = 300_000;
const TARGET: &str = "/a/b.json";

/// A config with files below `root`, and the origin's address.
fn config(root: &Path, origin: &str) -> PathBuf {
    let path = root.join("larder.toml");
    let files = root.join("html");
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\nworkers = 2\n[origins.app]\nservers = [{origin:?}]\n\
         [stores.default]\nmemory = \"8MiB\"\nfiles = {files:?}\n[[site]]\norigin = \"app\"\n"
    );
    fs::write(&path, text).unwrap();
    path
}

/// The only file of this name, once it is there.
async fn file(root: &Path, name: &str) -> PathBuf {
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
