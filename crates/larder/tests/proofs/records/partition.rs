//! One of three larders is cut off from Redis, and from nothing else: what it may use, and what receipts say of it.
//!
//! The application stamps each body. After a complete receipt no larder gives an older one, and a receipt that is not complete names exactly the
//! larder that could. The larders are in networks of their own, in which packets from and to Redis are dropped. Larders that hang or die are in
//! [`killed`](super::killed), and in `fleet`.

use std::time::{Duration, Instant};

use larder_testkit::client::Response;
use larder_testkit::redis::{RedisOnPort, RedisServer};
use serde_json::Value;

use super::network::{Network, SERVERS, in_a_network};
use super::{Larder, Scene, TOKEN, is_hit, leased, members, state, together};
use crate::support::{BOUND, Process, cache_status, until, with_admin, written};

/// The last of three is the one that is cut off.
const THIRD: usize = 3;
const OF_ONE: &str = r#"{"urls": ["http://localhost/a"]}"#;
const OF_ANOTHER: &str = r#"{"urls": ["http://localhost/b"]}"#;

struct Divided {
    network: Network,
    redis: RedisOnPort,
    scene: Scene,
    first: Larder,
    second: Larder,
    third: Larder,
}

impl Divided {
    async fn new(network: Network, lease: &'static str) -> Self {
        let at_both = ["--bind", "127.0.0.1", "10.1.1.1", "--protected-mode", "no"];
        let redis = RedisOnPort::start_with("--port", &at_both);
        let mut scene = Scene::with_origin_at(SERVERS, RedisServer::start(), "200ms");
        scene.said = format!("url = \"redis://10.1.1.1:{}\"", redis.port);
        (scene.lease, scene.wait) = (lease, "1s");
        let [first, second, third] = [
            larder(&network, &scene, 1).await,
            larder(&network, &scene, 2).await,
            larder(&network, &scene, THIRD).await,
        ];
        together(&[&first, &second, &third]).await;
        for target in ["/a", "/b", "/keep"] {
            for larder in [&first, &second, &third] {
                until("it is stored", async || is_hit(&larder.get(target).await)).await;
            }
        }
        Self { network, redis, scene, first, second, third }
    }

    fn cut(&self) {
        self.network.cut(THIRD, self.redis.port);
    }

    fn mend(&self) {
        self.network.mend(THIRD);
    }

    /// A purge that is not complete, and names the one that is cut off, and no other one.
    async fn purged_without_the_third(&self, what: &str) -> Value {
        let (status, receipt) = self.first.purge(what).await;
        assert_eq!((status, &receipt["fleet"]["complete"]), (503, &false.into()), "{receipt}");
        assert_eq!(members(&receipt), [("web-2", "applied"), ("web-3", "silent")], "{receipt}");
        receipt
    }

    /// The others give what is new.
    async fn is_in_force_at_the_others(&self, target: &str, now: u64) {
        assert_eq!((self.first.state(target).await, self.second.state(target).await), (now, now), "{target}");
    }

    /// Asks the one that is cut off until `holds`. As soon as a receipt does not name it, it gives nothing older; and what it gives without a lease,
    /// it has asked the origin for.
    async fn watch(&self, (purge, target, now): (&Value, &str, u64), holds: impl AsyncFn(&Value) -> bool) {
        let begun = Instant::now();
        loop {
            let receipt = self.first.receipt(purge).await;
            let has_lease = self.third.has_lease().await;
            let asked = self.scene.asked(target);
            let answer = self.third.get(target).await;
            let is_silent = members(&receipt).contains(&("web-3", "silent"));
            let of_fleet = |what: &str| receipt["fleet"][what] == true;
            assert!(of_fleet("complete") || is_silent || !of_fleet("knows_all"), "{receipt}");
            if !is_silent {
                assert_eq!(state(&answer), now, "{receipt}: {answer}");
            }
            if !has_lease {
                self.has_asked(target, &answer, asked);
                assert_eq!(state(&answer), now, "{answer}");
            }
            if holds(&receipt).await {
                return;
            }
            assert!(begun.elapsed() < BOUND, "waited too long: {receipt}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The origin was asked for this answer.
    fn has_asked(&self, target: &str, answer: &Response, before: u64) {
        assert_eq!(self.scene.asked(target), before + 1, "{answer}");
        assert!(cache_status(answer).ends_with("detail=no-lease"), "{answer}");
    }

    /// What lies in Redis of this URL alone, as it is there.
    fn record_of(&self, target: &str) -> (Vec<u8>, Vec<u8>) {
        let mut raw = self.redis.raw();
        for name in raw.ask_list(&[b"KEYS", b"larder:1:default:r:*"]).unwrap() {
            let value = raw.ask(&[b"GET", &name]).unwrap_or_default();
            if value.windows(target.len()).any(|part| part == target.as_bytes()) {
                let dumped = raw.ask(&[b"DUMP", &name]).unwrap();
                return (name, dumped);
            }
        }
        panic!("no record of {target}");
    }

    /// Everything in Redis is lost, but for this record. The first two begin a new log.
    async fn is_emptied_but_for(&self, (name, dumped): &(Vec<u8>, Vec<u8>)) {
        let former = self.epoch(&self.first).await;
        let mut raw = self.redis.raw();
        raw.ask(&[b"FLUSHALL"]);
        assert_eq!(raw.ask(&[b"RESTORE", name, b"0", dumped]).as_deref(), Some(&b"+OK"[..]));
        until("the log is a new one", async || {
            let now = self.epoch(&self.first).await;
            now != former && now == self.epoch(&self.second).await
        })
        .await;
    }

    /// How far a larder has read, and in which log.
    async fn place(&self, larder: &Larder) -> (Value, Value) {
        let told = larder.fleet().await;
        (told["epoch"].clone(), told["applied"].clone())
    }

    async fn epoch(&self, larder: &Larder) -> Value {
        larder.fleet().await["epoch"].clone()
    }
}

/// A member at the other end of a link.
async fn larder(network: &Network, scene: &Scene, link: usize) -> Larder {
    let name = format!("web-{link}");
    let text = with_admin(&scene.config(&name, ""), &format!("token = {TOKEN:?}"));
    let text = text.replace("127.0.0.1:0", &format!("{}:0", Network::address(link)));
    let (folder, config) = written(&text);
    let mut command = network.inside(link, env!("CARGO_BIN_EXE_larder"));
    command.args(["run", "-c"]).arg(&config);
    let mut process = Process::spawn(command, None);
    process.greeted().await;
    let larder = Larder { process, name, folder };
    until("it has a lease", async || larder.has_lease().await).await;
    larder
}

#[test]
fn cut_off_for_less_than_its_lease_it_goes_on_and_then_applies_what_was_purged() {
    in_a_network(THIRD, async |network| {
        let stage = Divided::new(network, "8s").await;
        let Divided { scene, third, .. } = &stage;
        stage.cut();
        let now = scene.change();
        let receipt = stage.purged_without_the_third(OF_ONE).await;
        let left =
            receipt["fleet"]["members"].as_array().unwrap().iter().find_map(|it| it["left_s"].as_f64());
        assert!(left.is_some_and(|left| left > 0.0 && left <= 8.08), "{receipt}");
        stage.is_in_force_at_the_others("/a", now).await;
        // It has not heard of that, and is named for it.
        let asked = scene.origin.log().count();
        for target in ["/a", "/b", "/keep"] {
            let answer = third.get(target).await;
            assert!(is_hit(&answer) && state(&answer) < now, "{answer}");
        }
        assert_eq!(scene.origin.log().count(), asked, "it asks nobody");
        assert_eq!(third.state("/new").await, now, "what it does not have, it gets from the origin");
        assert!(third.has_lease().await);
        stage.mend();
        stage
            .watch((&receipt, "/a", now), async |receipt| {
                assert!(third.has_lease().await, "it was never without a lease");
                receipt["fleet"]["complete"] == true
            })
            .await;
        let receipt = stage.first.receipt(&receipt).await;
        assert_eq!(members(&receipt), [("web-2", "applied"), ("web-3", "applied")], "{receipt}");
        for larder in [&stage.first, &stage.second, third] {
            assert!(is_hit(&larder.get("/keep").await), "what was not purged stays");
        }
        assert_eq!(scene.asked("/keep"), 1);
    });
}

#[test]
fn cut_off_beyond_its_lease_it_uses_nothing_unasked_and_is_not_waited_for() {
    in_a_network(THIRD, async |network| {
        let stage = Divided::new(network, "4s").await;
        let Divided { scene, third, .. } = &stage;
        stage.cut();
        let now = scene.change();
        let receipt = stage.purged_without_the_third(OF_ONE).await;
        stage.is_in_force_at_the_others("/a", now).await;
        stage
            .watch((&receipt, "/a", now), async |receipt| {
                receipt["fleet"]["complete"] == true && !third.has_lease().await
            })
            .await;
        let receipt = stage.first.receipt(&receipt).await;
        assert_eq!(members(&receipt), [("web-2", "applied"), ("web-3", "away")], "{receipt}");
        // The next one does not wait for it.
        let now = scene.change();
        let (status, receipt) = stage.first.purge(OF_ANOTHER).await;
        assert_eq!(status, 200, "{receipt}");
        assert!(!members(&receipt).contains(&("web-3", "silent")), "{receipt}");
        for target in ["/b", "/keep"] {
            for _ in 0..3 {
                let asked = scene.asked(target);
                let answer = third.get(target).await;
                stage.has_asked(target, &answer, asked);
                assert_eq!(state(&answer), now);
            }
        }
        stage.mend();
        leased(&[third]).await;
        let third_reads = async || stage.place(third).await == stage.place(&stage.first).await;
        until("it has read on to the end of the log", third_reads).await;
        let now = scene.change();
        let (status, receipt) = stage.first.purge(OF_ONE).await;
        assert_eq!(status, 200, "{receipt}");
        assert_eq!(members(&receipt), [("web-2", "applied"), ("web-3", "applied")], "{receipt}");
        until("hits are back", async || {
            let answer = third.get("/a").await;
            assert_eq!(state(&answer), now);
            is_hit(&answer)
        })
        .await;
        // What it has validated since is newer than that.
        assert!(third.state("/b").await >= now - 1);
    });
}

#[test]
fn cut_off_while_redis_is_emptied_it_is_still_known_to_the_others() {
    in_a_network(THIRD, async |network| {
        let stage = Divided::new(network, "8s").await;
        let Divided { scene, third, .. } = &stage;
        let record = stage.record_of("/a");
        stage.cut();
        stage.is_emptied_but_for(&record).await;
        // It is a member of the former log, and has its lease of that.
        let now = scene.change();
        let receipt = stage.purged_without_the_third(OF_ONE).await;
        stage.is_in_force_at_the_others("/a", now).await;
        assert!(is_hit(&third.get("/a").await), "it could, and it does");
        stage.mend();
        stage.watch((&receipt, "/a", now), async |receipt| receipt["fleet"]["complete"] == true).await;
        assert_eq!(stage.epoch(third).await, stage.epoch(&stage.first).await);
        stage.is_in_force_at_the_others("/a", now).await;
        assert!(is_hit(&third.get("/keep").await), "its own copies stay");
    });
}

#[test]
fn cut_off_beyond_its_lease_while_redis_is_emptied_it_brings_nothing_back() {
    in_a_network(THIRD, async |network| {
        let stage = Divided::new(network, "4s").await;
        let Divided { scene, third, .. } = &stage;
        // The third has not seen this one, and finds its record later.
        stage.first.get("/only").await;
        until("its record is there", async || is_hit(&stage.second.get("/only").await)).await;
        let record = stage.record_of("/only");
        stage.cut();
        let before = scene.change();
        let receipt = stage.purged_without_the_third(OF_ONE).await;
        stage
            .watch((&receipt, "/a", before), async |receipt| {
                receipt["fleet"]["complete"] == true && !third.has_lease().await
            })
            .await;
        stage.is_emptied_but_for(&record).await;
        let now = scene.change();
        let what = r#"{"tags": ["page"]}"#;
        until("a purge is complete", async || stage.first.purge(what).await.0 == 200).await;
        for target in ["/a", "/b", "/keep"] {
            stage.is_in_force_at_the_others(target, now).await;
            assert_eq!(third.state(target).await, now, "{target}");
        }
        stage.mend();
        until("it reads the new log", async || {
            assert_eq!((third.state("/a").await, third.state("/b").await), (now, now));
            stage.epoch(third).await == stage.epoch(&stage.first).await && third.has_lease().await
        })
        .await;
        let asked = scene.asked("/only");
        let answer = third.get("/only").await;
        assert_eq!((state(&answer), scene.asked("/only")), (now, asked + 1), "{answer}");
        for target in ["/a", "/b", "/keep"] {
            assert_eq!(third.state(target).await, now, "{target}");
        }
        until("they share", async || {
            let target = format!("/again-{}", scene.change());
            stage.first.get(&target).await;
            is_hit(&third.get(&target).await)
        })
        .await;
    });
}
