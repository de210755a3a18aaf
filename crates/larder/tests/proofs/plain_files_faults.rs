//! A store of plain files whose file system crashes or cannot be read: real ones, on loop devices.
//!
//! Each fault is made as root; where the means are missing the test says so and is done.

use larder_testkit::client::Request;
use larder_testkit::origin::Origin;

use super::disks::mounted::{Mounted, skip};
use super::plain_files::{config, file};
use crate::support::{Process, Signal, assert_whole, cache_status, cacheable, connect, get, until, within};

const SMALL: u64 = 2_000;
const LARGE: u64 = 300_000;

/// Takes a URL out by the admin address; the answer says that this is durable.
async fn purge(larder: &Process, target: &str) {
    let url = format!("http%3A%2F%2Flocalhost{}", target.replace('/', "%2F"));
    let request = Request::new("DELETE", &format!("/object?url={url}"), "localhost");
    let answer = within("a purge", async { connect(larder.admin).await.exchange(&request).await });
    let answer = answer.await.unwrap_or_else(|error| panic!("{error}: {:?}", larder.stderr()));
    assert_eq!(answer.status, 200, "{answer}");
}

#[tokio::test]
async fn what_was_purged_stays_away_after_a_crash_of_the_machine() {
    // It writes nothing down by itself meanwhile.
    let disk = Mounted::ext4("errors=continue,commit=600");
    let Some(disk) = disk else { return skip("an ext4 cannot be mounted") };
    let targets = ["/a/one", "/a/two", "/b/gone"];
    let origin = Origin::simple(targets.map(|target| cacheable(target, SMALL)).to_vec()).unwrap();
    let path = config(disk.path(), &origin.url());
    let mut larder = Process::run_config(&path).await;
    for target in targets {
        assert_whole(&within("a miss", get(larder.addr, target)).await, target, SMALL);
        file(disk.path(), &target[1..]).await;
    }
    disk.sync();
    // A file whose removal nobody has waited for yet: it is gone, and a purge says that this holds.
    let gone = file(disk.path(), "b/gone").await;
    let post = Request::new("POST", "/b/gone", "localhost");
    within("a POST", async { connect(larder.addr).await.exchange(&post).await.unwrap() }).await;
    until("the file is gone", async || !gone.exists()).await;
    purge(&larder, "/b/gone").await;
    purge(&larder, "/a/one").await;
    if !disk.shut_down() {
        return skip("the file system cannot be shut down");
    }
    larder.signal(Signal::KILL);
    larder.gone().await;
    disk.mount_again();
    let host = disk.path().join("html/localhost");
    assert!(!host.join("a/one").exists(), "a purged file is back");
    assert!(!host.join("b/gone").exists(), "a purged file is back that was gone already");
    assert!(host.join("a/two").exists());
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_a_miss() {
    // Without a journal: writing to it would bring back what the device has lost, as zeros.
    let disk = Mounted::ext4_made_with(&["-O", "^has_journal", "-b", "4096"], "errors=continue");
    let Some(disk) = disk else { return skip("an ext4 cannot be mounted") };
    let targets = [("/within", LARGE), ("/small", SMALL), ("/large", LARGE), ("/mine", SMALL)];
    let scripts = targets.map(|(target, bytes)| cacheable(target, bytes));
    let origin = Origin::simple(scripts.to_vec()).unwrap();
    let path = config(disk.path(), &origin.url());
    let mut larder = Process::run_config(&path).await;
    let mut files = Vec::new();
    for (target, bytes) in targets {
        assert_whole(&within("a miss", get(larder.addr, target)).await, target, bytes);
        files.push(file(disk.path(), &target[1..]).await);
        disk.sync();
    }
    std::fs::write(&files[3], "by hand").unwrap();
    disk.sync();
    larder.signal(Signal::TERM);
    larder.end().await;
    let larder = Process::run_config(&path).await;
    // The first file loses its second half, the others everything.
    let places = files.iter().map(|file| disk.place_of(file, if *file == files[0] { 40 } else { 0 }));
    let places: Option<Vec<u64>> = places.collect();
    let Some(places) = places else { return skip("nobody says where files lie") };
    let mut lost: Vec<_> = places.into_iter().enumerate().collect();
    lost.sort_by_key(|(_, place)| std::cmp::Reverse(*place));
    for (round, (number, place)) in lost.into_iter().enumerate() {
        let (target, bytes) = targets[number];
        // What is written later would bring back what is lost, as zeros.
        assert!(disk.forget(&disk.path().join("html/localhost")));
        disk.lose(place);
        let before = origin.log().count();
        if target == "/within" {
            // Its beginning can be read: one answer is cut, and it is the last one.
            let cut = within("an answer", get(larder.addr, target)).await;
            assert!((cut.body.len() as u64) < LARGE, "{cut}");
        }
        let answer = within("an answer", get(larder.addr, target)).await;
        assert_whole(&answer, target, bytes);
        assert!(cache_status(&answer).contains("fwd=uri-miss"), "{answer}");
        assert_eq!(origin.log().count(), before + 1, "{}", origin.log());
        assert_eq!(larder.metrics().await.sum("larder_files_unreadable_total"), round as u64 + 1);
        if target == "/mine" {
            assert!(files[3].exists(), "a person's file stays");
            continue;
        }
        until("it is stored anew", async || {
            let answer = get(larder.addr, target).await;
            assert_whole(&answer, target, bytes);
            cache_status(&answer).contains("; hit")
        })
        .await;
    }
    larder.says("cannot be read: Input/output error").await;
}
