//! Versions that are missing or cannot be had: the origin decides, and what it has confirmed stands in for it when it fails.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{BY_TARGET, HASH, Setup, assert_detail, is_hit, stamp};
use crate::support::{cache_status, until};

#[tokio::test]
async fn without_its_server_each_request_asks_the_origin_and_one_that_fails_is_stood_in_for() {
    let mut setup = Setup::new("", BY_TARGET).await;
    setup.ask(&["HSET", HASH, "/a", "1"]);
    assert_eq!(setup.state("/a").await, 1);
    setup.redis.kill();
    until("the end of the server is known", async || !setup.is_hit("/a").await).await;
    let before = setup.origin.log().count();
    for _ in 0..3 {
        let response = setup.get("/a").await;
        assert_detail(&response, "version-unknown");
        assert!(cache_status(&response).contains("fwd-status=304"), "{response}");
        assert_eq!(stamp(&response), 1);
    }
    assert_eq!(setup.origin.log().count(), before + 3);
    // What the origin says is what clients get, at once.
    setup.state.store(2, Ordering::SeqCst);
    assert_eq!(setup.state("/a").await, 2);
    setup.origin.stop().await;
    let response = setup.get("/a").await;
    assert_eq!(stamp(&response), 2);
    setup.origin.resume().unwrap();
    setup.redis.restart();
    setup.ask(&["HSET", HASH, "/a", "1"]);
    until("the server is back", async || setup.is_hit("/a").await).await;
    setup.larder.says("requests that need them are validated by the origin").await;
}

#[tokio::test]
async fn a_server_that_hangs_delays_nobody_for_longer_than_its_limit() {
    let setup = Setup::new("", BY_TARGET).await;
    setup.ask(&["HSET", HASH, "/a", "1", "/b", "1"]);
    setup.get("/a").await;
    setup.redis.stop();
    // Known still, for as long as a change would not be missed by much.
    let began = Instant::now();
    until("it is not believed any more", async || {
        let asked = Instant::now();
        let is_hit = setup.is_hit("/a").await;
        assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
        !is_hit
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    for _ in 0..3 {
        assert_detail(&setup.get("/b").await, "version-unknown");
    }
    setup.redis.resume();
    until("the server is back", async || setup.is_hit("/a").await).await;
}

#[tokio::test]
async fn one_that_is_missing_is_the_applications_to_set() {
    let setup = Setup::new("", BY_TARGET).await;
    for _ in 0..3 {
        let response = setup.get("/a").await;
        assert_detail(&response, "version-absent");
        assert!(!is_hit(&response));
    }
    assert_eq!((setup.origin.log().count_of("/a"), setup.ask(&["HGET", HASH, "/a"])), (3, None));
    setup.ask(&["HSET", HASH, "/a", "0"]);
    setup.get("/a").await;
    assert!(setup.is_hit("/a").await);
}

#[tokio::test]
async fn one_that_is_missing_is_begun_with_a_storable_answer_where_the_rule_says_so() {
    let setup = Setup::new("", &BY_TARGET.replace(" }", ", write = true }")).await;
    until("it is a hit", async || setup.is_hit("/a").await).await;
    let begun: u64 = setup.ask(&["HGET", HASH, "/a"]).unwrap().parse().unwrap();
    assert!(begun > 1_700_000_000, "{begun}");
    setup.get("/missing").await;
    setup.get("/missing").await;
    assert_eq!(setup.ask(&["HGET", HASH, "/missing"]), None);
    let state = setup.change("/a");
    setup.becomes("/a", state).await;
    assert_eq!(setup.ask(&["HGET", HASH, "/a"]).unwrap(), (begun + 1).to_string());
}

/// An application that starts to count anew after the hash was lost: the numbers mean other things than before.
#[tokio::test]
async fn a_number_that_goes_back_brings_nothing_back() {
    let setup = Setup::new("", BY_TARGET).await;
    setup.ask(&["HSET", HASH, "/a", "1"]);
    assert_eq!(setup.state("/a").await, 1);
    let state = setup.change("/a");
    setup.becomes("/a", state).await;
    setup.ask(&["DEL", HASH]);
    setup.state.store(3, Ordering::SeqCst);
    setup.ask(&["HSET", HASH, "/a", "1"]);
    setup.becomes("/a", 3).await;
    setup.larder.says("was 2 and is 1").await;
    assert!(setup.is_hit("/a").await);
    setup.state.store(4, Ordering::SeqCst);
    setup.ask(&["HSET", HASH, "/a", "2"]);
    setup.becomes("/a", 4).await;
}

#[tokio::test]
async fn many_who_ask_without_a_version_share_few_requests() {
    let mut setup = Setup::new("", BY_TARGET).await;
    setup.ask(&["HSET", HASH, "/a", "1"]);
    setup.get("/a").await;
    setup.redis.kill();
    until("the end of the server is known", async || !setup.is_hit("/a").await).await;
    let addr = setup.larder.addr;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..64 {
        clients.spawn(async move { crate::support::get(addr, "/gated").await });
    }
    // The head is held: who has one no longer counts as waiting.
    until("all wait", async || setup.larder.metrics().await.sum("larder_flights_waiting") == 64).await;
    setup.origin.gates().release("answer");
    while let Some(response) = clients.join_next().await {
        assert_eq!(stamp(&response.unwrap()), 1);
    }
    // The first was asked before most of the requests came, which therefore share a second one.
    let asked = setup.origin.log().count_of("/gated");
    assert!((1..=3).contains(&asked), "{asked}");
}

/// What was stored while there was no version is older than what the application counts up after that.
#[tokio::test]
async fn a_version_that_was_lost_and_reads_the_same_again_brings_nothing_back() {
    let setup = Setup::new("", BY_TARGET).await;
    setup.ask(&["HINCRBY", HASH, "/a", "1"]);
    assert_eq!(setup.state("/a").await, 1);
    setup.ask(&["DEL", HASH]);
    until("its loss is known", async || cache_status(&setup.get("/a").await).contains("version-absent"))
        .await;
    let state = setup.change("/a");
    assert_eq!(setup.ask(&["HGET", HASH, "/a"]).as_deref(), Some("1"));
    setup.becomes("/a", state).await;
    assert!(setup.is_hit("/a").await);
    // The same with everything that the server has.
    setup.ask(&["FLUSHALL"]);
    setup.state.store(5, Ordering::SeqCst);
    setup.ask(&["HINCRBY", HASH, "/a", "1"]);
    setup.becomes("/a", 5).await;
}

#[tokio::test]
async fn a_soft_purge_does_not_make_an_old_response_usable_without_its_version() {
    let site = format!("stale_while_revalidate = \"1h\"\n{BY_TARGET}");
    let mut setup = Setup::new("", &site).await;
    setup.ask(&["HSET", HASH, "/a", "1"]);
    assert_eq!(setup.state("/a").await, 1);
    let purge = larder_testkit::client::Request::new("POST", "/api/v1/purges", "localhost");
    let purge = purge.field("Content-Type", "application/json");
    let purged =
        setup.admin(&purge.body(r#"{"prefixes": ["http://localhost/"], "soft": true}"#.to_owned())).await;
    assert_eq!(purged.status, 200, "{purged}");
    setup.redis.kill();
    setup.state.store(2, Ordering::SeqCst);
    until("the end of the server is known", async || {
        cache_status(&setup.get("/b").await).contains("version-unknown")
    })
    .await;
    assert_eq!(setup.state("/a").await, 2);
}

#[tokio::test]
async fn what_check_and_explain_say_of_a_config_asks_no_server() {
    let setup = Setup::new("", BY_TARGET).await;
    let connections = || {
        let stats = setup.ask(&["INFO", "stats"]).unwrap();
        let line = stats
            .lines()
            .find_map(|line| line.strip_prefix("total_connections_received:"))
            .map(str::to_owned);
        line.unwrap().parse::<u64>().unwrap()
    };
    let before = connections();
    let path = setup.folder.path().join("larder.toml");
    let mut check = crate::support::Process::start(&["check", "-c", path.to_str().unwrap()]);
    assert_eq!(check.end().await, 0, "{:?}", check.stderr());
    // The question itself is one.
    assert_eq!(connections(), before + 1);
}
