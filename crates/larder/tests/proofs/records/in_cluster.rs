//! A Redis Cluster: each node has its share of the records, slots may move and nodes may die while larders share.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use larder_testkit::redis::RedisOnPort;

use super::{Larder, Scene, checked, is_hit, leased, shares, together};
use crate::redis_servers::{Nodes, is_well};
use crate::support::{until, written};

#[tokio::test]
async fn larders_share_and_purge_over_all_nodes() {
    let nodes = Nodes::start(0).await;
    let mut scene = Scene::saying(nodes.said());
    scene.timeout = "2s";
    let (_folder, config) = written(&scene.config("web-1", ""));
    let (is_well, told) = checked(&config).await;
    assert!(is_well && told.contains("the cluster of 127.0.0.1:") && told.contains("Redis 7."), "{told}");
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    for number in 0..40 {
        scene.fetched_by(&first, &format!("/page-{number}-100")).await;
    }
    scene.fetched_by(&first, "/long-700000").await;
    for number in 0..40 {
        assert!(is_hit(&second.get(&format!("/page-{number}-100")).await), "{number}");
    }
    assert_eq!(second.get("/long-700000").await.body, first.get("/long-700000").await.body);
    assert!(nodes.records().iter().all(|records| *records > 3), "{:?}", nodes.records());
    let now = scene.change();
    assert_eq!(second.purge(r#"{"tags": ["page"]}"#).await.0, 200);
    for number in 0..40 {
        let target = format!("/page-{number}-100");
        assert_eq!((first.state(&target).await, second.state(&target).await), (now, now));
    }
    // Variants have two records of one key.
    for language in ["de", "en"] {
        let request = |larder: &Larder| {
            let _ = larder;
            larder_testkit::client::Request::new("GET", "/vary-100", "localhost")
                .field("Accept-Language", language)
        };
        let one = first.ask(&request(&first)).await;
        until("its record is there", async || {
            first.process.metrics().await.sum("larder_remote_queue_bytes") == 0
        })
        .await;
        let other = second.ask(&request(&second)).await;
        assert!(is_hit(&other) && one.body == other.body, "{language}: {other}");
    }
}

#[tokio::test]
async fn slots_move_under_load_and_no_request_fails() {
    let nodes = Nodes::start(0).await;
    let mut scene = Scene::saying(nodes.said());
    scene.timeout = "2s";
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    let is_over = AtomicBool::new(false);
    let load = async |larder: &Larder, of: &str| {
        let mut asked = 0;
        while !is_over.load(Ordering::Acquire) {
            let target = format!("/load-{}-100", asked % 60);
            let answer = larder.get(&target).await;
            assert_eq!(answer.status, 200, "{of}");
            assert!(answer.body.windows(target.len()).any(|window| window == target.as_bytes()), "{answer}");
            asked += 1;
        }
        asked
    };
    let moves = async {
        // That of the fleet's log, and some others.
        let fleet = nodes.slot("larder:1:{fleet}");
        for slot in [fleet.as_str(), "0", "1", "5461", "10923", fleet.as_str()] {
            let from = nodes.owner(slot);
            nodes.migrate(slot, from, (from + 1) % 3);
            until("purges are complete", async || first.purge(r#"{"tags": ["nothing"]}"#).await.0 == 200)
                .await;
            shares(&scene, (&first, &second)).await;
        }
        is_over.store(true, Ordering::Release);
    };
    let (asked, asked_too, ()) = tokio::join!(load(&first, "first"), load(&second, "second"), moves);
    assert!(asked > 100 && asked_too > 100, "{asked} {asked_too}");
}

/// Versions lie at all nodes, each with a connection that tells of changes.
#[tokio::test]
async fn versions_are_known_and_told_of_wherever_they_lie() {
    let nodes = Nodes::start(0).await;
    let mut scene = Scene::saying(nodes.said());
    scene.timeout = "2s";
    let versions = "versions = { keys = [\"ver:{path}\"], timeout = \"2s\" }";
    let larder = scene.with_site("web-1", versions).await;
    let pages: Vec<String> = (0..12).map(|number| format!("/page-{number}-100")).collect();
    for page in &pages {
        nodes.tell(&["SET", &format!("ver:{page}"), "1"]);
    }
    let owners: std::collections::BTreeSet<usize> =
        pages.iter().map(|page| nodes.owner(&nodes.slot(&format!("ver:{page}")))).collect();
    assert_eq!(owners.len(), 3, "some at each node");
    let current = async |page: &str| {
        let now = scene.state.load(Ordering::SeqCst);
        until("it is current", async || larder.state(page).await == now).await;
        until("its version is known", async || {
            let answer = larder.get(page).await;
            assert_eq!(super::state(&answer), now, "{page}");
            is_hit(&answer)
        })
        .await;
    };
    for page in &pages {
        current(page).await;
    }
    let reads = |nodes: &Nodes| -> usize {
        let count = |node: &RedisOnPort| {
            let told = node.raw().ask(&[b"INFO", b"commandstats"]).unwrap();
            let told = String::from_utf8_lossy(&told).into_owned();
            let line =
                told.lines().find_map(|line| line.strip_prefix("cmdstat_getrange:calls=")).unwrap_or("0,");
            line.split(',').next().unwrap().parse::<usize>().unwrap()
        };
        nodes.0.iter().map(count).sum()
    };
    // A machine that stands still for longer than a sign of life may take has them read once more.
    until("they are known without asking", async || {
        let (before, mut hits) = (reads(&nodes), 0);
        for page in pages.iter().cycle().take(20 * pages.len()) {
            hits += usize::from(is_hit(&larder.get(page).await));
        }
        hits == 20 * pages.len() && reads(&nodes) == before
    })
    .await;
    let (before, mut unchanged) = (scene.state.load(Ordering::SeqCst), 0);
    scene.change();
    for page in &pages {
        unchanged += usize::from(larder.state(page).await == before);
        nodes.tell(&["INCR", &format!("ver:{page}")]);
        current(page).await;
    }
    assert!(unchanged > pages.len() / 2, "{unchanged}: nothing was counted up before");
    // Its slot moves, and then it is counted up at its new node.
    let slot = nodes.slot(&format!("ver:{}", pages[0]));
    let from = nodes.owner(&slot);
    nodes.migrate(&slot, from, (from + 1) % 3);
    for page in [&pages[0], &pages[1]] {
        scene.change();
        nodes.tell(&["INCR", &format!("ver:{page}")]);
        current(page).await;
    }
}

/// A node that hangs concerns its own versions alone, and these are known again when it is back, though nothing was read meanwhile for as
/// long as anything counts as in use.
#[tokio::test]
async fn a_node_that_hangs_takes_its_own_versions_alone() {
    let nodes = Nodes::start_alone().await;
    let mut scene = Scene::saying(nodes.said());
    scene.timeout = "2s";
    let versions = "versions = { keys = [\"ver:{path}\"], timeout = \"1s\" }";
    let larder = scene.with_site("web-1", versions).await;
    // It has no versions elsewhere.
    let other = scene.with_site("web-2", versions).await;
    let log = nodes.owner(&nodes.slot("larder:1:{fleet}"));
    let owner = |page: &str| nodes.owner(&nodes.slot(&format!("ver:{page}")));
    let page_at = |hangs: bool| {
        let pages = (0..).map(|number| format!("/page-{number}-100"));
        // The node of the log has to answer in any case.
        pages.into_iter().find(|page| (owner(page) == (log + 1) % 3) == hangs).unwrap()
    };
    let (hung, well) = (page_at(true), page_at(false));
    for page in [&hung, &well] {
        nodes.tell(&["SET", &format!("ver:{page}"), "1"]);
        until("its version is known", async || is_hit(&larder.get(page).await)).await;
    }
    until("its version is known there too", async || is_hit(&other.get(&hung).await)).await;
    let hangs = &nodes.0[owner(&hung)];
    hangs.stop();
    until("its version is not known", async || !is_hit(&larder.get(&hung).await)).await;
    let began = std::time::Instant::now();
    let (mut hits, mut asked) = (0, 0);
    while began.elapsed() < std::time::Duration::from_secs(12) {
        assert_eq!((larder.get(&hung).await.status, other.get(&hung).await.status), (200, 200));
        hits += u32::from(is_hit(&larder.get(&well).await));
        asked += 1;
    }
    assert!(hits * 10 > asked * 8, "{hits} of {asked}");
    hangs.resume();
    for larder in [&larder, &other] {
        until("its version is known again", async || is_hit(&larder.get(&hung).await)).await;
    }
}

#[tokio::test]
async fn a_larder_that_was_there_before_its_cluster_knows_versions_once_there_is_one() {
    let nodes = Nodes((0..3).map(|_| RedisOnPort::start_node()).collect());
    let mut scene = Scene::saying(nodes.said());
    scene.timeout = "1s";
    let versions = "versions = { keys = [\"ver:{path}\"], timeout = \"1s\" }";
    let (_folder, config) = written(&scene.config("web-1", versions));
    let process = crate::support::Process::run_config(&config).await;
    process.says("no node of the cluster is known to have its keys").await;
    let get = async || crate::support::get(process.addr, "/page-100").await;
    assert_eq!(get().await.status, 200);
    nodes.join(0).await;
    nodes.tell(&["SET", "ver:/page-100", "1"]);
    until("its version is known", async || is_hit(&get().await)).await;
}

/// While a slot is on its way, its keys are asked for at both ends.
#[tokio::test]
async fn a_record_on_its_way_is_found() {
    let nodes = Nodes::start(0).await;
    let mut scene = Scene::saying(nodes.said());
    scene.timeout = "2s";
    let (first, second) = scene.two().await;
    scene.fetched_by(&first, "/page-100").await;
    let owner = nodes.records().iter().position(|records| *records == 1).unwrap();
    let name = nodes.0[owner].raw().ask_list(&[b"KEYS", b"larder:1:default:r:*"]).unwrap().remove(0);
    let slot = nodes.0[owner].raw().ask(&[b"CLUSTER", b"KEYSLOT", &name]).unwrap();
    let slot = String::from_utf8(slot).unwrap().trim_start_matches(':').to_owned();
    let to = (owner + 1) % 3;
    // Its only key has gone already, and the slot has not.
    nodes.begins_to_move(&slot, owner, to);
    nodes.moves_keys(&slot, owner, to);
    assert!(is_hit(&second.get("/page-100").await), "by ASK");
    assert_eq!(scene.asked("/page-100"), 1);
}

/// Who fetches for all cannot be said while the slot is on its way: two keys are asked for, and the new node may not have both.
#[tokio::test]
async fn a_page_whose_slot_is_on_its_way_is_fetched_all_the_same() {
    let nodes = Nodes::start(0).await;
    let mut scene = Scene::saying(nodes.said());
    scene.timeout = "2s";
    let (first, second) = scene.two().await;
    scene.fetched_by(&first, "/slow-100").await;
    let owner = nodes.records().iter().position(|records| *records == 1).unwrap();
    let name = nodes.0[owner].raw().ask_list(&[b"KEYS", b"larder:1:default:r:*"]).unwrap().remove(0);
    let name = String::from_utf8(name).unwrap();
    assert_eq!(first.purge(r#"{"tags": ["page"]}"#).await.0, 200);
    nodes.tell(&["DEL", &name]);
    let (slot, to) = (nodes.slot(&name), (owner + 1) % 3);
    nodes.begins_to_move(&slot, owner, to);
    let (one, other) = tokio::join!(first.get("/slow-100"), second.get("/slow-100"));
    assert_eq!((one.status, other.status), (200, 200));
    let asked = scene.asked("/slow-100");
    assert!((2..=3).contains(&asked), "{asked}: once before, and once or each for itself");
    nodes.moves_keys(&slot, owner, to);
    nodes.has_moved(&slot, to);
    shares(&scene, (&first, &second)).await;
    let now = scene.change();
    assert_eq!(first.purge(r#"{"tags": ["page"]}"#).await.0, 200);
    let (one, other) = tokio::join!(first.state("/slow-100"), second.state("/slow-100"));
    assert_eq!((one, other), (now, now));
    // What came last could not be shared, so each may still fetch for itself.
    assert!((1..=2).contains(&(scene.asked("/slow-100") - asked)), "{}", scene.asked("/slow-100"));
}

#[tokio::test]
async fn a_node_that_dies_is_replaced_by_its_replica_and_no_request_fails() {
    let mut nodes = Nodes::start(1).await;
    let mut scene = Scene::saying(nodes.said());
    scene.timeout = "1s";
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    shares(&scene, (&first, &second)).await;
    // The one that has the fleet's log.
    let owner = nodes.owner(&nodes.slot("larder:1:{fleet}"));
    let mut killed = nodes.0.remove(owner);
    killed.kill();
    let is_over = AtomicBool::new(false);
    let load = async {
        let mut asked = 0;
        while !is_over.load(Ordering::Acquire) {
            assert_eq!(first.get(&format!("/load-{asked}-100")).await.status, 200);
            asked += 1;
        }
        asked
    };
    let back = async {
        until("its replica has its place", async || nodes.masters() == 3 && nodes.0.iter().all(is_well))
            .await;
        leased(&[&first, &second]).await;
        until("a purge is complete", async || first.purge(r#"{"tags": ["page"], "wait": 1}"#).await.0 == 200)
            .await;
        shares(&scene, (&first, &second)).await;
        is_over.store(true, Ordering::Release);
    };
    let (asked, ()) = tokio::join!(load, back);
    assert!(asked > 20, "{asked}");
    // Those at the new node too, which has a number of its own behind the one that died.
    for number in 0..30 {
        first.get(&format!("/after-{number}-100")).await;
    }
    until("all of them are listed", async || {
        let text = listed(&first).await;
        text.lines().filter(|line| line.contains(" remote ") && line.contains("/after-")).count() == 30
    })
    .await;
}

/// What `larder ls --remote` prints.
async fn listed(larder: &Larder) -> String {
    let admin = larder.process.admin.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(["ls", "--remote", "--admin", &admin]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_records_of_all_nodes_are_listed() {
    let nodes = Nodes::start(0).await;
    let scene = Scene::saying(nodes.said());
    let larder = scene.larder("web-1").await;
    for number in 0..30 {
        larder.get(&format!("/{number}")).await;
    }
    until("all records are there", async || nodes.records().iter().sum::<usize>() == 30).await;
    assert!(nodes.records().iter().all(|records| *records > 0));
    let text = listed(&larder).await;
    let count = |place: &str| text.lines().filter(|line| line.contains(place)).count();
    assert_eq!((count(" memory "), count(" remote ")), (30, 30), "{text}");
}

#[tokio::test]
async fn the_slot_of_a_record_and_its_node_are_explained() {
    let nodes = Nodes::start(0).await;
    let scene = Scene::saying(nodes.said());
    let larder = scene.larder("web-1").await;
    for number in 0..5 {
        let told = larder.record(&format!("/{number}")).await;
        let slot = nodes.slot(told["name"].as_str().unwrap());
        let port = nodes.0[nodes.owner(&slot)].port;
        assert_eq!(told["server"]["slot"].to_string(), slot, "{told}");
        assert_eq!(told["server"]["server"], format!("redis 127.0.0.1:{port}"), "{told}");
    }
}
