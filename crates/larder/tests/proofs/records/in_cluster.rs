//! A Redis Cluster: each node has its share of the records, slots may move and nodes may die while larders share.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use larder_testkit::redis::RedisOnPort;

use super::{Larder, Scene, checked, is_hit, leased, shares, together};
use crate::support::{until, written};

/// Three masters, each with a replica where that is wanted.
pub(super) struct Nodes(pub(super) Vec<RedisOnPort>);

impl Nodes {
    pub(super) async fn start(replicas: usize) -> Self {
        let nodes = Self((0..3 * (1 + replicas)).map(|_| RedisOnPort::start_node()).collect());
        nodes.join(replicas).await;
        nodes
    }

    /// They become a cluster.
    async fn join(&self, replicas: usize) {
        let addresses: Vec<String> = self.0.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]).args(&addresses);
        create.args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"]);
        let output = tokio::task::spawn_blocking(move || create.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{output:?}");
        until("the cluster is well", async || self.0.iter().all(is_well)).await;
    }

    /// What a config says of it: one node that is no other's.
    pub(super) fn said(&self) -> String {
        let addresses: Vec<String> =
            self.0.iter().take(3).map(|node| format!("\"127.0.0.1:{}\"", node.port)).collect();
        format!("cluster = [{}]", addresses.join(", "))
    }

    /// How many records there are at each.
    fn records(&self) -> Vec<usize> {
        let count =
            |node: &RedisOnPort| node.raw().ask_list(&[b"KEYS", b"larder:1:default:r:*"]).unwrap().len();
        self.0.iter().map(count).collect()
    }

    /// Which node has a slot, by its place.
    pub(super) fn owner(&self, slot: &str) -> usize {
        let told = self.0.iter().find_map(|node| {
            let said = node.raw().ask(&[b"CLUSTER", b"NODES"])?;
            let said = String::from_utf8(said).ok()?;
            let own = said.lines().find(|line| line.contains("myself"))?;
            let stretches = own.split(' ').skip(8).filter(|stretch| !stretch.starts_with('['));
            let slot: u32 = slot.parse().ok()?;
            let has = |stretch: &str| {
                let (first, last) = stretch.split_once('-').unwrap_or((stretch, stretch));
                first.parse::<u32>().is_ok_and(|first| first <= slot)
                    && last.parse::<u32>().is_ok_and(|last| slot <= last)
            };
            (own.contains("master") && stretches.into_iter().any(has)).then_some(node.port)
        });
        self.0.iter().position(|node| Some(node.port) == told).unwrap()
    }

    /// Has the cluster do something with a key, at whichever node that has it.
    fn tell(&self, words: &[&str]) {
        let mut command = Command::new("redis-cli");
        command.args(["-c", "-p", &self.0[0].port.to_string()]).args(words);
        let output = command.output().unwrap();
        assert!(output.status.success() && !output.stdout.starts_with(b"ERR"), "{words:?}: {output:?}");
    }

    /// The slot of a key.
    pub(super) fn slot(&self, key: &str) -> String {
        let told = self.0[0].raw().ask(&[b"CLUSTER", b"KEYSLOT", key.as_bytes()]).unwrap();
        String::from_utf8(told).unwrap().trim_start_matches(':').to_owned()
    }

    /// How many of them are masters.
    pub(super) fn masters(&self) -> usize {
        let masters = self.0.iter().filter(|node| {
            let told = node.raw().ask(&[b"INFO", b"replication"]).unwrap();
            String::from_utf8_lossy(&told).contains("role:master")
        });
        masters.count()
    }

    fn id(&self, node: usize) -> String {
        String::from_utf8(self.0[node].raw().ask(&[b"CLUSTER", b"MYID"]).unwrap()).unwrap()
    }

    /// Moves a slot with its keys, as `redis-cli --cluster reshard` does.
    pub(super) fn migrate(&self, slot: &str, from: usize, to: usize) {
        let set = |node: usize, words: &[&str]| {
            let words: Vec<&[u8]> =
                ["CLUSTER", "SETSLOT", slot].iter().chain(words).map(|word| word.as_bytes()).collect();
            assert_eq!(self.0[node].raw().ask(&words).as_deref(), Some(&b"+OK"[..]));
        };
        let (source, target) = (self.id(from), self.id(to));
        set(to, &["IMPORTING", &source]);
        set(from, &["MIGRATING", &target]);
        let port = self.0[to].port.to_string();
        loop {
            let keys = [&b"CLUSTER"[..], b"GETKEYSINSLOT", slot.as_bytes(), b"100"];
            let keys = self.0[from].raw().ask_list(&keys).unwrap();
            if keys.is_empty() {
                break;
            }
            for key in keys {
                let migrate = [&b"MIGRATE"[..], b"127.0.0.1", port.as_bytes(), &key, b"0", b"5000"];
                let said = self.0[from].raw().ask(&migrate).unwrap();
                assert!(said == b"+OK" || said == b"+NOKEY", "{}", String::from_utf8_lossy(&said));
            }
        }
        for node in (0..3).filter(|node| *node != to).chain([to]) {
            set(node, &["NODE", &target]);
        }
    }
}

pub(super) fn is_well(node: &RedisOnPort) -> bool {
    let told = node.raw().ask(&[b"CLUSTER", b"INFO"]).unwrap();
    let told = String::from_utf8_lossy(&told);
    let replication = node.raw().ask(&[b"INFO", b"replication"]).unwrap();
    // A replica that has nothing yet takes no master's place.
    let is_behind = String::from_utf8_lossy(&replication).contains("master_link_status:down");
    told.contains("cluster_state:ok") && told.contains("cluster_size:3") && !is_behind
}

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
    let (before, asked) = (reads(&nodes), scene.origin.log().count_of("/page-0-100"));
    for _ in 0..20 {
        for page in &pages {
            assert!(is_hit(&larder.get(page).await), "{page}");
        }
    }
    assert_eq!((reads(&nodes), scene.asked("/page-0-100")), (before, asked), "known without asking");
    scene.change();
    for page in &pages {
        assert!(is_hit(&larder.get(page).await), "nothing was counted up yet");
        nodes.tell(&["INCR", &format!("ver:{page}")]);
        current(page).await;
    }
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
    let set = |node: usize, words: [&str; 2]| {
        let words = [&b"CLUSTER"[..], b"SETSLOT", slot.as_bytes(), words[0].as_bytes(), words[1].as_bytes()];
        assert_eq!(nodes.0[node].raw().ask(&words).as_deref(), Some(&b"+OK"[..]));
    };
    set(to, ["IMPORTING", &nodes.id(owner)]);
    set(owner, ["MIGRATING", &nodes.id(to)]);
    let port = nodes.0[to].port.to_string();
    let migrate = [&b"MIGRATE"[..], b"127.0.0.1", port.as_bytes(), &name, b"0", b"5000"];
    assert_eq!(nodes.0[owner].raw().ask(&migrate).as_deref(), Some(&b"+OK"[..]));
    assert!(is_hit(&second.get("/page-100").await), "by ASK");
    assert_eq!(scene.asked("/page-100"), 1);
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
}
