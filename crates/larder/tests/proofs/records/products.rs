//! Other products than Debian's Redis: Valkey, an old Redis, and a proxy in between that knows few commands. `make units` installs them
//! where they can be had; else the test is skipped, and says so.

use std::path::PathBuf;

use larder_testkit::redis::{OfProgram, RedisOnPort};

use super::{Scene, checked, is_hit, shares, together};
use crate::support::{Process, get, within, written};

/// A program that `make units` may have installed.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn program(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/tools").join(name);
    if !path.exists() {
        eprintln!("skipped: there is no {name} on this machine");
        return None;
    }
    Some(path)
}

#[tokio::test]
async fn valkey_serves_as_redis_does() {
    let Some(path) = program("valkey-server") else { return };
    let server = RedisOnPort::of_program(OfProgram(&path));
    let scene = Scene::saying(format!("url = \"redis://127.0.0.1:{}\"", server.port));
    let (_folder, config) = written(&scene.config("web-1", ""));
    let (is_well, told) = checked(&config).await;
    assert!(is_well && told.contains("Valkey "), "{told}");
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    scene.fetched_by(&first, "/a").await;
    assert!(is_hit(&second.get("/a").await));
    let now = scene.change();
    assert_eq!(second.purge(r#"{"tags": ["page"]}"#).await.0, 200);
    assert_eq!((first.state("/a").await, second.state("/a").await), (now, now));
    shares(&scene, (&first, &second)).await;
}

#[tokio::test]
async fn an_old_redis_is_refused_with_one_warning_and_no_request_fails() {
    let Some(path) = program("redis-server-6.2") else { return };
    let server = RedisOnPort::of_program(OfProgram(&path));
    refused(&format!("url = \"redis://127.0.0.1:{}\"", server.port), "it is Redis 6.2.").await;
}

#[tokio::test]
async fn a_proxy_that_knows_few_commands_is_refused_with_one_warning_and_no_request_fails() {
    let server = RedisOnPort::start();
    let Some(proxy) = larder_testkit::redis::Twemproxy::start(server.port) else { return };
    refused(&format!("url = \"redis://127.0.0.1:{}\"", proxy.port), "").await;
    let scene = Scene::saying(format!("url = \"redis://127.0.0.1:{}\"", proxy.port));
    let (_folder, config) = written(&scene.config("web-1", ""));
    let (is_well, told) = checked(&config).await;
    assert!(!is_well && told.contains("is there a proxy in between"), "{told}");
}

/// A larder answers from the origin, and says why once.
async fn refused(said: &str, why: &str) {
    let scene = Scene::saying(said.to_owned());
    let (_folder, config) = written(&scene.config("web-1", ""));
    let process = Process::run_config(&config).await;
    process.says("the fleet's log at").await;
    process.says(why).await;
    for number in 0..20 {
        let answer = within("an answer", get(process.addr, &format!("/a-{number}"))).await;
        assert_eq!(answer.status, 200);
    }
    let lost = process.stderr().into_iter().filter(|line| line.contains("the fleet's log at"));
    assert_eq!(lost.count(), 1, "{:?}", process.stderr());
}
