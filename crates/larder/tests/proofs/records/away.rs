//! Whatever becomes of Redis: no request fails, waits for longer than the limit, or gets what was purged.

use std::time::{Duration, Instant};

use super::{Scene, is_hit, leased, shares, together};
use crate::support::{cache_status, until};

#[tokio::test]
async fn a_server_that_hangs_is_left_alone_after_some_waits() {
    let scene = Scene::with_default_timeout();
    let (first, second) = scene.two().await;
    scene.fetched_by(&first, "/a").await;
    second.get("/a").await;
    scene.redis.stop();
    assert!(is_hit(&second.get("/a").await), "what is in memory is not felt");
    for number in 0..12 {
        assert_eq!(second.get(&format!("/other-{number}")).await.status, 200);
    }
    let begun = Instant::now();
    for number in 0..20 {
        assert_eq!(second.get(&format!("/later-{number}")).await.status, 200);
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}: it is left alone", begun.elapsed());
    scene.redis.resume();
    shares(&scene, (&first, &second)).await;
}

#[tokio::test]
async fn a_request_waits_for_a_server_that_hangs_as_long_as_the_limit_and_once() {
    // So long that one wait is told from two on a busy machine, and shorter than what is left of a lease.
    let (said, limit) = ("1500ms", Duration::from_millis(1500));
    let scene = Scene::with_timeout(said);
    let larder = scene.larder("web-1").await;
    larder.get("/a").await;
    scene.redis.stop();
    let begun = Instant::now();
    assert_eq!(larder.get("/other").await.status, 200);
    let waited = begun.elapsed();
    assert!((limit..limit * 2).contains(&waited), "{waited:?}");
    scene.redis.resume();
}

#[tokio::test]
async fn what_lay_in_a_server_that_lost_everything_is_fetched_anew_and_shared_again() {
    let mut scene = Scene::with_default_timeout();
    let (first, second) = scene.two().await;
    scene.fetched_by(&first, "/a").await;
    second.get("/a").await;
    scene.redis.kill();
    assert!(is_hit(&first.get("/a").await) && is_hit(&second.get("/a").await));
    assert_eq!(first.get("/new").await.status, 200);
    scene.redis.restart();
    leased(&[&first, &second]).await;
    assert!(is_hit(&first.get("/a").await) && is_hit(&second.get("/a").await), "their own copies stay");
    shares(&scene, (&first, &second)).await;
}

/// A server that comes back with an older state has records from before purges that were complete.
#[tokio::test]
async fn records_of_a_former_log_are_not_used() {
    let scene = Scene::with_default_timeout();
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    scene.fetched_by(&first, "/a").await;
    let name = scene.names().into_iter().find(|name| name.contains(":r:")).unwrap();
    let record = scene.redis.raw().ask(&[b"DUMP", name.as_bytes()]).unwrap();
    let now = scene.change();
    assert_eq!(first.purge(r#"{"tags": ["page"]}"#).await.0, 200);
    scene.ask(&["FLUSHALL"]);
    let restored = scene.redis.raw().ask(&[b"RESTORE", name.as_bytes(), b"0", &record]);
    assert_eq!(restored.as_deref(), Some(&b"+OK"[..]));
    together(&[&first, &second]).await;
    assert_eq!(second.state("/a").await, now);
    assert!(second.refused("position").await >= 1);
    let late = scene.larder("web-3").await;
    assert_eq!(late.state("/a").await, now);
}

#[tokio::test]
async fn without_a_lease_nothing_is_shared_and_nothing_of_others_is_used() {
    let scene = Scene::with_default_timeout();
    let (first, second) = scene.two().await;
    scene.fetched_by(&first, "/a").await;
    // The log hangs, and so do the records.
    scene.redis.stop();
    until("the leases are over", async || !first.has_lease().await && !second.has_lease().await).await;
    let now = scene.change();
    let asked = first.get("/a").await;
    assert!(cache_status(&asked).ends_with("detail=no-lease"), "{asked}");
    assert_eq!(super::state(&asked), now, "it asks the origin");
    assert_eq!(second.state("/a").await, now);
    scene.redis.resume();
    leased(&[&first, &second]).await;
    shares(&scene, (&first, &second)).await;
}

#[tokio::test]
async fn what_was_fetched_before_a_time_without_a_lease_is_used_after_it() {
    let scene = Scene::with_default_timeout();
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    scene.fetched_by(&first, "/shared").await;
    scene.fetched_by(&second, "/own").await;
    // The log has an entry behind both.
    assert_eq!(first.purge(r#"{"urls": ["http://localhost/purged"]}"#).await.0, 200);
    scene.redis.stop();
    until("the leases are over", async || !first.has_lease().await && !second.has_lease().await).await;
    for _ in 0..3 {
        assert_eq!(second.get("/other").await.status, 200);
    }
    scene.redis.resume();
    leased(&[&first, &second]).await;
    // Its links to the records may need a moment more than its lease.
    shares(&scene, (&first, &second)).await;
    for target in ["/own", "/shared"] {
        let found = second.get(target).await;
        assert!(is_hit(&found), "{target}: {found}");
        assert_eq!(scene.asked(target), 1);
    }
}

#[tokio::test]
async fn a_full_server_keeps_nobody_waiting() {
    let scene = Scene::with_default_timeout();
    let (first, second) = scene.two().await;
    scene.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    for number in 0..10 {
        let target = format!("/full-{number}");
        assert_eq!((first.get(&target).await.status, second.get(&target).await.status), (200, 200));
        assert!(is_hit(&first.get(&target).await));
    }
    scene.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    leased(&[&first, &second]).await;
    shares(&scene, (&first, &second)).await;
}
