//! What larder writes there and deletes.

use larder_testkit::client::Request;

use super::{HOST, Setup, is_from_origin, is_hit, page};
use crate::support::{Process, Signal, script, until};

const HTML: &[&str] = &["Content-Type: text/html", "Cache-Control: max-age=3600"];

#[tokio::test]
async fn what_the_origin_gave_lies_there_and_the_next_larder_finds_it() {
    let origin = vec![
        script("/page", page(HTML, "<p>page</p>")),
        script("/json", page(&["Content-Type: application/json", "Cache-Control: max-age=3600"], "{}")),
    ];
    let mut setup = Setup::new(origin, "write = true\nkey = \"{target}\"", "").await;
    is_from_origin(&setup.get("/page").await, "<p>page</p>");
    is_from_origin(&setup.get("/json").await, "{}");
    until("it is there", async || setup.there("/page").as_deref() == Some("<p>page</p>")).await;
    let left = setup.redis.raw().left("/page");
    assert!((3_500_000..=3_600_000).contains(&left), "{left}");
    assert_eq!(setup.there("/json"), None, "it is none of its values");
    setup.larder.signal(Signal::TERM);
    setup.larder.end().await;
    setup.larder = Process::run_config(&setup.folder.path().join("larder.toml")).await;
    is_hit(&setup.get("/page").await, "<p>page</p>");
    assert_eq!(setup.origin.log().count(), 2);
}

#[tokio::test]
async fn a_purge_of_a_url_deletes_its_value_and_is_confirmed() {
    let origin = vec![script("/*", page(&["Cache-Control: max-age=60"], "from the origin"))];
    for mode in ["", ", \"soft\": true"] {
        let setup = Setup::new(origin.clone(), "near = \"1h\"\nkey = \"{target}\"", "").await;
        setup.set("/a", "value");
        // Also of one that memory knows nothing of.
        setup.set("/b", "value");
        is_hit(&setup.get("/a").await, "value");
        let urls = "\"urls\": [\"http://localhost/a\", \"http://localhost/b\"]";
        let answer = setup.purge(&format!("{{{urls}{mode}}}")).await;
        assert_eq!(answer.status, 200, "{answer}");
        for target in ["/a", "/b"] {
            assert_eq!(setup.there(target), None, "{mode} {target}");
        }
        until("the origin gives it", async || setup.get("/a").await.body == b"from the origin").await;
        assert_eq!(setup.counted("larder_remote_writes_total", "deleted").await, 2);
    }
}

#[tokio::test]
async fn a_purge_that_no_server_confirms_fails_and_is_in_force_all_the_same() {
    let origin = vec![script("/*", page(&["Cache-Control: no-store"], "from the origin"))];
    let mut setup = Setup::new(origin, "near = \"1h\"\nkey = \"{target}\"", "").await;
    setup.set("/a", "value");
    is_hit(&setup.get("/a").await, "value");
    setup.redis.kill();
    let answer = setup.purge("{\"urls\": [\"http://localhost/a\"], \"wait\": 0.5}").await;
    assert!(answer.status >= 500, "{answer}");
    assert!(String::from_utf8_lossy(&answer.body).contains("not confirmed"), "{answer}");
    is_from_origin(&setup.get("/a").await, "from the origin");
    setup.redis.restart();
    // As if it had been away, and not ended.
    setup.set("/a", "value");
    is_from_origin(&setup.get("/a").await, "from the origin");
    until("it is deleted", async || setup.there("/a").is_none()).await;
    setup.set("/a", "new");
    until("the new one is found", async || setup.get("/a").await.body == b"new").await;
}

#[tokio::test]
async fn an_unsafe_request_deletes() {
    let setup = Setup::new(
        vec![script("/page", page(HTML, "<p>page</p>"))],
        "write = true\nnear = \"1h\"\nkey = \"{target}\"",
        "",
    )
    .await;
    is_from_origin(&setup.get("/page").await, "<p>page</p>");
    until("it is there", async || setup.there("/page").is_some()).await;
    assert_eq!(setup.send(&Request::new("POST", "/page", HOST)).await.status, 200);
    is_from_origin(&setup.get("/page").await, "<p>page</p>");
    until("the new one is there", async || setup.there("/page").is_some()).await;
    for (result, count) in [("deleted", 1), ("written", 2)] {
        // A value is there a moment before its writer counts it.
        until(result, async || setup.counted("larder_remote_writes_total", result).await == count).await;
    }
}

#[tokio::test]
async fn a_server_that_may_only_be_read_refuses_and_nobody_notices() {
    let origin = vec![script("/*", page(HTML, "<p>page</p>"))];
    let setup = Setup::new(origin, "write = true\nnear = \"0s\"\nkey = \"{target}\"", "").await;
    let mut raw = setup.redis.raw();
    raw.set("/value", b"value");
    // Of a master that is not there.
    raw.ask(&[b"REPLICAOF", b"127.0.0.1", b"1"]);
    is_from_origin(&setup.get("/page").await, "<p>page</p>");
    let refused = async || setup.counted("larder_remote_writes_total", "refused").await == 1;
    until("it is refused", refused).await;
    is_hit(&setup.get("/value").await, "value");
    is_hit(&setup.get("/page").await, "<p>page</p>");
    assert_eq!((setup.there("/page"), setup.origin.log().count()), (None, 1));
}
