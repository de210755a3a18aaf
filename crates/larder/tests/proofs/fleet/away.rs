//! Something is away: Redis, or a larder that hangs.

use rustix::process::Signal;

use super::{Stand, in_state, together};
use crate::support::until;

#[tokio::test]
async fn without_redis_a_purge_stays_here_and_leases_end() {
    let mut stand = Stand::new();
    // Files of a site go before its stores, by another way.
    let root = tempfile::tempdir().unwrap();
    let site = format!("root = {:?}", root.path());
    let first = stand.larder("web-1", "50ms", "").await;
    let second = stand.with_site("web-2", "50ms", "", &site).await;
    together(&[&first, &second]).await;
    until("it is stored", async || first.is_hit("/a").await && second.is_hit("/a").await).await;
    stand.redis.kill();
    let version = stand.change();
    let (status, receipt) = first.purge(r#"{"tags": ["page"]}"#).await;
    assert_eq!((status, &receipt["fleet"]["complete"]), (503, &false.into()), "{receipt}");
    assert_eq!(receipt["fleet"]["shared"], false, "{receipt}");
    assert_eq!(in_state(&receipt, "silent"), ["web-2"], "{receipt}");
    assert_eq!(first.version("/a").await, version, "it is in force here");
    until("the leases are over", async || first.left().await == 0.0 && second.left().await == 0.0).await;
    let asked = stand.origin.log().count();
    for _ in 0..3 {
        assert_eq!([first.version("/a").await, second.version("/a").await], [version, version]);
    }
    assert_eq!(stand.origin.log().count(), asked + 6, "the origin is asked for each");
    let (code, said) = second.command(&["fleet"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot be had") && said.contains("without a lease"), "{said}");
    stand.redis.restart();
    until("it is complete", async || first.receipt(&receipt).await["fleet"]["complete"] == true).await;
    assert_eq!(in_state(&first.receipt(&receipt).await, "applied"), ["web-2"]);
    until("leases are back", async || first.left().await > 0.0 && second.left().await > 0.0).await;
    until("hits are back", async || first.is_hit("/a").await && second.is_hit("/a").await).await;
    assert_eq!([first.version("/a").await, second.version("/a").await], [version, version]);
}

#[tokio::test]
async fn a_larder_that_hangs_is_named_and_not_waited_for_beyond_its_lease() {
    let stand = Stand::new();
    let (first, second) = (stand.larder("web-1", "50ms", "").await, stand.larder("web-2", "50ms", "").await);
    together(&[&first, &second]).await;
    until("it is stored", async || first.is_hit("/a").await && second.is_hit("/a").await).await;
    second.process.stopped().await;
    let version = stand.change();
    let (status, receipt) = first.purge(r#"{"urls": ["http://localhost/a"]}"#).await;
    assert_eq!(status, 503, "{receipt}");
    assert_eq!(in_state(&receipt, "silent"), ["web-2"], "{receipt}");
    let left = receipt["fleet"]["members"][0]["left_s"].as_f64().unwrap();
    assert!((0.0..=3.03).contains(&left), "{receipt}");
    until("it is complete", async || first.receipt(&receipt).await["fleet"]["complete"] == true).await;
    let receipt = first.receipt(&receipt).await;
    assert_eq!(in_state(&receipt, "away"), ["web-2"], "{receipt}");
    second.process.signal(Signal::CONT);
    assert_eq!(second.version("/a").await, version);
    until("it is a member again", async || second.left().await > 0.0).await;
    assert_eq!(second.version("/a").await, version);
}
