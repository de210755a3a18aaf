//! Purges: acknowledged when the server has confirmed, and not before.

use larder_testkit::client::{Request, Response};

use super::{HOST, Setup, is_from_origin, is_hit, page};
use crate::support::{script, until};

const TAGGED: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nCache-Tag: one\r\n\r\nvalue";

async fn purge(setup: &Setup, what: &str) -> Response {
    let request = Request::new("POST", "/api/v1/purges", HOST).field("Content-Type", "application/json");
    setup.admin(&request.body(what.to_owned())).await
}

#[tokio::test]
async fn a_purge_of_a_url_deletes_its_value() {
    let origin = vec![script("/*", page(&["Cache-Control: max-age=60"], "from the origin"))];
    for mode in ["", ", \"soft\": true"] {
        let setup = Setup::new(origin.clone(), "near = \"1h\"", "").await;
        setup.set("/a", "value");
        // Also of one that memory knows nothing of.
        setup.set("/b", "value");
        is_hit(&setup.get("/a").await, "value");
        let urls = "\"urls\": [\"http://localhost/a\", \"http://localhost/b\"]";
        let answer = purge(&setup, &format!("{{{urls}{mode}}}")).await;
        assert_eq!(answer.status, 200, "{answer}");
        for target in ["/a", "/b"] {
            assert_eq!(setup.there(target), "END\r\n", "{mode} {target}");
        }
        until("the origin gives it", async || setup.get("/a").await.body == b"from the origin").await;
        is_from_origin(&setup.get("/b").await, "from the origin");
    }
}

#[tokio::test]
async fn a_purge_by_whatever_memory_has_of_a_value_deletes_it_too() {
    for (what, mode) in [
        ("\"tags\": [\"one\"]", ""),
        ("\"prefixes\": [\"localhost/\"]", ""),
        ("\"tags\": [\"one\"]", ", \"soft\": true"),
    ] {
        let origin = vec![script("/*", page(&["Cache-Control: max-age=60"], "from the origin"))];
        let setup = Setup::new(origin, "near = \"1h\"\nformat = \"http\"", "").await;
        setup.set("/a", TAGGED);
        is_hit(&setup.get("/a").await, "value");
        let answer = purge(&setup, &format!("{{{what}{mode}}}")).await;
        assert_eq!(answer.status, 200, "{what}: {answer}");
        let asked = setup.get("/a").await;
        assert!(mode.contains("soft") || asked.body == b"from the origin", "{what}: {asked}");
        until("it is deleted", async || setup.there("/a") == "END\r\n").await;
        until("the origin gives it", async || setup.get("/a").await.body == b"from the origin").await;
    }
}

#[tokio::test]
async fn a_purge_that_no_server_confirms_fails_and_is_in_force_all_the_same() {
    let origin = vec![script("/*", page(&["Cache-Control: no-store"], "from the origin"))];
    let mut setup = Setup::new(origin, "near = \"1h\"", "").await;
    setup.set("/a", "value");
    is_hit(&setup.get("/a").await, "value");
    setup.memcached.kill();
    let answer = purge(&setup, "{\"urls\": [\"http://localhost/a\"], \"wait\": 0.5}").await;
    assert!(answer.status >= 500, "{answer}");
    assert!(String::from_utf8_lossy(&answer.body).contains("not confirmed"), "{answer}");
    is_from_origin(&setup.get("/a").await, "from the origin");
    setup.memcached.restart();
    // As if it had been away, and not ended.
    setup.set("/a", "value");
    is_from_origin(&setup.get("/a").await, "from the origin");
    until("it is deleted", async || setup.there("/a") == "END\r\n").await;
    setup.set("/a", "new");
    until("the new one is found", async || setup.get("/a").await.body == b"new").await;
}
