//! Values in a Redis Cluster: a deletion goes where its key has gone, and counts when the right node has confirmed it.

use super::{Setup, is_from_origin, is_hit, page};
use crate::redis_servers::{Nodes, is_well};
use crate::support::{script, until, within};

/// A larder with values in a cluster, under the targets' own names.
async fn with_nodes(nodes: Nodes, timeout: &str) -> Setup<Nodes> {
    let origin = vec![script("/*", page(&["Cache-Control: no-store"], "from the origin"))];
    let values = format!("near = \"1h\"\nkey = \"{{target}}\"\ntimeout = \"{timeout}\"");
    let place = nodes.said();
    let setup = Setup::with((nodes, &place), origin, &values, "").await;
    until("the cluster is known", async || {
        setup.lookups("absent").await > 0 || {
            setup.get("/nothing").await;
            false
        }
    })
    .await;
    setup
}

impl Setup<Nodes> {
    /// Puts a value where it belongs.
    fn put(&self, target: &str) {
        self.redis.0[self.redis.owner(&self.redis.slot(target))].raw().set(target, b"value");
    }

    /// A purge of some URLs, and whether it is confirmed within so many seconds.
    async fn is_purged(&self, targets: &[String], wait: f64) -> bool {
        let urls: Vec<String> =
            targets.iter().map(|target| format!("\"http://localhost{target}\"")).collect();
        let answer = self.purge(&format!("{{\"urls\": [{}], \"wait\": {wait}}}", urls.join(", "))).await;
        assert!(answer.status == 200 || answer.status == 503, "{answer}");
        answer.status == 200
    }
}

#[tokio::test]
async fn deletions_follow_their_keys() {
    let setup = with_nodes(Nodes::start(0).await, "2s").await;
    let nodes = &setup.redis;
    let targets: Vec<String> = (0..12).map(|number| format!("/page-{number}")).collect();
    for target in &targets {
        setup.put(target);
        is_hit(&setup.get(target).await, "value");
    }
    let before = nodes.errors("MOVED");
    for target in &targets {
        let slot = nodes.slot(target);
        let from = nodes.owner(&slot);
        nodes.migrate(&slot, from, (from + 1) % 3);
        // larder knows nothing of it yet, but for what it has asked all nodes in this moment.
        assert!(setup.is_purged(std::slice::from_ref(target), 20.0).await, "{target}");
        assert_eq!(nodes.holders(target), [0; 0], "{target}");
        is_from_origin(&setup.get(target).await, "from the origin");
    }
    assert!(nodes.errors("MOVED") > before, "some were sent on");
    assert_eq!(setup.counted("larder_remote_writes_total", "deleted").await, 12);
}

/// A key that has gone to its new node while its slot has not: the node from before says where to, and stays the one that counts.
#[tokio::test]
async fn a_deletion_is_confirmed_while_its_slot_is_on_its_way() {
    let setup = with_nodes(Nodes::start(0).await, "2s").await;
    let nodes = &setup.redis;
    setup.put("/page");
    is_hit(&setup.get("/page").await, "value");
    let slot = nodes.slot("/page");
    let from = nodes.owner(&slot);
    let to = (from + 1) % 3;
    nodes.begins_to_move(&slot, from, to);
    nodes.moves_keys(&slot, from, to);
    assert_eq!(nodes.holders("/page"), [to]);
    assert!(setup.is_purged(&["/page".to_owned()], 20.0).await);
    assert_eq!((nodes.holders("/page"), nodes.errors("ASK") > 0), (vec![], true));
    assert_eq!(setup.counted("larder_remote_writes_total", "unconfirmed").await, 0);
    is_from_origin(&setup.get("/page").await, "from the origin");
    nodes.has_moved(&slot, to);
}

/// Each of two nodes says that the other one has a slot. A deletion goes to and fro a few times, then rests for a second.
#[tokio::test]
async fn nodes_that_disagree_are_not_asked_without_an_end() {
    let setup = with_nodes(Nodes::start(0).await, "2s").await;
    let nodes = &setup.redis;
    let slot = nodes.slot("/page");
    let (one, other) = (nodes.owner(&slot), (nodes.owner(&slot) + 1) % 3);
    nodes.set_slot(one, &slot, &["NODE", &nodes.id(other)]);
    let before = nodes.errors("MOVED");
    assert!(!setup.is_purged(&["/page".to_owned()], 3.0).await);
    let sent_on = nodes.errors("MOVED") - before;
    assert!((4..100).contains(&sent_on), "{sent_on}");
    nodes.set_slot(one, &slot, &["NODE", &nodes.id(one)]);
    setup.put("/page");
    until("it is deleted", async || nodes.holders("/page").is_empty()).await;
    until("it is confirmed", async || setup.counted("larder_remote_writes_total", "deleted").await == 1)
        .await;
}

#[tokio::test]
async fn a_deletion_for_a_node_that_dies_goes_to_its_successor() {
    let mut setup = with_nodes(Nodes::start(1).await, "1s").await;
    setup.put("/page");
    is_hit(&setup.get("/page").await, "value");
    until("its replica has it", async || setup.redis.holders("/page").len() == 2).await;
    let owner = setup.redis.owner(&setup.redis.slot("/page"));
    let mut killed = setup.redis.0.remove(owner);
    killed.kill();
    assert_eq!(setup.redis.holders("/page").len(), 1);
    assert!(!setup.is_purged(&["/page".to_owned()], 0.5).await);
    is_from_origin(&setup.get("/page").await, "from the origin");
    until("it is deleted", async || setup.redis.holders("/page").is_empty()).await;
    until("it is confirmed", async || setup.counted("larder_remote_writes_total", "deleted").await == 1)
        .await;
}

/// A master that was frozen is sent a deletion, and its replica has its place before it wakes up. Whatever it answers then, the deletion
/// reaches the new one.
#[tokio::test]
async fn a_deletion_for_a_node_that_is_frozen_reaches_its_successor() {
    let setup = with_nodes(Nodes::start(1).await, "8s").await;
    let targets: Vec<String> = (0..8).map(|number| format!("/{{one}}-{number}")).collect();
    for target in &targets {
        setup.put(target);
        is_hit(&setup.get(target).await, "value");
    }
    until("its replica has them", async || {
        targets.iter().all(|target| setup.redis.holders(target).len() == 2)
    })
    .await;
    let former = setup.redis.owner(&setup.redis.slot("{one}"));
    // What writes has a connection there.
    assert!(setup.is_purged(&["/{one}".to_owned()], 20.0).await);
    setup.redis.0[former].stop();
    let purging = setup.is_purged(&targets, 20.0);
    let over = async {
        let of_others = || setup.redis.0.iter().enumerate().filter(|(node, _)| *node != former);
        // All of them say so: before that the former master still is the right one, and what it confirms may be lost with it.
        let place = format!(":{}@", setup.redis.0[former].port);
        until("its replica has its place", async || {
            let masters = of_others().filter(|(_, node)| {
                let told = node.raw().ask(&[b"INFO", b"replication"]).unwrap();
                String::from_utf8_lossy(&told).contains("role:master")
            });
            let name_another = of_others().all(|(_, node)| {
                let told = node.raw().ask(&[b"CLUSTER", b"NODES"]).unwrap();
                let told = String::from_utf8(told).unwrap();
                // The slots of a node stand behind eight columns.
                told.lines().any(|line| line.contains(&place) && line.split(' ').count() == 8)
            });
            masters.count() == 3 && name_another
        })
        .await;
        setup.redis.0[former].resume();
    };
    let (is_purged, ()) = within("a purge", async { tokio::join!(purging, over) }).await;
    // The former master may still have what it had, until it follows the new one.
    let has_master = |target: &String| {
        let at = setup.redis.holders(target).into_iter().filter(|node| *node != former);
        at.into_iter().any(|node| {
            let told = setup.redis.0[node].raw().ask(&[b"INFO", b"replication"]).unwrap();
            String::from_utf8_lossy(&told).contains("role:master")
        })
    };
    let left: Vec<&String> = targets.iter().filter(|target| has_master(target)).collect();
    assert!(is_purged && left.is_empty(), "{is_purged} {left:?} {:?}", setup.larder.stderr());
    until("the cluster is well", async || setup.redis.0.iter().all(is_well)).await;
}
