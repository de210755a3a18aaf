//! Responses that have ended without a purge: their records are not found again.

use super::{Scene, is_hit, state};
use crate::support::{cache_status, until};

/// The page becomes private. Its record would be usable as a stale one for an hour.
#[tokio::test]
async fn a_response_that_is_for_one_client_from_now_on_is_no_record_any_more() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    scene.fetched_by(&first, "/ends").await;
    let now = scene.change();
    until("it is stale, and refreshed", async || state(&first.get("/ends").await) == now).await;
    until("its record is gone", async || scene.names().is_empty()).await;
    for larder in [&second, &first] {
        let answer = larder.get("/ends").await;
        assert_eq!(state(&answer), now, "{}: {answer}", larder.name);
        assert!(!is_hit(&answer), "{answer}");
    }
}

/// Where it was not deleted, this larder does not use it all the same.
#[tokio::test]
async fn a_record_that_could_not_be_deleted_is_not_used_by_who_knows_that_it_has_ended() {
    let scene = Scene::new();
    let larder = scene.larder("web-1").await;
    scene.fetched_by(&larder, "/ends").await;
    let name = scene.names().remove(0);
    let record = scene.redis.raw().ask(&[b"GET", name.as_bytes()]).unwrap();
    let now = scene.change();
    until("it is stale, and refreshed", async || state(&larder.get("/ends").await) == now).await;
    until("its record is gone", async || scene.names().is_empty()).await;
    scene.redis.raw().ask(&[b"SET", name.as_bytes(), &record]);
    // A mark says for ten seconds that nothing of it can be shared, and nothing is asked for that long.
    let refused = async || {
        assert_eq!(state(&larder.get("/ends").await), now);
        larder.refused("invalidated").await > 0
    };
    until("it is found, and refused", refused).await;
}

/// A stale response stands in, and requests that follow do not wait for the origin to fail again, though its record lies in Redis too.
#[tokio::test]
async fn an_origin_that_has_failed_is_not_asked_again_by_each_request() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    scene.fetched_by(&first, "/stands-in").await;
    assert!(is_hit(&second.get("/stands-in").await));
    let before = scene.asked("/stands-in");
    scene.change();
    until("the origin fails", async || {
        assert_eq!(state(&second.get("/stands-in").await), 1);
        scene.asked("/stands-in") > before
    })
    .await;
    let failed = scene.asked("/stands-in");
    for _ in 0..20 {
        let answer = second.get("/stands-in").await;
        assert_eq!(state(&answer), 1, "{}", cache_status(&answer));
    }
    assert!(scene.asked("/stands-in") <= failed + 1, "{} after {failed}", scene.asked("/stands-in"));
}

/// A larder that takes its own copy away after a purge leaves what others have fetched since.
#[tokio::test]
async fn what_was_fetched_since_a_purge_is_not_taken_away_with_what_was_purged() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    super::together(&[&first, &second]).await;
    scene.fetched_by(&second, "/a").await;
    assert!(is_hit(&first.get("/a").await));
    let now = scene.change();
    assert_eq!(second.purge(r#"{"tags": ["page"]}"#).await.0, 200);
    scene.fetched_by(&second, "/a").await;
    // It has a copy from before the purge, which a walk through memory takes away within ten seconds.
    let removed = async || first.process.metrics().await.sum("larder_purged_objects_total") > 0;
    until("its own copy is taken away", removed).await;
    assert_eq!(scene.names().len(), 1, "the record of the other one stays");
    let answer = first.get("/a").await;
    assert!(is_hit(&answer), "{answer}");
    assert_eq!((state(&answer), scene.asked("/a")), (now, 2));
}
