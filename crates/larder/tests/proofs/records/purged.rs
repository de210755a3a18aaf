//! What was purged is used by no larder of the fleet, whoever has fetched it and wherever it lies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use larder_testkit::client::Request;

use super::{Scene, TOKEN, is_hit, state, together};
use crate::support::{cache_status, get, until};

#[tokio::test]
async fn a_purge_of_any_kind_ends_the_records_of_all() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    let larders = [&first, &second];
    for (number, what) in [
        r#"{"tags": ["page"]}"#,
        r#"{"urls": ["http://localhost/a"]}"#,
        r#"{"prefixes": ["http://localhost/"]}"#,
        r#"{"patterns": [{"url": "^/a"}]}"#,
        r#"{"all": true}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let (one, other) = (larders[number % 2], larders[(number + 1) % 2]);
        until("there is a record", async || {
            one.get("/a").await;
            !scene.names().is_empty()
        })
        .await;
        other.get("/a").await;
        let now = scene.change();
        let (status, receipt) = other.purge(what).await;
        assert_eq!(status, 200, "{what}: {receipt}");
        let asked = scene.asked("/a");
        // Who has purged it asks first: its own purge counts before it has read that in the log.
        let answered = other.get("/a").await;
        assert_eq!((state(&answered), is_hit(&answered)), (now, false), "{what}: {answered}");
        until("the new record is used", async || {
            let answered = one.get("/a").await;
            assert_eq!(state(&answered), now, "{what}: {answered}");
            is_hit(&answered)
        })
        .await;
        assert!(scene.asked("/a") <= asked + 2, "{what}: {} after {asked}", scene.asked("/a"));
    }
}

#[tokio::test]
async fn what_was_fetched_before_a_purge_is_not_used_where_it_lies_in_redis_alone() {
    // A lease that is lost on a busy machine would end what has no tag, too.
    let scene = Scene { lease: "10s", ..Scene::new() };
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    for target in ["/a", "/b", "/vary"] {
        scene.fetched_by(&first, target).await;
    }
    let now = scene.change();
    // The second has none of it in memory.
    let (status, receipt) = second.purge(r#"{"tags": ["page"]}"#).await;
    assert_eq!(status, 200, "{receipt}");
    assert_eq!(second.state("/a").await, now);
    let late = scene.larder("web-3").await;
    assert_eq!(late.state("/b").await, now, "by one that came later, too");
    // It has no tag.
    assert_eq!(late.state("/vary").await, now - 1);
}

#[tokio::test]
async fn what_a_post_invalidates_is_not_brought_back() {
    for mode in ["remove", "validate"] {
        let scene = Scene::new();
        let site = format!("invalidate = {mode:?}");
        let (first, second) = (scene.with_site("web-1", &site).await, scene.with_site("web-2", &site).await);
        scene.fetched_by(&first, "/a").await;
        assert!(is_hit(&second.get("/a").await), "{mode}");
        let now = scene.change();
        let post = Request::new("POST", "/a", "localhost").body("x".to_owned());
        assert_eq!(second.ask(&post).await.status, 200);
        let asked = second.get("/a").await;
        assert_eq!(state(&asked), now, "{mode}: the client that has posted sees it");
        // Only what stays is validated.
        let is_stale = cache_status(&asked).contains("fwd=stale");
        assert_eq!(is_stale, mode == "validate", "{mode}: {asked}");
        until("the other one follows", async || first.state("/a").await == now).await;
    }
}

/// A record from before that is no newer because the origin fails.
#[tokio::test]
async fn what_was_to_be_fetched_anew_is_not_brought_back_where_the_origin_fails() {
    let mut scene = Scene::new();
    let site = format!("purge = {{ token = {TOKEN:?} }}");
    let (first, second) = (scene.with_site("web-1", &site).await, scene.with_site("web-2", &site).await);
    together(&[&first, &second]).await;
    scene.fetched_by(&second, "/strict").await;
    scene.origin.stop().await;
    let reload = Request::new("GET", "/strict", "localhost").field("Cache-Control", "no-cache");
    let reload = reload.field("Authorization", &format!("Bearer {TOKEN}"));
    let answered = first.ask(&reload).await;
    assert_eq!(answered.status, 502, "{answered}");
    for renewal in 0..6 {
        let members = || scene.redis.raw().ask(&[b"DUMP", b"larder:1:{fleet}"]);
        let before = members();
        until("a lease is renewed", async || members() != before).await;
        let answered = first.get("/strict").await;
        assert_eq!(answered.status, 502, "after renewal {renewal}: {answered}");
    }
}

#[tokio::test]
async fn a_soft_purge_is_stale_and_not_gone() {
    let scene = Scene::new();
    let site = "stale_while_revalidate = \"1h\"";
    let (first, second) = (scene.with_site("web-1", site).await, scene.with_site("web-2", site).await);
    together(&[&first, &second]).await;
    scene.fetched_by(&first, "/a").await;
    let now = scene.change();
    let (status, receipt) = first.purge(r#"{"tags": ["page"], "soft": true}"#).await;
    assert_eq!(status, 200, "{receipt}");
    // What the second finds in Redis is stale here as well: it may be used while a new one is fetched.
    let found = second.get("/a").await;
    assert_eq!(state(&found), now - 1, "{found}");
    assert!(cache_status(&found).ends_with("detail=soft-purged"), "{found}");
    until("it is new", async || second.state("/a").await == now).await;
}

#[tokio::test]
async fn versions_and_records_go_together() {
    let scene = Scene::new();
    let url = format!("unix://{}", scene.redis.socket().display());
    let site = format!("versions = {{ hash = \"v\", field = \"{{target}}\", redis = {url:?} }}");
    let (first, second) = (scene.with_site("web-1", &site).await, scene.with_site("web-2", &site).await);
    scene.ask(&["HSET", "v", "/a", "1"]);
    scene.fetched_by(&first, "/a").await;
    assert!(is_hit(&second.get("/a").await));
    let now = scene.change();
    scene.ask(&["HINCRBY", "v", "/a", "1"]);
    until("the change is known", async || first.state("/a").await == now).await;
    until("at both", async || second.state("/a").await == now).await;
    assert!(scene.asked("/a") <= 3, "{}", scene.asked("/a"));
}

/// Clients, purges and changes at three larders for some seconds: after a complete receipt no answer is older than its purge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_is_older_than_a_purge_that_was_complete_before_it() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    let third = scene.larder("web-3").await;
    let larders = [first, second, third];
    together(&[&larders[0], &larders[1], &larders[2]]).await;
    let seconds: u64 = std::env::var("LARDER_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let until = Instant::now() + Duration::from_secs(seconds);
    let is_over = AtomicBool::new(false);
    // What every answer has to be at least.
    let least = std::sync::atomic::AtomicU64::new(1);
    let (answers, hits) = (std::sync::atomic::AtomicU64::new(0), std::sync::atomic::AtomicU64::new(0));
    let client = async |number: usize| {
        while !is_over.load(Ordering::SeqCst) {
            let at_least = least.load(Ordering::SeqCst);
            let target = format!("/page-{}", 100 + number % 4);
            let answer = get(larders[number % 3].process.addr, &target).await;
            assert!(state(&answer) >= at_least, "{target} at {number}: {at_least}, {answer}");
            answers.fetch_add(1, Ordering::Relaxed);
            hits.fetch_add(u64::from(is_hit(&answer)), Ordering::Relaxed);
        }
    };
    let purges = async {
        let mut complete = 0;
        while Instant::now() < until {
            let now = scene.change();
            let what = match now % 3 {
                0 => r#"{"tags": ["page"]}"#,
                1 => r#"{"prefixes": ["http://localhost/"]}"#,
                _ => {
                    r#"{"urls": ["http://localhost/page-100", "http://localhost/page-101", "http://localhost/page-102", "http://localhost/page-103"]}"#
                }
            };
            let (status, receipt) = larders[now as usize % 3].purge(what).await;
            assert_eq!(status, 200, "{receipt}");
            least.store(now, Ordering::SeqCst);
            complete += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        is_over.store(true, Ordering::SeqCst);
        complete
    };
    let clients = futures_util::future::join_all((0..12).map(client));
    let (complete, _) = tokio::join!(purges, clients);
    let (answers, hits) = (answers.into_inner(), hits.into_inner());
    println!("{complete} purges, {answers} answers, {hits} hits, {} fetched", scene.origin.log().count());
    assert!(complete > 10 && hits > answers / 4, "{complete} purges, {hits} of {answers}");
    // Each change is fetched by one of them as a rule, and not by each.
    assert!(scene.origin.log().count() < complete * 12);
}
