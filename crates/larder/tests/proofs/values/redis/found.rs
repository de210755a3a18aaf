//! What is found, for how long, and what operators see of it.

use larder_testkit::client::Request;
use larder_testkit::redis::{RedisOnPort, RedisServer};

use super::{HOST, Setup, config, is_from_origin, is_hit, page};
use crate::support::{Process, script, until, within};

const NO_STORE: &[&str] = &["Cache-Control: no-store"];

fn origin() -> Vec<larder_testkit::origin::PathScript> {
    vec![script("/*", page(NO_STORE, "from the origin"))]
}

#[tokio::test]
async fn what_an_application_puts_there_is_what_the_next_client_gets() {
    let setup = Setup::new(origin(), "near = \"0s\"\nkey = \"page:{host}{target}\"", "").await;
    is_from_origin(&setup.get("/a?b=1").await, "from the origin");
    setup.set("page:localhost/a?b=1", "<p>one</p>");
    let hit = setup.get("/a?b=1").await;
    is_hit(&hit, "<p>one</p>");
    assert_eq!((hit.status, hit.fields.first("content-type")), (200, Some("text/html")));
    setup.set("page:localhost/a?b=1", "<p>two</p>");
    is_hit(&setup.get("/a?b=1").await, "<p>two</p>");
    assert_eq!(setup.origin.log().count(), 1);
    setup.redis.raw().delete("page:localhost/a?b=1");
    is_from_origin(&setup.get("/a?b=1").await, "from the origin");
    assert_eq!(setup.origin.log().count(), 2);
    assert_eq!((setup.lookups("found").await, setup.lookups("absent").await), (2, 2));
}

#[tokio::test]
async fn a_copy_lives_for_near_and_no_longer_than_its_value() {
    let setup = Setup::new(origin(), "near = \"1h\"\nkey = \"{target}\"", "").await;
    setup.redis.raw().set_for("/short", 400, b"short");
    setup.set("/long", "long");
    is_hit(&setup.get("/short").await, "short");
    is_hit(&setup.get("/long").await, "long");
    let asked = setup.lookups("found").await;
    until("the value has gone, and its copy with it", async || {
        setup.get("/short").await.body == b"from the origin"
    })
    .await;
    is_hit(&setup.get("/long").await, "long");
    assert_eq!(setup.lookups("found").await, asked, "the other one is not asked for");
}

#[tokio::test]
async fn clients_are_told_no_longer_lifetime_than_the_value_has() {
    let message = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=3600\r\n\r\nhello";
    let setup = Setup::new(origin(), "near = \"1h\"\nformat = \"http\"", "").await;
    setup.redis.raw().set_for("/a", 60_000, message.as_bytes());
    let hit = setup.get("/a").await;
    is_hit(&hit, "hello");
    assert_eq!(hit.fields.first("content-type"), Some("text/plain"));
    let status = crate::support::cache_status(&hit);
    let ttl = status.split("ttl=").nth(1).unwrap().split(';').next().unwrap().parse::<u64>().unwrap();
    assert!(ttl <= 60, "{status}");
    setup.set("/b", "no message");
    is_from_origin(&setup.get("/b").await, "from the origin");
    setup.redis.raw().ask(&[b"RPUSH", b"/c", b"a list"]);
    is_from_origin(&setup.get("/c").await, "from the origin");
    assert_eq!(setup.lookups("malformed").await, 2);
}

#[tokio::test]
async fn a_server_with_a_password_and_a_database_is_used_and_nobody_is_shown_the_password() {
    let server = RedisServer::start_with(&["--requirepass", "s3cret"]);
    let mut raw = server.raw();
    raw.ask(&[b"AUTH", b"s3cret"]);
    raw.ask(&[b"SELECT", b"5"]);
    raw.set("/a", b"value");
    let url = format!("url = \"unix://{}?db=5&pass=s3cret\"", server.socket().display());
    let (origin, folder) =
        (larder_testkit::origin::Origin::simple(origin()).unwrap(), tempfile::tempdir().unwrap());
    let path = config(folder.path(), &url, &origin.url(), "key = \"{target}\"", "");
    let larder = Process::run_config(&path).await;
    is_hit(&within("/a", crate::support::get(larder.addr, "/a")).await, "value");
    let told = format!("redis unix:{}", server.socket().display());
    for (target, part) in [
        ("/explain?url=http%3A%2F%2Flocalhost%2Fa", format!("{told}, /a")),
        ("/stats", "\"kind\":\"redis\"".to_owned()),
        ("/metrics", "larder_remote_server_up".to_owned()),
    ] {
        let request = Request::new("GET", target, HOST);
        let answer = within(target, async {
            crate::support::connect(larder.admin).await.exchange(&request).await.unwrap()
        })
        .await;
        let shown = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(shown.replace(": ", ":").contains(&part.replace(": ", ":")), "{target}: {shown}");
        assert!(!shown.contains("s3cret"), "{target}: {shown}");
    }
    assert_eq!(origin.log().count(), 0);
}

#[tokio::test]
async fn a_server_on_a_port_is_used() {
    let server = RedisOnPort::start();
    let (origin, folder) =
        (larder_testkit::origin::Origin::simple(origin()).unwrap(), tempfile::tempdir().unwrap());
    let url = format!("url = \"redis://127.0.0.1:{}/0\"", server.port);
    let path = config(folder.path(), &url, &origin.url(), "key = \"{target}\"", "");
    let larder = Process::run_config(&path).await;
    is_from_origin(&within("/a", crate::support::get(larder.addr, "/a")).await, "from the origin");
    assert_eq!(larder.metrics().await.sum("larder_remote_server_up"), 1);
}
