//! System A as it was published: bodies and versions that an application keeps in one Redis. It counts a version up, and writes the new body
//! when it is asked for it.

use super::{HASH, Setup, assert_detail, is_hit};

/// A store with the application's bodies.
const BODIES: &str = "[stores.default.redis]\nurl = \"REDIS\"\nkey = \"{url}:version={version}\"\ndefault_type = \"text/html\"";
const RULE: &str = "versions = { hash = \"resource_versions\", field = \"{target}\" }";

fn key(target: &str, version: u64) -> String {
    format!("http://localhost{target}:version={version}")
}

#[tokio::test]
async fn a_body_of_the_application_is_used_for_as_long_as_its_version_is() {
    let setup = Setup::new(BODIES, RULE).await;
    setup.ask(&["HSET", HASH, "/foo", "4"]);
    setup.ask(&["SET", &key("/foo", 4), "body of 4"]);
    let response = setup.get("/foo").await;
    assert!(is_hit(&response) && response.body == b"body of 4", "{response}");
    assert_eq!(response.fields.first("content-type"), Some("text/html"));
    // It is not asked for again, though a value without a version would be, each second.
    setup.ask(&["DEL", &key("/foo", 4)]);
    for _ in 0..20 {
        let response = setup.get("/foo").await;
        assert!(is_hit(&response) && response.body == b"body of 4", "{response}");
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    }
    // A new version without a body is the application's turn; it writes it back.
    setup.change("/foo");
    crate::support::until("the application's turn", async || setup.get("/foo").await.body == b"2").await;
    assert_eq!(setup.origin.log().count(), 1);
    setup.ask(&["SET", &key("/foo", 6), "body of 6"]);
    setup.change("/foo");
    crate::support::until("the new body", async || setup.get("/foo").await.body == b"body of 6").await;
    assert_eq!(setup.origin.log().count(), 1);
}

#[tokio::test]
async fn larder_writes_bodies_under_their_version_where_the_store_says_so() {
    let store = format!("{BODIES}\nwrite = true").replace("text/html", "text/plain");
    let setup = Setup::new(&store, RULE).await;
    setup.ask(&["HSET", HASH, "/plain", "1"]);
    setup.get("/plain").await;
    crate::support::until("it is written", async || {
        setup.ask(&["GET", &key("/plain", 1)]).as_deref() == Some("1")
    })
    .await;
    setup.change("/plain");
    setup.becomes("/plain", 2).await;
    crate::support::until("it is written", async || {
        setup.ask(&["GET", &key("/plain", 2)]).as_deref() == Some("2")
    })
    .await;
    assert_eq!(setup.ask(&["GET", &key("/plain", 1)]).as_deref(), Some("1"));
}

#[tokio::test]
async fn a_purge_cannot_name_bodies_with_a_version_and_says_so() {
    let setup = Setup::new(BODIES, RULE).await;
    let purge = larder_testkit::client::Request::new("POST", "/api/v1/purges", "localhost");
    let purge = purge.field("Content-Type", "application/json");
    let purged = setup.admin(&purge.body(r#"{"urls": ["http://localhost/foo"]}"#.to_owned())).await;
    assert_eq!(purged.status, 503, "{purged}");
    assert!(String::from_utf8_lossy(&purged.body).contains("a new version takes their place"), "{purged}");
    assert_detail(&setup.get("/foo").await, "version-absent");
}

/// The body under the last version that was known may be older than the version that is there now.
#[tokio::test]
async fn bodies_are_not_used_where_the_version_is_not_known() {
    let setup = Setup::new(BODIES, RULE).await;
    setup.ask(&["HSET", HASH, "/foo", "7"]);
    setup.ask(&["SET", &key("/foo", 7), "body of 7"]);
    assert_eq!(setup.get("/foo").await.body, b"body of 7");
    setup.ask(&["HDEL", HASH, "/foo"]);
    crate::support::until("its loss is known", async || setup.get("/foo").await.body == b"1").await;
    assert_detail(&setup.get("/foo").await, "version-absent");
    assert_eq!(setup.get("/foo").await.body, b"1");
}

#[tokio::test]
async fn nothing_is_written_under_a_version_that_is_not_there() {
    let store = format!("{BODIES}\nwrite = true").replace("text/html", "text/plain");
    let setup = Setup::new(&store, RULE).await;
    for _ in 0..3 {
        assert_detail(&setup.get("/plain").await, "version-absent");
    }
    setup.ask(&["HSET", HASH, "/plain", "1"]);
    setup.get("/plain").await;
    crate::support::until("it is written", async || setup.ask(&["GET", &key("/plain", 1)]).is_some()).await;
    assert_eq!(setup.ask(&["DBSIZE"]).as_deref(), Some(":2"));
}
