//! What larder writes there, and what another larder makes of it.

use larder_testkit::client::Request;

use super::{HOST, Setup, config, is_from_origin, is_hit, page, unix};
use crate::support::{Process, Signal, script, until, within};

const HTML: &[&str] = &["Content-Type: text/html", "Cache-Control: max-age=3600", "ETag: \"v1\""];

#[tokio::test]
async fn what_the_origin_gave_is_found_by_the_next_larder() {
    let origin = vec![
        script("/page", page(HTML, "<p>page</p>")),
        script("/json", page(&["Content-Type: application/json", "Cache-Control: max-age=3600"], "{}")),
        script("/own", page(&[HTML, &["Set-Cookie: session=secret123; HttpOnly"]].concat(), "<p>own</p>")),
        script("/assumed", page(&["Content-Type: text/html"], "<p>assumed</p>")),
    ];
    let mut setup = Setup::new(origin, "write = true", "ttl = \"1h\"").await;
    for (target, body) in
        [("/page", "<p>page</p>"), ("/json", "{}"), ("/own", "<p>own</p>"), ("/assumed", "<p>assumed</p>")]
    {
        is_from_origin(&setup.get(target).await, body);
    }
    until("it is there", async || setup.there("/page").contains("<p>page</p>")).await;
    for target in ["/json", "/own", "/assumed"] {
        assert_eq!(setup.there(target), "END\r\n", "{target} is none of its values");
    }
    setup.larder.signal(Signal::TERM);
    setup.larder.end().await;
    let before = setup.origin.log().count();
    let path = setup.folder.path().join("larder.toml");
    setup.larder = Process::run_config(&path).await;
    let session = Request::new("GET", "/page", HOST).field("Cookie", "session=secret456");
    is_hit(&setup.send(&session).await, "<p>page</p>");
    assert_eq!(setup.origin.log().count(), before);
    is_from_origin(&setup.get("/assumed").await, "<p>assumed</p>");
}

#[tokio::test]
async fn messages_keep_their_lifetimes_and_validators() {
    let conditional = larder_testkit::origin::Answer { conditional: true, ..page(HTML, "<p>page</p>") };
    let origin = vec![script("/page", conditional)];
    let mut setup = Setup::new(origin, "write = true\nformat = \"http\"\nkey = \"{host}{target}\"", "").await;
    is_from_origin(&setup.get("/page").await, "<p>page</p>");
    until("it is there", async || setup.there("localhost/page").contains("<p>page</p>")).await;
    setup.larder.signal(Signal::TERM);
    setup.larder.end().await;
    setup.larder = Process::run_config(&setup.folder.path().join("larder.toml")).await;
    let hit = setup.get("/page").await;
    is_hit(&hit, "<p>page</p>");
    assert_eq!(hit.fields.first("etag"), Some("\"v1\""));
    assert_eq!(hit.fields.first("cache-control"), Some("max-age=3600"));
    assert_eq!(setup.origin.log().count(), 1);
}

#[tokio::test]
async fn an_unsafe_request_deletes_and_what_began_before_it_is_not_written() {
    let setup =
        Setup::new(vec![script("/page", page(HTML, "<p>page</p>"))], "write = true\nnear = \"1h\"", "").await;
    is_from_origin(&setup.get("/page").await, "<p>page</p>");
    until("it is there", async || setup.there("/page").contains("<p>page</p>")).await;
    let post = setup.send(&Request::new("POST", "/page", HOST)).await;
    assert_eq!(post.status, 200);
    // Whatever the server has done by now, nothing of before is used.
    is_from_origin(&setup.get("/page").await, "<p>page</p>");
    until("the new one is there", async || setup.there("/page").contains("<p>page</p>")).await;
    for (result, count) in [("deleted", 1), ("written", 2)] {
        // A value is there a moment before its writer counts it.
        until(result, async || setup.counted("larder_remote_writes_total", result).await == count).await;
    }
}

#[tokio::test]
async fn nobody_waits_for_a_server_that_takes_no_values() {
    let memcached = larder_testkit::memcached::Server::start();
    let origin =
        larder_testkit::origin::Origin::simple(vec![script("/*", page(HTML, "<p>page</p>"))]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), &unix(&memcached), &origin.url(), "write = true", "");
    let larder = Process::run_config(&path).await;
    memcached.stop();
    for number in 0..50 {
        let begun = std::time::Instant::now();
        let answer = within("an answer", crate::support::get(larder.addr, &format!("/{number}"))).await;
        is_from_origin(&answer, "<p>page</p>");
        assert!(begun.elapsed().as_millis() < 1000, "{:?}", begun.elapsed());
    }
    memcached.resume();
    let is_up = async || larder.metrics().await.sum("larder_remote_server_up") == 1;
    until("the server is asked again", is_up).await;
    let written = async || {
        crate::support::get(larder.addr, "/again").await;
        memcached.raw().ask("get /again\r\n").contains("<p>page</p>")
    };
    until("it is written to again", written).await;
}
