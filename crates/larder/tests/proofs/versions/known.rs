//! Versions that are there: used without asking, until they change.

use larder_testkit::client::Request;

use super::{BY_TARGET, HASH, Setup, is_hit, stamp};
use crate::support::{Signal, asking, connect, within};

#[tokio::test]
async fn what_was_stored_under_one_version_is_not_used_under_another() {
    let setup = Setup::new("", BY_TARGET).await;
    setup.ask(&["HSET", HASH, "/a", "1", "/b", "1"]);
    assert_eq!((setup.state("/a").await, setup.state("/b").await), (1, 1));
    assert!(setup.is_hit("/a").await && setup.is_hit("/b").await);
    let state = setup.change("/a");
    setup.becomes("/a", state).await;
    assert!(setup.is_hit("/a").await);
    // The other has its version still, though the hash was changed.
    assert_eq!(setup.state("/b").await, 1);
    assert_eq!((setup.origin.log().count_of("/a"), setup.origin.log().count_of("/b")), (2, 1));
}

#[tokio::test]
async fn hits_cost_no_command() {
    let setup = Setup::new("", BY_TARGET).await;
    setup.ask(&["HSET", HASH, "/a", "1"]);
    setup.get("/a").await;
    let before = (setup.calls("hmget"), setup.calls("hget"), setup.calls("get"));
    let mut client = connect(setup.larder.addr).await;
    for _ in 0..5000 {
        let response = within("a hit", client.exchange(&asking("/a"))).await.unwrap();
        assert!(is_hit(&response), "{response}");
    }
    assert_eq!((setup.calls("hmget"), setup.calls("hget"), setup.calls("get")), before);
    assert_eq!(setup.origin.log().count(), 1);
}

#[tokio::test]
async fn several_versions_and_keys_of_their_own() {
    let rule = "[[site.rule]]\npath = \"/k*\"\nversions = { redis = \"REDIS\", keys = [\"site\", \"ver:{path}\"] }\n";
    let fields = "[[site.rule]]\nversions = { redis = \"REDIS\", hash = \"resource_versions\", fields = [\"{target}\", \"layout\"] }\n";
    // The URL stands for itself here.
    let setup = Setup::new("# REDIS", &format!("{rule}{fields}")).await;
    setup.ask(&["MSET", "site", "a", "ver:/k", "1"]);
    setup.ask(&["HSET", HASH, "/a", "1", "layout", "9"]);
    for target in ["/k", "/a"] {
        setup.get(target).await;
        assert!(setup.is_hit(target).await, "{target}");
    }
    let mut state = 1;
    for (target, command) in [
        ("/k", &["SET", "site", "b"][..]),
        ("/k", &["INCR", "ver:/k"]),
        ("/a", &["HINCRBY", HASH, "layout", "1"]),
        ("/a", &["HINCRBY", HASH, "/a", "1"]),
    ] {
        state += 1;
        setup.state.store(state, std::sync::atomic::Ordering::SeqCst);
        setup.ask(command);
        setup.becomes(target, state).await;
        assert!(setup.is_hit(target).await, "{command:?}");
    }
    // An earlier version has its response still.
    setup.ask(&["SET", "site", "a"]);
    setup.becomes("/k", 5).await;
    setup.ask(&["SET", "site", "b"]);
    setup.becomes("/k", 3).await;
}

#[tokio::test]
async fn a_part_of_a_page_has_a_version_of_its_own() {
    let rule = format!("[[site.rule]]\npath = \"/part\"\n{BY_TARGET}");
    let setup = Setup::new("", &rule).await;
    setup.ask(&["HSET", HASH, "/part", "1"]);
    let page = async || stamp(&setup.get("/page").await);
    // Often enough for the page to be kept, were it to be.
    for _ in 0..60 {
        assert_eq!(page().await, 1);
    }
    let state = setup.change("/part");
    setup.becomes("/page", state).await;
    for _ in 0..6 {
        assert_eq!(page().await, state);
    }
    assert_eq!(setup.origin.log().count_of("/part"), 2);
}

#[tokio::test]
async fn disks_keep_a_response_with_its_version() {
    let mut setup = Setup::new("disks = [{ path = \"FOLDER/disk\", size = \"64MiB\" }]", BY_TARGET).await;
    setup.ask(&["HSET", HASH, "/same", "1", "/other", "1"]);
    assert_eq!((setup.state("/same").await, setup.state("/other").await), (1, 1));
    setup.stop().await;
    let state = setup.change("/other");
    setup.start().await;
    assert_eq!((setup.state("/same").await, setup.state("/other").await), (1, state));
    assert_eq!(setup.origin.log().count_of("/same"), 1);
}

#[tokio::test]
async fn a_reload_keeps_what_is_known() {
    let setup = Setup::new("", BY_TARGET).await;
    setup.ask(&["HSET", HASH, "/a", "1"]);
    setup.get("/a").await;
    let read = setup.calls("hmget");
    setup.larder.signal(Signal::HUP);
    setup.larder.says("larder: reloaded").await;
    assert!(setup.is_hit("/a").await);
    assert_eq!(setup.calls("hmget"), read);
}

#[tokio::test]
async fn explain_tells_the_version_and_a_purge_takes_every_version() {
    let setup = Setup::new("", BY_TARGET).await;
    setup.ask(&["HSET", HASH, "/a", "7"]);
    setup.get("/a").await;
    let explain = |target: &str| Request::new("GET", target, "localhost");
    let told = setup.admin(&explain("/explain?url=http://localhost/a")).await;
    let told: serde_json::Value = serde_json::from_slice(&told.body).unwrap();
    let parts = told["key"]["parts"].as_array().unwrap();
    let version = parts.iter().find(|part| part["name"] == "version").unwrap();
    assert_eq!(version["value"], "7", "{told}");
    let purge = Request::new("POST", "/api/v1/purges", "localhost").field("Content-Type", "application/json");
    let purged = setup.admin(&purge.body(r#"{"urls": ["http://localhost/a"]}"#.to_owned())).await;
    assert_eq!(purged.status, 200, "{purged}");
    assert!(!setup.is_hit("/a").await);
}
