//! `larder explain` names the record in Redis, its writer, who fetches it, and why it is not used; and it changes nothing there.

use std::process::Command;

use serde_json::Value;

use super::{Larder, Scene, together};
use crate::support::{get, until};

/// What the explanation of a URL has for the record that is not used.
async fn unused(larder: &Larder, target: &str) -> String {
    let told = larder.record(target).await;
    told["unused"]["token"].as_str().unwrap_or_else(|| panic!("{target}: {told}")).to_owned()
}

/// How often the server has carried out commands that claim, write or touch a value.
pub(super) fn writes(scene: &Scene) -> Vec<u64> {
    let stats = scene.ask(&["INFO", "commandstats"]).unwrap();
    let calls = |command: &str| {
        let prefix = format!("cmdstat_{command}:calls=");
        let line = stats.lines().find_map(|line| line.strip_prefix(&prefix))?;
        line.split(',').next()?.parse().ok()
    };
    ["set", "touch", "del", "unlink"].map(|command| calls(command).unwrap_or(0)).into()
}

#[tokio::test]
async fn a_record_is_explained_with_its_writer_and_nothing_is_written() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    scene.fetched_by(&first, "/a").await;
    scene.fetched_by(&first, "/vary/700000-700000").await;
    let before = writes(&scene);
    let told = second.record("/a").await;
    let name = scene.names().into_iter().find(|name| *name == told["name"]);
    assert!(name.is_some_and(|name| name.starts_with("larder:1:default:r:{")), "{told}");
    let (server, record, fleet) = (&told["server"], &told["record"], &told["fleet"]);
    let place = scene.redis.socket();
    assert_eq!(server["server"], format!("redis unix:{}", place.display()), "{told}");
    assert_eq!((&server["slot"], &server["breaker"]), (&Value::Null, &Value::from("closed")));
    assert!(server["connections"].as_u64().unwrap() >= 1 && server["probe_seconds"].is_null(), "{told}");
    assert_eq!(
        (&record["writer"], &record["status"], &record["pieces"]),
        (&"web-1".into(), &200.into(), &0.into())
    );
    assert!(record["age_seconds"].as_f64().is_some_and(|age| (0.0..60.0).contains(&age)), "{told}");
    assert_eq!((&told["unused"], &told["fetch"]["state"]["token"]), (&Value::Null, &"free".into()), "{told}");
    let log = second.fleet().await;
    assert_eq!((&record["epoch"], &fleet["epoch"]), (&log["epoch"], &log["epoch"]), "{told}");
    assert_eq!((&fleet["member"], &fleet["position"]), (&"web-2".into(), &log["applied"]));
    assert!(record["position"].as_u64() <= fleet["position"].as_u64(), "{told}");
    assert!(fleet["lease_seconds"].as_f64().is_some_and(|left| left > 0.0), "{told}");
    let varying = second.record("/vary/700000-700000").await;
    assert_eq!(
        (&varying["unused"], varying["record"]["pieces"].as_u64() >= Some(3)),
        (&Value::Null, true),
        "{varying}"
    );
    assert_eq!(
        (&varying["record"]["varies_by"], &varying["record"]["body_bytes"]),
        (&"accept-language".into(), &700_000.into())
    );
    assert_eq!(unused(&second, "/none").await, "absent");
    let admin = second.process.admin.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(["explain", "http://localhost/a", "--admin", &admin]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["Shared by larders", "fetched by web-1", "breaker closed", "free.", "web-2 is at"] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert_eq!(writes(&scene), before, "nothing is claimed, written or touched");
}

#[tokio::test]
async fn who_fetches_a_page_and_why_each_larder_does_is_explained() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    let target = "/held-10";
    let addr = first.process.addr;
    let waiting = tokio::spawn(async move { get(addr, target).await });
    until("it is claimed", async || !scene.claims().is_empty()).await;
    // Each explanation asks the origin behind its look at Redis, and waits there.
    let release = async {
        until("all are at the origin", async || scene.asked(target) == 3).await;
        scene.origin.gates().release(target);
    };
    let (own, other, ()) = tokio::join!(first.record(target), second.record(target), release);
    waiting.await.unwrap();
    assert_eq!((&own["fetch"]["here"], &own["fetch"]["member"]), (&true.into(), &"web-1".into()), "{own}");
    assert_eq!((&other["fetch"]["here"], &other["fetch"]["member"]), (&false.into(), &"web-1".into()));
    assert_eq!(other["fetch"]["state"]["token"], "held", "{other}");
    let state = async |target: &str| second.record(target).await["fetch"].clone();
    for (target, word) in [("/private", "no"), ("/vanishes", "failed"), ("/long-2000000", "big")] {
        first.get(target).await;
        until(word, async || state(target).await["state"]["token"] == word).await;
        assert_eq!(state(target).await["member"], Value::Null);
    }
}

#[tokio::test]
async fn why_a_record_is_not_used_is_explained_in_a_word() {
    let mut scene = Scene::with_default_timeout();
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    for target in ["/damaged", "/purged", "/other", "/floor"] {
        scene.fetched_by(&first, target).await;
    }
    let bytes = |name: &str| scene.redis.raw().ask(&[b"GET", name.as_bytes()]).unwrap();
    let name = async |target: &str| first.record(target).await["name"].as_str().unwrap().to_owned();
    let damaged = name("/damaged").await;
    let mut value = bytes(&damaged);
    value[40] ^= 1;
    scene.redis.raw().set(&damaged, &value);
    let refused = second.refused("damaged").await;
    assert_eq!(unused(&second, "/damaged").await, "damaged");
    assert_eq!(second.refused("damaged").await, refused + 1, "it is counted where it was looked for, once");
    assert_eq!(second.purge(r#"{"urls": ["http://localhost/purged"]}"#).await.0, 200);
    assert_eq!(unused(&second, "/purged").await, "invalidated");
    // A larder that comes when the log is cut knows nothing of the time before.
    assert_eq!(second.purge(r#"{"tags": ["nothing"]}"#).await.0, 200);
    assert!(scene.ask(&["XTRIM", "larder:1:{fleet}:log", "MAXLEN", "0"]).is_some());
    let third = scene.larder("web-3").await;
    assert_eq!(unused(&third, "/floor").await, "below-floor");
    let (other, value) = (name("/other").await, bytes(&name("/other").await));
    scene.ask(&["FLUSHALL"]);
    let epoch = second.fleet().await["epoch"].clone();
    until("there is another log", async || {
        second.fleet().await["epoch"] != epoch && second.has_lease().await
    })
    .await;
    scene.redis.raw().set(&other, &value);
    assert_eq!(unused(&second, "/other").await, "other-epoch");
    scene.redis.stop();
    assert_eq!(unused(&second, "/other").await, "redis-timeout");
    scene.redis.resume();
    scene.redis.kill();
    until("it is left alone", async || {
        let told = second.record("/other").await;
        told["unused"]["token"] == "redis-down"
            && told["server"]["breaker"] == "open"
            && told["server"]["probe_seconds"].is_f64()
    })
    .await;
}
