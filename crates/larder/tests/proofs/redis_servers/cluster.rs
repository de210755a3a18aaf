//! A Redis Cluster of three masters, whose slots a test moves and whose nodes it ends.

use std::process::Command;

use larder_testkit::redis::RedisOnPort;

use crate::support::until;

/// Three masters, each with a replica where that is wanted.
pub(crate) struct Nodes(pub(crate) Vec<RedisOnPort>);

impl Nodes {
    pub(crate) async fn start(replicas: usize) -> Self {
        let nodes = Self((0..3 * (1 + replicas)).map(|_| RedisOnPort::start_node()).collect());
        nodes.join(replicas).await;
        nodes
    }

    /// Without replicas, and each answers though others are away.
    pub(crate) async fn start_alone() -> Self {
        let options = ["--cluster-require-full-coverage", "no"];
        let nodes = Self((0..3).map(|_| RedisOnPort::start_node_with(&options)).collect());
        nodes.join(0).await;
        nodes
    }

    /// They become a cluster.
    pub(crate) async fn join(&self, replicas: usize) {
        let addresses: Vec<String> = self.0.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]).args(&addresses);
        create.args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"]);
        let output = tokio::task::spawn_blocking(move || create.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{output:?}");
        until("the cluster is well", async || self.0.iter().all(is_well)).await;
    }

    /// What a config says of it: one node that is no other's.
    pub(crate) fn said(&self) -> String {
        let addresses: Vec<String> =
            self.0.iter().take(3).map(|node| format!("\"127.0.0.1:{}\"", node.port)).collect();
        format!("cluster = [{}]", addresses.join(", "))
    }

    /// How many records there are at each.
    pub(crate) fn records(&self) -> Vec<usize> {
        let count =
            |node: &RedisOnPort| node.raw().ask_list(&[b"KEYS", b"larder:1:default:r:*"]).unwrap().len();
        self.0.iter().map(count).collect()
    }

    /// Which node has a slot, by its place.
    pub(crate) fn owner(&self, slot: &str) -> usize {
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
    pub(crate) fn tell(&self, words: &[&str]) {
        let mut command = Command::new("redis-cli");
        command.args(["-c", "-p", &self.0[0].port.to_string()]).args(words);
        let output = command.output().unwrap();
        assert!(output.status.success() && !output.stdout.starts_with(b"ERR"), "{words:?}: {output:?}");
    }

    /// The slot of a key.
    pub(crate) fn slot(&self, key: &str) -> String {
        let told = self.0[0].raw().ask(&[b"CLUSTER", b"KEYSLOT", key.as_bytes()]).unwrap();
        String::from_utf8(told).unwrap().trim_start_matches(':').to_owned()
    }

    /// How many of them are masters.
    pub(crate) fn masters(&self) -> usize {
        let masters = self.0.iter().filter(|node| {
            let told = node.raw().ask(&[b"INFO", b"replication"]).unwrap();
            String::from_utf8_lossy(&told).contains("role:master")
        });
        masters.count()
    }

    pub(crate) fn id(&self, node: usize) -> String {
        String::from_utf8(self.0[node].raw().ask(&[b"CLUSTER", b"MYID"]).unwrap()).unwrap()
    }

    /// Moves a slot with its keys, as `redis-cli --cluster reshard` does.
    pub(crate) fn migrate(&self, slot: &str, from: usize, to: usize) {
        self.begins_to_move(slot, from, to);
        self.moves_keys(slot, from, to);
        self.has_moved(slot, to);
    }

    /// From now on a key that its former node does not have is asked for at the new one.
    pub(crate) fn begins_to_move(&self, slot: &str, from: usize, to: usize) {
        self.set_slot(to, slot, &["IMPORTING", &self.id(from)]);
        self.set_slot(from, slot, &["MIGRATING", &self.id(to)]);
    }

    /// Its keys go, and it does not yet.
    pub(crate) fn moves_keys(&self, slot: &str, from: usize, to: usize) {
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
    }

    /// All masters are told who has it.
    pub(crate) fn has_moved(&self, slot: &str, to: usize) {
        let target = self.id(to);
        for node in (0..3).filter(|node| *node != to).chain([to]) {
            self.set_slot(node, slot, &["NODE", &target]);
        }
    }

    /// `CLUSTER SETSLOT` at one node.
    pub(crate) fn set_slot(&self, node: usize, slot: &str, words: &[&str]) {
        let words: Vec<&[u8]> =
            ["CLUSTER", "SETSLOT", slot].iter().chain(words).map(|word| word.as_bytes()).collect();
        let said = self.0[node].raw().ask(&words).unwrap();
        assert_eq!(said, b"+OK", "{}", String::from_utf8_lossy(&said));
    }

    /// Which nodes have a key, replicas included.
    pub(crate) fn holders(&self, key: &str) -> Vec<usize> {
        let has = |node: &RedisOnPort| {
            let keys = node.raw().ask_list(&[b"KEYS", key.as_bytes()]).unwrap();
            !keys.is_empty()
        };
        (0..self.0.len()).filter(|node| has(&self.0[*node])).collect()
    }

    /// How often nodes have answered with an error of this kind, such as `MOVED`.
    pub(crate) fn errors(&self, kind: &str) -> u64 {
        let prefix = format!("errorstat_{kind}:count=");
        let count = |node: &RedisOnPort| {
            let told = node.raw().ask(&[b"INFO", b"errorstats"]).unwrap();
            let told = String::from_utf8_lossy(&told).into_owned();
            let count = told.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or("0");
            count.parse::<u64>().unwrap()
        };
        self.0.iter().map(count).sum()
    }
}

pub(crate) fn is_well(node: &RedisOnPort) -> bool {
    let told = node.raw().ask(&[b"CLUSTER", b"INFO"]).unwrap();
    let told = String::from_utf8_lossy(&told);
    let replication = node.raw().ask(&[b"INFO", b"replication"]).unwrap();
    // A replica that has nothing yet takes no master's place.
    let is_behind = String::from_utf8_lossy(&replication).contains("master_link_status:down");
    told.contains("cluster_state:ok") && told.contains("cluster_size:3") && !is_behind
}
