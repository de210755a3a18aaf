//! Versions at a master that Sentinels watch over: what a former one says is not believed, and without a majority nothing is.

use super::{HASH, Setup, assert_detail};
use crate::redis_servers::Watched;
use crate::support::{cache_status, until};

/// A larder whose versions are at that master.
async fn before(watched: &Watched, user: &str) -> Setup {
    let place = watched.said().replace("sentinel =", "redis = { sentinel =");
    let rule = format!(
        "versions = {{ {place}{user} }}, timeout = \"2s\", hash = \"{HASH}\", field = \"{{target}}\" }}"
    );
    // The store's own Redis is not used.
    Setup::new("# REDIS", &rule).await
}

#[tokio::test]
async fn a_former_master_says_nothing_of_versions() {
    let mut watched = Watched::start().await;
    let user = watched.with_a_user("larder", "s3cret").replace('\n', ", ");
    let set = |port: u16, version: &str| {
        let server = watched.servers.iter().find(|server| server.port == port).unwrap();
        server.raw().ask(&[b"HSET", HASH.as_bytes(), b"/a", version.as_bytes()]);
    };
    set(watched.servers[0].port, "1");
    let setup = before(&watched, &format!(", {user}")).await;
    until("the version is known", async || setup.is_hit("/a").await).await;
    assert_eq!(setup.state("/a").await, 1);
    let former = watched.isolates_master();
    let port = watched.all_name_another().await;
    // It answers larder still, and has the former version.
    setup.state.store(2, std::sync::atomic::Ordering::SeqCst);
    set(port, "2");
    setup.becomes("/a", 2).await;
    until("the new version is known", async || setup.is_hit("/a").await).await;
    assert_eq!(setup.state("/a").await, 2);
    drop(former);
}

#[tokio::test]
async fn without_a_majority_of_the_sentinels_versions_are_not_known() {
    let watched = Watched::start().await;
    watched.servers[0].raw().ask(&[b"HSET", HASH.as_bytes(), b"/a", b"1"]);
    let setup = before(&watched, "").await;
    until("the version is known", async || setup.is_hit("/a").await).await;
    watched.sentinels[2].stop();
    let mut hits = 0;
    for _ in 0..30 {
        hits += u32::from(setup.is_hit("/a").await);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(hits > 20, "two of three are enough: {hits}");
    watched.sentinels[1].stop();
    until("it is not known", async || !setup.is_hit("/a").await).await;
    let response = setup.get("/a").await;
    assert_detail(&response, "version-unknown");
    assert_eq!(response.status, 200, "{}", cache_status(&response));
    // The server answers, and may be a former one: what it says is not used.
    let asked = setup.origin.log().count();
    for _ in 0..10 {
        assert!(!setup.is_hit("/a").await);
    }
    assert_eq!(setup.origin.log().count(), asked + 10);
    setup.larder.says("no majority has said of late which servers are the right ones").await;
    watched.sentinels[1..].iter().for_each(larder_testkit::redis::RedisOnPort::resume);
    until("it is known again", async || setup.is_hit("/a").await).await;
}
