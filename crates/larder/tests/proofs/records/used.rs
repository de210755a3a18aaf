//! All is well: what one larder has fetched, the others use.

use larder_testkit::client::Request;

use super::{Larder, Scene, is_hit, state, together};
use crate::support::{Process, Signal, cache_status, until, written};

#[tokio::test]
async fn what_one_larder_has_fetched_the_others_do_not_fetch() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    let fetched = scene.fetched_by(&first, "/a?x=1").await;
    assert!(!is_hit(&fetched), "{fetched}");
    let found = second.get("/a?x=1").await;
    assert!(
        cache_status(&found).contains("; hit") && cache_status(&found).ends_with("detail=remote"),
        "{found}"
    );
    assert_eq!(found.body, fetched.body);
    for name in ["etag", "cache-control", "content-type"] {
        assert_eq!(found.fields.first(name), fetched.fields.first(name), "{name}");
    }
    // From then on it is in memory.
    assert!(!cache_status(&second.get("/a?x=1").await).contains("detail"));
    let lookups = second.process.metrics().await.sum("larder_remote_lookups_total");
    for _ in 0..20 {
        assert!(is_hit(&second.get("/a?x=1").await));
    }
    assert_eq!(second.process.metrics().await.sum("larder_remote_lookups_total"), lookups);
    let head = second.ask(&Request::new("HEAD", "/a?x=1", "localhost")).await;
    assert!(is_hit(&head), "{head}");
    let part = second.ask(&Request::new("GET", "/a?x=1", "localhost").field("Range", "bytes=2-3")).await;
    assert_eq!((part.status, &part.body[..]), (206, &b"/a"[..]));
    // A HEAD and a part are answered from what another has fetched as well.
    let third = scene.larder("web-3").await;
    let part = third.ask(&Request::new("GET", "/a?x=1", "localhost").field("Range", "bytes=2-3")).await;
    assert_eq!((part.status, &part.body[..]), (206, &b"/a"[..]));
    assert!(is_hit(&third.ask(&Request::new("HEAD", "/a?x=1", "localhost")).await));
    assert_eq!(scene.asked("/a?x=1"), 1);
}

#[tokio::test]
async fn bodies_of_every_length_come_back_whole() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    for length in [1 << 10, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 1_000_000, 8 << 20] {
        let target = format!("/body-{length}");
        let fetched = scene.fetched_by(&first, &target).await;
        assert_eq!(fetched.body.len(), length);
        let found = second.get(&target).await;
        assert!(is_hit(&found), "{length}: {}", cache_status(&found));
        assert!(found.body == fetched.body, "{length}: another body");
        assert_eq!(scene.asked(&target), 1, "{length}");
    }
    scene.fetched_by(&first, "/empty").await;
    assert!(is_hit(&second.get("/empty").await));
    // Beyond that each fetches for itself, and says so.
    let large = "/body-8388609";
    first.get(large).await;
    until("it is in memory", async || is_hit(&first.get(large).await)).await;
    assert!(!is_hit(&second.get(large).await));
    let metrics = first.process.metrics().await;
    let not_shared = "larder_records_not_shared_total{store=\"default\",reason=\"length\"}";
    assert_eq!(metrics.value(not_shared), Some(1.0));
}

#[tokio::test]
async fn responses_that_vary_are_found_by_those_who_would_get_the_same() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    let in_language =
        |language: &str| Request::new("GET", "/vary", "localhost").field("Accept-Language", language);
    for language in ["de", "fr"] {
        let before = first.written().await;
        let fetched = first.ask(&in_language(language)).await;
        until("both are written", async || first.written().await >= before + 2).await;
        assert!(String::from_utf8_lossy(&fetched.body).contains(language));
    }
    for language in ["fr", "de", "fr"] {
        let found = second.ask(&in_language(language)).await;
        assert!(is_hit(&found), "{language}: {found}");
        assert!(String::from_utf8_lossy(&found.body).contains(language), "{language}: {found}");
    }
    // Bodies that lie in pieces, too: none takes the place of another.
    let of_long =
        |language: &str| Request::new("GET", "/vary-600000", "localhost").field("Accept-Language", language);
    for language in ["de", "fr"] {
        let before = first.written().await;
        first.ask(&of_long(language)).await;
        until("all of it is written", async || first.written().await >= before + 5).await;
    }
    for language in ["de", "fr"] {
        let found = second.ask(&of_long(language)).await;
        assert!(is_hit(&found) && found.body.len() == 600_000, "{language}: {}", cache_status(&found));
    }
    let other = second.ask(&in_language("nl")).await;
    assert!(!is_hit(&other) && String::from_utf8_lossy(&other.body).contains("nl"), "{other}");
    assert_eq!(scene.asked("/vary"), 3);
}

#[tokio::test]
async fn what_is_for_one_client_or_not_to_be_stored_is_not_shared() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    for target in ["/private", "/no-store", "/short"] {
        for larder in [&first, &second, &first] {
            larder.get(target).await;
        }
    }
    let with_rights = || Request::new("GET", "/a", "localhost").field("Authorization", "Basic YTpi");
    first.ask(&with_rights()).await;
    assert_eq!(scene.names(), Vec::<String>::new());
    // Nor is it answered by what others have fetched.
    scene.fetched_by(&first, "/a").await;
    let lookups = second.process.metrics().await.sum("larder_remote_lookups_total");
    second.ask(&with_rights()).await;
    assert_eq!(second.process.metrics().await.sum("larder_remote_lookups_total"), lookups);
}

#[tokio::test]
async fn what_becomes_stale_is_fetched_once_and_its_new_record_is_used() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    scene.fetched_by(&first, "/soon").await;
    assert!(is_hit(&second.get("/soon").await));
    let state_now = scene.change();
    until("one has fetched it again", async || first.state("/soon").await == state_now).await;
    let asked = scene.asked("/soon");
    // The other asks for the record before it asks the origin.
    until("the other one uses that", async || second.state("/soon").await == state_now).await;
    assert!(scene.asked("/soon") <= asked + 1, "{} after {asked}", scene.asked("/soon"));
}

#[tokio::test]
async fn a_larder_that_starts_uses_what_was_fetched_before() {
    let scene = Scene { lease: "10s", ..Scene::new() };
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    scene.fetched_by(&first, "/a").await;
    scene.fetched_by(&first, "/b").await;
    // A purge of something else, which the newcomer has to read.
    assert_eq!(first.purge(r#"{"urls": ["http://localhost/b"]}"#).await.0, 200);
    first.stop().await;
    second.stop().await;
    scene.change();
    let third = scene.larder("web-3").await;
    let found = third.get("/a").await;
    assert!(is_hit(&found) && state(&found) == 1, "{found}");
    assert_eq!(third.state("/b").await, 2);
    assert!(third.refused("invalidated").await >= 1);
    assert_eq!((scene.asked("/a"), scene.asked("/b")), (1, 2));
}

#[tokio::test]
async fn a_crowd_at_one_larder_asks_once() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    scene.fetched_by(&first, "/body-100000").await;
    let addr = second.process.addr;
    let mut crowd = tokio::task::JoinSet::new();
    for _ in 0..100 {
        crowd.spawn(async move { crate::support::get(addr, "/body-100000").await });
    }
    while let Some(response) = crowd.join_next().await {
        let response = response.unwrap();
        assert!(response.body.len() == 100_000 && is_hit(&response), "{}", cache_status(&response));
    }
    assert_eq!(scene.asked("/body-100000"), 1);
    // Each worker may have asked for it, and no request for itself.
    let lookups = second.process.metrics().await.sum("larder_remote_lookups_total");
    assert!(lookups <= 2, "{lookups}");
}

#[tokio::test]
async fn three_larders_ask_the_origin_as_often_as_one() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    let third = scene.larder("web-3").await;
    let larders = [&first, &second, &third];
    for number in 0..30 {
        let target = format!("/page-{}", 2000 + number);
        scene.fetched_by(larders[number % 3], &target).await;
        for larder in larders {
            assert!(is_hit(&larder.get(&target).await), "{target}");
        }
        assert_eq!(scene.asked(&target), 1);
    }
}

#[tokio::test]
async fn what_is_confirmed_leaves_no_pieces_behind() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    // Confirmed by a 304 each second, or two; then another body.
    for round in 0..4 {
        first.get("/second/long-700000").await;
        until("there are pieces", async || scene.names().iter().any(|name| name.contains(":b:"))).await;
        let written = first.written().await;
        until("it is stale", async || {
            first.get("/second/long-700000").await;
            first.written().await > written
        })
        .await;
        if round == 2 {
            scene.change();
        }
    }
    until("no more than three pieces are there", async || {
        scene.names().iter().filter(|name| name.contains(":b:")).count() <= 3
    })
    .await;
    assert!(second.get("/second/long-700000").await.body.len() == 700_000);
}

/// A store that a reload opens has not heard of what was purged before.
#[tokio::test]
async fn a_store_that_comes_with_a_reload_brings_nothing_back() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    scene.fetched_by(&first, "/a").await;
    // The second takes its store out, and does not hear of the purge in that.
    let path = second.folder.path().join("larder.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let url = text.lines().find(|line| line.starts_with("redis = ")).unwrap().to_owned() + "\n";
    let [with_other, without] = [
        text.replace(
            "[stores.default]",
            &format!("[stores.other]\nmemory = \"8MiB\"\n{url}[stores.default]"),
        )
        .replace(&format!("memory = \"64MiB\"\n{url}"), "memory = \"64MiB\"\n")
        .replace("origin = \"app\"\n", "origin = \"app\"\nstore = \"other\"\n"),
        text.clone(),
    ];
    std::fs::write(&path, with_other).unwrap();
    second.process.signal(Signal::HUP);
    second.process.says("reloaded").await;
    let now = scene.change();
    assert_eq!(first.purge(r#"{"urls": ["http://localhost/a"]}"#).await.0, 200);
    std::fs::write(&path, without).unwrap();
    second.process.signal(Signal::HUP);
    until("the store is back", async || {
        second.process.stderr().iter().filter(|line| line.contains("reloaded")).count() >= 2
    })
    .await;
    assert_eq!(second.state("/a").await, now);
}

/// Whether it reads the whole log, and asks the server for the time, is decided when it starts.
#[tokio::test]
async fn a_first_store_in_redis_that_comes_with_a_reload_is_said_to_need_a_restart() {
    let scene = Scene::new();
    let shared = scene.config("web-1", "");
    let url = shared.lines().find(|line| line.starts_with("redis = ")).unwrap();
    let of_fleet = format!("redis = {{ {} }}\nname = ", scene.said);
    let with_store = shared.replace("name = ", &of_fleet);
    let without = with_store.replace(&format!("memory = \"64MiB\"\n{url}\n"), "memory = \"64MiB\"\n");
    let (folder, path) = written(&without);
    let larder = Larder { process: Process::run_config(&path).await, name: "web-1".to_owned(), folder };
    until("it has a lease", async || larder.has_lease().await).await;
    let with_another = without
        .replace("[stores.default]", &format!("[stores.shared]\nmemory = \"8MiB\"\n{url}\n[stores.default]"));
    for _ in 0..2 {
        std::fs::write(&path, &with_another).unwrap();
        let before = larder.process.stderr().len();
        larder.process.signal(Signal::HUP);
        until("it is reloaded", async || {
            larder.process.stderr().iter().skip(before).any(|line| line.contains("reloaded"))
        })
        .await;
        let said = larder.process.stderr()[before..].join("\n");
        assert!(said.contains("needs a restart: stores.shared"), "{said}");
    }
}
