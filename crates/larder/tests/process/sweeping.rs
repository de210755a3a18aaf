//! What purges by anything but a URL leave in stores: it goes a little later, is counted, and does not come back after a kill.

use larder_testkit::client::{Request, Response};
use larder_testkit::origin::Origin;

use crate::support::{
    Process, Signal, answer_of, cache_status, config, connect, get, script, until, within, written,
};

fn origin() -> Origin {
    let tagged = |path, tag| script(path, answer_of(&["Cache-Control: max-age=60", tag], 700));
    Origin::simple(vec![tagged("/img/*", "Surrogate-Key: picture"), tagged("/page/*", "Surrogate-Key: page")])
        .unwrap()
}

/// With a store that keeps everything in `place`.
fn storing(origin: &Origin, place: &str) -> String {
    let site = format!(
        "[[site.rule]]\npath = \"/*\"\nstore = \"kept\"\n[stores.kept]\nmemory = \"8MiB\"\n{place}\n"
    );
    config(&origin.url(), "", &site)
}

async fn purge(larder: &Process, what: &str) -> Response {
    let request = Request::new("POST", "/api/v1/purges", "localhost")
        .field("Content-Type", "application/json")
        .body(what.to_owned());
    let answer = within("a purge", async { connect(larder.admin).await.exchange(&request).await.unwrap() });
    let answer = answer.await;
    assert_eq!(answer.status, 200, "{answer}");
    answer
}

async fn stored(larder: &Process, targets: &[&str]) {
    for target in targets {
        until("it is stored", async || cache_status(&get(larder.addr, target).await).contains("; hit")).await;
    }
}

#[tokio::test]
async fn a_purge_by_tag_goes_from_a_disk_and_retires() {
    let origin = origin();
    let (_directory, path) = written(&storing(&origin, "disks = [{ path = \"kept\", size = \"64MiB\" }]"));
    let larder = Process::run_config(&path).await;
    stored(&larder, &["/img/1", "/img/2", "/page/1"]).await;
    let objects = async |larder: &Process| {
        let metrics = larder.metrics().await;
        (metrics.sum("larder_disk_queued_objects") == 0).then(|| metrics.sum("larder_disk_objects"))
    };
    until("it is written", async || objects(&larder).await == Some(3)).await;
    purge(&larder, "{\"tags\": [\"picture\"]}").await;
    until("it has gone from the disk", async || objects(&larder).await == Some(1)).await;
    until("the purge has retired", async || {
        let metrics = larder.metrics().await;
        metrics.sum("larder_purge_predicates") == 0 && metrics.sum("larder_purged_objects_total") == 2
    })
    .await;
    assert!(cache_status(&get(larder.addr, "/img/1").await).contains("fwd="));
    assert!(cache_status(&get(larder.addr, "/page/1").await).contains("; hit"));
}

#[tokio::test]
async fn a_directory_of_plain_files_that_was_purged_stays_away_after_a_kill() {
    let origin = origin();
    let (directory, path) = written(&storing(&origin, "files = \"kept\""));
    let mut larder = Process::run_config(&path).await;
    stored(&larder, &["/img/1", "/page/1"]).await;
    let at = |name: &str| directory.path().join("kept/localhost").join(name);
    until("they are files", async || at("img/1").exists() && at("page/1").exists()).await;
    // Enough for several slices.
    (0..2000).for_each(|k| std::fs::write(at(&format!("img/by-hand-{k}")), "mine").unwrap());
    assert!(cache_status(&get(larder.addr, "/img/by-hand-7").await).contains("by-hand"));
    purge(&larder, "{\"prefixes\": [\"http://localhost/img/\"]}").await;
    larder.signal(Signal::KILL);
    larder.gone().await;
    assert!(!at("img").exists());
    let larder = Process::run_config(&path).await;
    for target in ["/img/1", "/img/by-hand-7"] {
        assert!(cache_status(&get(larder.addr, target).await).contains("fwd="), "{target}");
    }
    let other = get(larder.addr, "/page/1").await;
    assert!(cache_status(&other).contains("; hit"), "{other}");
    let aside = directory.path().join("kept/.larder/aside");
    let is_swept = || std::fs::read_dir(&aside).is_ok_and(|mut left| left.next().is_none());
    until("what was left is removed", async || is_swept()).await;
}
