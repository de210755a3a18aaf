//! Faults of Redis under a steady load: no request fails, waits for longer than the limit or gets a wrong body, and nothing stays open.
//!
//! [`load`](super::load) has the rules and the table. Each test has two larders and one or more faults, one after the other, and prints a line for
//! each; `--nocapture` shows them.

use std::time::Duration;

use larder_testkit::certificates::Certificates;
use larder_testkit::redis::RedisServer;

use super::between::{Between, Harm};
use super::load::{Load, lasts, loaded};
use super::over_tls::{Guarded, expired};
use super::{Scene, checked, leased};
use crate::redis_servers::{Nodes, Watched, is_well};
use crate::support::until;

/// A number in `INFO`.
fn info(scene: &Scene, section: &str, name: &str) -> u64 {
    let told = scene.ask(&["INFO", section]).unwrap();
    let line = told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap_or("0");
    line.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_and_started_again_with_nothing_and_with_an_older_state() {
    let mut scene = loaded(Scene::new());
    let (first, second) = scene.two().await;
    let mut load = Load::begin(&scene, [&first, &second]).await;
    scene.redis.kill();
    lasts().await;
    load.line("killed, and away", &scene).await;
    scene.redis.restart();
    lasts().await;
    load.line("back with nothing", &scene).await;
    until("purges are complete", async || load.complete() > 0).await;
    // It reads this file when it starts.
    scene.ask(&["SET", "marker", "1"]);
    scene.ask(&["SAVE"]);
    let before = load.complete();
    until("more purges are complete", async || load.complete() > before + 2).await;
    scene.redis.kill();
    scene.redis.restart();
    until("it has read its file", async || scene.ask(&["GET", "marker"]).as_deref() == Some("1")).await;
    lasts().await;
    load.line("back with an older state", &scene).await;
    load.end(&scene, [&first, &second]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standing_still_for_long_and_again_and_again() {
    let scene = loaded(Scene::of(RedisServer::start_with(&["--enable-debug-command", "yes"]), ""));
    let (first, second) = scene.two().await;
    let mut load = Load::begin(&scene, [&first, &second]).await;
    lasts().await;
    load.line("nothing", &scene).await;
    scene.redis.stop();
    lasts().await;
    scene.redis.resume();
    load.line("SIGSTOP, SIGCONT", &scene).await;
    leased(&[&first, &second]).await;
    let sleeps = |millis: u64, times: u32| {
        let mut raw = scene.redis.raw();
        let seconds = format!("{}.{:03}", millis / 1000, millis % 1000);
        tokio::task::spawn_blocking(move || {
            for _ in 0..times {
                assert_eq!(raw.ask(&[b"DEBUG", b"SLEEP", seconds.as_bytes()]).as_deref(), Some(&b"+OK"[..]));
            }
        })
    };
    sleeps(1100, 1).await.unwrap();
    lasts().await;
    load.line("DEBUG SLEEP", &scene).await;
    // Its replies are as late as the clients' patience ends.
    load.clients_leave(true);
    let asleep = async {
        loop {
            sleeps(20, 5).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = asleep => {}
        () = lasts() => {}
    }
    load.clients_leave(false);
    load.line("half of the clients leave", &scene).await;
    load.end(&scene, [&first, &second]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_under_each_policy_and_emptied() {
    let scene = loaded(Scene::new());
    let (first, second) = scene.two().await;
    let mut load = Load::begin(&scene, [&first, &second]).await;
    for policy in [
        "noeviction",
        "volatile-lru",
        "volatile-lfu",
        "volatile-ttl",
        "volatile-random",
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
    ] {
        let refused = || info(&scene, "stats", "total_error_replies");
        let (evicted, errors) = (info(&scene, "stats", "evicted_keys"), refused());
        scene.ask(&["CONFIG", "SET", "maxmemory-policy", policy]);
        let used = info(&scene, "memory", "used_memory");
        scene.ask(&["CONFIG", "SET", "maxmemory", &used.to_string()]);
        lasts().await;
        until("it is full", async || {
            info(&scene, "stats", "evicted_keys") > evicted || (policy == "noeviction" && refused() > errors)
        })
        .await;
        scene.ask(&["CONFIG", "SET", "maxmemory", "0"]);
        load.line(&format!("full, {policy}"), &scene).await;
    }
    let emptied = async {
        loop {
            scene.ask(&["FLUSHALL"]);
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    };
    tokio::select! {
        () = emptied => {}
        () = lasts() => {}
    }
    load.line("FLUSHALL, each 250 ms", &scene).await;
    load.end(&scene, [&first, &second]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_by_a_replica_that_lacks_the_last_purges() {
    let mut watched = Watched::start().await;
    let scene = loaded(Scene::saying(watched.said()));
    let (first, second) = scene.two().await;
    let mut load = Load::begin(&scene, [&first, &second]).await;
    watched.replicas_lag();
    let before = load.complete();
    until("purges are complete that the replicas do not have", async || load.complete() > before + 2).await;
    watched.fails_over().await;
    lasts().await;
    leased(&[&first, &second]).await;
    load.line("failover, tail lost", &scene).await;
    load.end(&scene, [&first, &second]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_whose_slots_move_and_whose_node_dies() {
    let mut nodes = Nodes::start(1).await;
    let scene = loaded(Scene::saying(nodes.said()));
    let (first, second) = scene.two().await;
    let mut load = Load::begin(&scene, [&first, &second]).await;
    let fleet = nodes.slot("larder:1:{fleet}");
    let moved = async {
        let mut slots: Vec<String> = (0..16_384).step_by(97).map(|slot: u32| slot.to_string()).collect();
        slots.insert(5, fleet.clone());
        for slot in slots.iter().cycle() {
            let from = nodes.owner(slot);
            nodes.migrate(slot, from, (from + 1) % 3);
            // As often as the machine has room for beside the load.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = moved => {}
        () = lasts() => {}
    }
    load.line("slots move", &scene).await;
    let mut killed = nodes.0.remove(nodes.owner(&fleet));
    killed.kill();
    load.one_node_more();
    until("its replica has its place", async || {
        tokio::time::sleep(Duration::from_millis(50)).await;
        nodes.masters() == 3 && nodes.0.iter().all(is_well)
    })
    .await;
    lasts().await;
    leased(&[&first, &second]).await;
    load.line("a node is killed", &scene).await;
    load.end(&scene, [&first, &second]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_off_at_each_byte_and_answering_with_garbage() {
    let mut scene = loaded(Scene::new());
    let between = Between::before(scene.redis.socket()).await;
    scene.said = format!("url = \"redis://{}\"", between.addr);
    let (first, second) = scene.two().await;
    let mut load = Load::begin(&scene, [&first, &second]).await;
    for (harm, name) in [
        (Harm::Cut, "cut within replies"),
        (Harm::Garbage, "garbage"),
        (Harm::Announced, "100 MiB announced"),
    ] {
        let before = between.harmed();
        between.does(harm);
        lasts().await;
        until("some replies are concerned", async || between.harmed() > before).await;
        between.does(Harm::Nothing);
        let harmed = between.harmed() - before;
        println!("{name}: {harmed} replies; of short records {} places so far", between.places());
        load.line(name, &scene).await;
    }
    load.end(&scene, [&first, &second]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_certificate_that_expires() {
    let guarded = Guarded::start();
    let scene = loaded(Scene::saying(guarded.said()));
    let (first, second) = scene.two().await;
    let mut load = Load::begin(&scene, [&first, &second]).await;
    guarded.shows(&expired());
    guarded.tell_unverified(&["CLIENT", "KILL", "USER", "larder"]);
    lasts().await;
    let (is_well, told) = checked(&first.folder.path().join("larder.toml")).await;
    assert!(!is_well && told.contains("the certificate has expired"), "{told}");
    guarded.shows(&Certificates::new());
    load.line("certificate expired", &scene).await;
    leased(&[&first, &second]).await;
    load.end(&scene, [&first, &second]).await;
}
