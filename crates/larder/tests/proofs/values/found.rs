//! What is found, and when it is asked for again.

use larder_testkit::client::Request;
use larder_testkit::origin::Origin;

use super::{HOST, Setup, config, is_from_origin, is_hit, page, unix};
use crate::support::{Process, cache_status, script, until};

const NO_STORE: &[&str] = &["Cache-Control: no-store"];

#[tokio::test]
async fn what_an_application_puts_there_is_what_the_next_client_gets() {
    let origin = vec![script("/*", page(NO_STORE, "from the origin"))];
    let setup = Setup::new(origin, "near = \"0s\"", "").await;
    is_from_origin(&setup.get("/a?b=1").await, "from the origin");
    // It says nothing about caching, which leaves a mark, and writes a value.
    setup.set("/a?b=1", "<p>one</p>");
    let hit = setup.get("/a?b=1").await;
    is_hit(&hit, "<p>one</p>");
    assert_eq!((hit.status, hit.fields.first("content-type")), (200, Some("text/html")));
    setup.set("/a?b=1", "<p>two</p>");
    is_hit(&setup.get("/a?b=1").await, "<p>two</p>");
    let head = setup.send(&Request::new("HEAD", "/a?b=1", HOST)).await;
    assert_eq!(head.fields.first("content-length"), Some("10"), "{head}");
    let range = setup.send(&Request::new("GET", "/a?b=1", HOST).field("Range", "bytes=3-5")).await;
    assert_eq!((range.status, &range.body[..]), (206, &b"two"[..]), "{range}");
    assert_eq!(setup.origin.log().count(), 1);
    // What it deletes is the origin's again.
    setup.memcached.raw().ask("delete /a?b=1\r\n");
    is_from_origin(&setup.get("/a?b=1").await, "from the origin");
    assert_eq!(setup.origin.log().count(), 2);
}

#[tokio::test]
async fn a_copy_is_used_for_near_and_then_the_value_is_asked_for_and_not_the_origin() {
    let origin = vec![script("/*", page(&["Cache-Control: max-age=60"], "from the origin"))];
    let setup =
        Setup::new(origin, "near = \"300ms\"", "stale_while_revalidate = \"1h\"\nrefresh_ahead = true").await;
    setup.set("/a", "one");
    is_hit(&setup.get("/a").await, "one");
    setup.set("/a", "two");
    let looked = setup.lookups("found").await;
    until("the copy is old", async || setup.get("/a").await.body == b"two").await;
    assert!(setup.lookups("found").await > looked);
    assert_eq!(setup.origin.log().count(), 0, "neither asked nor refreshed");
    // With the value gone its copy goes, whatever may be used stale.
    setup.memcached.raw().ask("delete /a\r\n");
    until("it is gone", async || setup.get("/a").await.body == b"from the origin").await;
    // What the origin said is fresh is used before a value.
    setup.set("/a", "three");
    is_hit(&setup.get("/a").await, "from the origin");
}

#[tokio::test]
async fn a_reload_of_a_page_asks_for_its_value() {
    let origin = vec![script("/*", page(NO_STORE, "from the origin"))];
    let setup = Setup::new(origin, "near = \"1h\"", "").await;
    setup.set("/a", "one");
    is_hit(&setup.get("/a").await, "one");
    setup.set("/a", "two");
    is_hit(&setup.get("/a").await, "one");
    let reload = Request::new("GET", "/a", HOST).field("Cache-Control", "no-cache");
    // Within a second of the last look nobody is asked; ever after the server is.
    until("the second is over", async || setup.send(&reload).await.body == b"two").await;
    let cached = Request::new("GET", "/never", HOST).field("Cache-Control", "only-if-cached");
    assert_eq!(setup.send(&cached).await.status, 504);
    setup.set("/never", "there");
    is_hit(&setup.send(&cached).await, "there");
    assert_eq!(setup.origin.log().count(), 0);
}

#[tokio::test]
async fn a_value_by_cookie_is_for_those_who_have_that_cookie() {
    let origin = vec![script("/*", page(NO_STORE, "from the origin"))];
    let setup = Setup::new(origin, "key = \"{path}:{cookie:user}\"", "key = { cookies = [\"user\"] }").await;
    for user in ["ann", "bob"] {
        setup.set(&format!("/account:{user}"), &format!("of {user}"));
    }
    let asked = |cookie: &str| Request::new("GET", "/account", HOST).field("Cookie", cookie);
    for _ in 0..3 {
        is_hit(&setup.send(&asked("user=ann")).await, "of ann");
        is_hit(&setup.send(&asked("theme=dark; user=bob")).await, "of bob");
        is_from_origin(&setup.send(&asked("user=eve")).await, "from the origin");
        is_from_origin(&setup.send(&asked("user=ann; user=bob")).await, "from the origin");
        is_from_origin(&setup.get("/account").await, "from the origin");
    }
    // A purge of the URL cannot name them, and says so.
    let purge = Request::new("DELETE", "/object?url=http%3A%2F%2Flocalhost%2Faccount", HOST);
    let answer = setup.admin(&purge).await;
    assert!(answer.status >= 500, "{answer}");
    assert!(String::from_utf8_lossy(&answer.body).contains("cannot name"), "{answer}");
}

#[tokio::test]
async fn a_page_has_its_fragments_from_there() {
    let template = "[<!--#include virtual=\"/parts/news\" -->|<!--#include virtual=\"/parts/basket\" -->]";
    let origin = vec![
        script("/page", page(&["Cache-Control: max-age=60", "Content-Type: text/html"], template)),
        script("/*", page(NO_STORE, "from the origin")),
    ];
    let setup = Setup::new(origin, "near = \"0s\"", "assemble = \"ssi\"").await;
    setup.set("/parts/news", "news");
    let all = async || String::from_utf8(setup.get("/page").await.body.to_vec()).unwrap();
    assert_eq!(all().await, "[news|from the origin]");
    setup.set("/parts/basket", "basket");
    assert_eq!(all().await, "[news|basket]");
    setup.set("/parts/news", "newer");
    assert_eq!(all().await, "[newer|basket]");
    setup.memcached.raw().ask("delete /parts/news\r\n");
    assert_eq!(all().await, "[from the origin|basket]");
    // A template may lie there, too.
    setup.set("/other", "(<!--#include virtual=\"/parts/basket\" -->)");
    assert_eq!(setup.get("/other").await.body, b"(basket)");
}

#[tokio::test]
async fn a_message_brings_its_own_fields() {
    let origin = vec![script("/*", page(NO_STORE, "from the origin"))];
    let setup = Setup::new(origin, "format = \"http\"\nkey = \"page:{host}{target}\"", "").await;
    setup.set(
        "page:localhost/a",
        "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\n\r\n{}",
    );
    let hit = setup.get("/a").await;
    is_hit(&hit, "{}");
    assert_eq!((hit.status, hit.fields.first("content-type")), (404, Some("application/json")));
    let known = Request::new("GET", "/b", HOST).field("If-None-Match", "\"v1\"");
    setup.set("page:localhost/b", "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\n\r\nbody");
    assert_eq!(setup.send(&known).await.status, 304);
    setup.set("page:localhost/c", "no message");
    is_from_origin(&setup.get("/c").await, "from the origin");
    assert_eq!(setup.lookups("malformed").await, 1);
}

#[tokio::test]
async fn explain_and_stats_tell_of_values() {
    let origin = vec![script("/*", page(NO_STORE, "from the origin"))];
    let setup = Setup::new(origin, "near = \"1h\"", "").await;
    setup.set("/a", "one");
    let explain = Request::new("GET", "/explain?url=http%3A%2F%2Flocalhost%2Fa", HOST);
    let answer = setup.admin(&explain).await;
    let told: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(told["decision"]["verdict"], "hit", "{told:#}");
    let stored = &told["stored"]["responses"][0];
    assert_eq!(stored["freshness"]["source"]["token"], "remote", "{told:#}");
    let server = format!("memcached {}", unix(&setup.memcached));
    assert_eq!(stored["places"][1], format!("{server}, /a"), "{told:#}");
    assert_eq!(told["stored"]["stores"][0]["places"][1], server, "{told:#}");
    assert_eq!(setup.origin.log().count(), 0);
    let stats = setup.admin(&Request::new("GET", "/stats", HOST)).await;
    let told: serde_json::Value = serde_json::from_slice(&stats.body).unwrap();
    let of_server = &told["stores"][0]["servers"][0];
    assert_eq!((&of_server["state"], &of_server["lookups"]["found"]), (&"up".into(), &1.into()), "{told:#}");
}

#[tokio::test]
async fn explain_finds_the_fragments_of_a_page_there() {
    let template = "[<!--#include virtual=\"/parts/news\" -->]";
    let origin = vec![
        script("/page", page(&["Cache-Control: max-age=60", "Content-Type: text/html"], template)),
        script("/*", page(NO_STORE, "from the origin")),
    ];
    let setup = Setup::new(origin, "near = \"1h\"", "assemble = \"ssi\"").await;
    assert_eq!(setup.get("/page").await.body, b"[from the origin]");
    setup.set("/parts/news", "news");
    let explain = |flags: &str| {
        let target = format!("/explain?url=http%3A%2F%2Flocalhost%2Fpage{flags}");
        Request::new("GET", &target, HOST)
    };
    let asked = setup.origin.log().count();
    for (flags, expected) in [("&offline=true", "fetch"), ("", "hit")] {
        let answer = setup.admin(&explain(flags)).await;
        let told: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        let fragment = &told["parts"]["includes"][0]["fragment"];
        assert_eq!(fragment["verdict"], expected, "{flags}: {told:#}");
        assert_eq!(
            told["parts"]["state"]["token"], "open",
            "{flags}: a first look finds it nowhere: {told:#}"
        );
    }
    assert_eq!(setup.origin.log().count(), asked);
}

#[tokio::test]
async fn a_reload_brings_a_store_of_values_and_another_host() {
    let origin = Origin::simple(vec![script("/*", page(NO_STORE, "from the origin"))]).unwrap();
    let memcached = larder_testkit::memcached::Server::start();
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), &unix(&memcached), &origin.url(), "near = \"0s\"", "");
    let text = std::fs::read_to_string(&path).unwrap();
    let plain = text.replace("[stores.default.memcached]", "[stores.values.memcached]");
    std::fs::write(&path, &plain).unwrap();
    let larder = Process::run_config(&path).await;
    memcached.raw().set("/a", 0, 0, b"value");
    let get = async || crate::support::get(larder.addr, "/a").await;
    assert!(cache_status(&get().await).contains("fwd="));
    std::fs::write(&path, plain.replace("origin = \"app\"\n", "origin = \"app\"\nstore = \"values\"\n"))
        .unwrap();
    larder.signal(crate::support::Signal::HUP);
    until("the value is found", async || get().await.body == b"value").await;
    // An unsafe request at the host that uses it from now on deletes there.
    let post = Request::new("POST", "/a", HOST);
    let mut connection = crate::support::connect(larder.addr).await;
    assert_eq!(connection.exchange(&post).await.unwrap().status, 200);
    until("it is deleted", async || memcached.raw().ask("get /a\r\n") == "END\r\n").await;
}
