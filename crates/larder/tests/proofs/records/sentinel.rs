//! A Redis that Sentinels watch over: larder finds the master, follows a failover, and believes no former master.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use larder_testkit::redis::RedisOnPort;

use super::{Scene, is_hit, leased, shares, state, together};
use crate::redis_servers::Watched;
use crate::support::{Signal, until};

#[tokio::test]
async fn a_failover_under_load_fails_no_request_and_no_purge_is_lost() {
    let mut watched = Watched::start().await;
    let scene = Scene::saying(watched.said());
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    scene.fetched_by(&first, "/a").await;
    assert!(is_hit(&second.get("/a").await));
    let is_over = AtomicBool::new(false);
    let load = async |larder: &super::Larder, of: &str| {
        let mut asked = 0;
        while !is_over.load(Ordering::Acquire) {
            let answer = larder.get(&format!("/load-{of}-{}", asked % 40)).await;
            assert_eq!(answer.status, 200);
            asked += 1;
        }
        asked
    };
    let over = async {
        watched.fails_over().await;
        together(&[&first, &second]).await;
        is_over.store(true, Ordering::Release);
    };
    let (asked, asked_too, ()) = tokio::join!(load(&first, "1"), load(&second, "2"), over);
    assert!(asked > 20 && asked_too > 20, "{asked} {asked_too}");
    let now = scene.change();
    until("a purge is complete", async || first.purge(r#"{"tags": ["page"]}"#).await.0 == 200).await;
    assert_eq!((state(&first.get("/a").await), state(&second.get("/a").await)), (now, now));
    shares(&scene, (&first, &second)).await;
}

/// The replicas stop following before the last purge. The new master knows nothing of it, and has the record from before.
#[tokio::test]
async fn a_purge_that_a_failover_loses_stays_in_force() {
    let mut watched = Watched::start().await;
    let scene = Scene::saying(watched.said());
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    scene.fetched_by(&first, "/a").await;
    let has_record = |server: &RedisOnPort| {
        !server.raw().ask_list(&[b"KEYS", b"larder:1:default:r:*"]).unwrap().is_empty()
    };
    until("the replicas have it", async || watched.servers.iter().all(has_record)).await;
    watched.replicas_lag();
    let before = first.fleet().await["epoch"].clone();
    let now = scene.change();
    assert_eq!(first.purge(r#"{"tags": ["page"]}"#).await.0, 200);
    watched.fails_over().await;
    until("the log is a new one", async || first.fleet().await["epoch"] != before).await;
    leased(&[&first, &second]).await;
    // A newcomer knows nothing but the new master's log.
    let third = scene.larder("web-3").await;
    for larder in [&first, &second, &third] {
        assert_eq!(larder.state("/a").await, now, "{}", larder.name);
    }
    shares(&scene, (&first, &third)).await;
}

/// A side of a partition that has no majority of the Sentinels cannot know whether its master still is one.
#[tokio::test]
async fn without_a_majority_of_the_sentinels_leases_end() {
    let watched = Watched::start().await;
    let mut scene = Scene::saying(watched.said());
    scene.wait = "1s";
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    scene.fetched_by(&first, "/a").await;
    assert!(is_hit(&second.get("/a").await));
    // One alone is no reason, be it silent.
    watched.sentinels[2].stop();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(first.has_lease().await && second.has_lease().await);
    assert_eq!(first.purge(r#"{"tags": ["nothing"]}"#).await.0, 200);
    watched.sentinels[2].resume();
    watched.sentinels[1..].iter().for_each(RedisOnPort::stop);
    until("the leases are over", async || !first.has_lease().await && !second.has_lease().await).await;
    let now = scene.change();
    assert_eq!((second.state("/a").await, first.state("/a").await), (now, now), "it asks the origin");
    // The server that they know answers, and may be a former one: others may use what it purges.
    second.process.stopped().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(first.purge(r#"{"tags": ["page"]}"#).await.0, 503, "its lease may go on at another server");
    second.process.signal(Signal::CONT);
    watched.sentinels[1..].iter().for_each(RedisOnPort::resume);
    leased(&[&first, &second]).await;
    shares(&scene, (&first, &second)).await;
}

/// Of three Sentinels one is asked by nobody but a larder whose list has only that one: it is a majority of its list. With two of which
/// one is dead there is none.
#[tokio::test]
async fn all_sentinels_of_the_list_count() {
    let mut watched = Watched::start().await;
    let one = format!("sentinel = \"127.0.0.1:{}\", master = \"main\"", watched.sentinels[0].port);
    let scene = Scene::saying(one);
    let alone = scene.larder("web-1").await;
    assert_eq!(alone.get("/a").await.status, 200);
    let two = format!(
        "sentinel = [\"127.0.0.1:{}\", \"127.0.0.1:{}\"], master = \"main\"",
        watched.sentinels[0].port, watched.sentinels[1].port
    );
    watched.sentinels[1].kill();
    let scene = Scene::saying(two);
    let (_folder, config) = crate::support::written(&scene.config("web-2", ""));
    let process = crate::support::Process::run_config(&config).await;
    process.says("no majority of the 2 Sentinels names a master \"main\"; 1 answered").await;
    let answer = crate::support::within("an answer", crate::support::get(process.addr, "/a")).await;
    assert_eq!(answer.status, 200);
    tokio::time::timeout(Duration::from_secs(5), alone.get("/b")).await.unwrap();
}
