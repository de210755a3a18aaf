//! All is well: a purge at one larder is in force at all of them when it is answered.

use larder_testkit::client::Request;

use super::{Stand, TOKEN, in_state, together};
use crate::support::until;

#[tokio::test]
async fn a_purge_at_one_larder_is_in_force_at_all_of_them_when_it_is_answered() {
    let stand = Stand::new();
    let larders = [
        stand.larder("web-1", "20s", "").await,
        stand.larder("web-2", "20s", "").await,
        stand.larder("web-3", "20s", "").await,
    ];
    let [first, second, third] = &larders;
    together(&[first, second, third]).await;
    for larder in &larders {
        until("it is stored", async || larder.is_hit("/a").await && larder.is_hit("/b").await).await;
    }
    let asked = stand.origin.log().count();
    assert_eq!(asked, 6);
    for (number, what) in [
        r#"{"tags": ["page"]}"#,
        r#"{"urls": ["http://localhost/a"]}"#,
        r#"{"prefixes": ["http://localhost/"]}"#,
        r#"{"all": true}"#,
        r#"{"patterns": [{"url": "^/a"}]}"#,
        r#"{"tags": ["page"]}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let version = stand.change();
        let (status, receipt) = larders[number % 3].purge(what).await;
        assert_eq!((status, &receipt["fleet"]["complete"]), (200, &true.into()), "{what}: {receipt}");
        assert_eq!(in_state(&receipt, "applied").len(), 2, "{receipt}");
        for larder in &larders {
            assert_eq!(larder.version("/a").await, version, "{what} at {}", number % 3);
        }
    }
    assert_eq!(
        stand.origin.log().count_of("/a"),
        3 + 6 * 3,
        "each asks once, and after each purge once more"
    );
    assert_eq!(second.fleet().await["others"].as_array().unwrap().len(), 2);
    let (code, said) = second.command(&["fleet"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("web-2 (here)") && said.contains("web-3") && said.contains("log "), "{said}");
    let (code, said) = third.command(&["purge", "--tag", "page"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.trim_end().ends_with("complete: applied here and on web-1, web-2"), "{said}");
    let metrics = first.process.metrics().await;
    assert_eq!(metrics.value("larder_fleet_members"), Some(3.0));
    assert_eq!(metrics.value("larder_fleet_server_up"), Some(1.0));
}

#[tokio::test]
async fn what_lies_on_a_disk_is_validated_after_a_start() {
    let stand = Stand::new();
    let disk = tempfile::tempdir().unwrap();
    let store = format!("disks = [{{ path = {:?}, size = \"64MiB\" }}]", disk.path());
    let first = stand.larder("web-1", "20s", "").await;
    let mut second = stand.larder("web-2", "20s", &store).await;
    together(&[&first, &second]).await;
    until("it is stored", async || second.is_hit("/a").await && second.is_hit("/b").await).await;
    second.process.signal(rustix::process::Signal::TERM);
    assert_eq!(second.process.end().await, 0);
    let version = stand.change();
    let (status, receipt) = first.purge(r#"{"urls": ["http://localhost/a"]}"#).await;
    assert_eq!(status, 200, "{receipt}");
    assert_eq!(in_state(&receipt, "away"), ["web-2"], "{receipt}");
    let second = stand.larder("web-2", "20s", &store).await;
    together(&[&first, &second]).await;
    let asked = stand.origin.log().count();
    assert_eq!([second.version("/a").await, second.version("/b").await], [version, version]);
    assert_eq!(stand.origin.log().count(), asked + 2);
    assert!(second.is_hit("/a").await && second.is_hit("/b").await);
}

#[tokio::test]
async fn what_a_post_invalidates_is_asked_for_again_at_all_of_them() {
    let stand = Stand::new();
    let (first, second) = (stand.larder("web-1", "20s", "").await, stand.larder("web-2", "20s", "").await);
    together(&[&first, &second]).await;
    until("it is stored", async || second.is_hit("/a").await && second.is_hit("/b").await).await;
    let version = stand.change();
    assert_eq!(first.post("/a").await, 200);
    until("it is gone", async || second.version("/a").await == version).await;
    assert_eq!(second.version("/b").await, version - 1, "what was not named stays");
    let (_, purges) = second.admin(&Request::new("GET", "/api/v1/purges", "localhost")).await;
    assert!(purges.as_array().unwrap().iter().all(|purge| purge["what"] != "url localhost/a"), "{purges}");
}

#[tokio::test]
async fn what_one_who_may_purge_has_fetched_anew_is_asked_for_again_at_all_of_them() {
    let stand = Stand::new();
    let site = format!("purge = {{ token = {TOKEN:?} }}");
    let first = stand.with_site("web-1", "20s", "", &site).await;
    let second = stand.with_site("web-2", "20s", "", &site).await;
    together(&[&first, &second]).await;
    until("it is stored", async || second.is_hit("/a").await && second.is_hit("/b").await).await;
    let version = stand.change();
    assert_eq!(first.reload("/a").await.body, version.to_string().as_bytes());
    until("the other one follows", async || second.version("/a").await == version).await;
    assert_eq!(second.version("/b").await, version - 1, "what was not named stays");
}

#[tokio::test]
async fn two_larders_of_one_name_are_told() {
    let stand = Stand::new();
    let first = stand.larder("web-1", "1s", "").await;
    let second = stand.larder("web-1", "1s", "").await;
    let said = "under the name web-1 as well";
    tokio::select! {
        () = first.process.says(said) => {}
        () = second.process.says(said) => {}
    }
    assert_eq!((first.get("/a").await.status, second.get("/a").await.status), (200, 200));
}
