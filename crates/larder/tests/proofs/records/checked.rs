//! `larder check --connect`: what a server is, whether larder may do there what it needs, and what it does when it is full.

use super::{Scene, checked};
use crate::support::written;

async fn check(scene: &Scene) -> (bool, String) {
    let (_folder, config) = written(&scene.config("web-1", ""));
    checked(&config).await
}

#[tokio::test]
async fn a_server_is_told_with_its_version_and_its_policy() {
    let scene = Scene::new();
    scene.ask(&["CONFIG", "SET", "maxmemory", "100mb"]);
    for (policy, advice) in [
        ("volatile-lru", None),
        ("volatile-lfu", None),
        ("noeviction", Some("no more records, and no more purges")),
        ("allkeys-lru", Some("it may evict the log of purges")),
        ("volatile-ttl", Some("volatile-lru is better")),
    ] {
        scene.ask(&["CONFIG", "SET", "maxmemory-policy", policy]);
        let (is_well, told) = check(&scene).await;
        assert!(is_well && told.contains(" (stores.default, fleet): Redis 7."), "{told}");
        assert!(told.contains(": ok\n"), "{told}");
        match advice {
            Some(advice) => {
                assert!(told.contains(": warning: ") && told.contains(advice), "{policy}: {told}")
            }
            None => assert!(!told.contains("warning"), "{policy}: {told}"),
        }
    }
    scene.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    let (_, told) = check(&scene).await;
    assert!(told.contains("it has no `maxmemory`"), "{told}");
    assert_eq!(scene.redis.names("*"), Vec::<String>::new(), "nothing was written");
}

#[tokio::test]
async fn a_running_larder_warns_of_the_policy_once() {
    let scene = Scene::new();
    scene.ask(&["CONFIG", "SET", "maxmemory", "100mb"]);
    scene.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let larder = scene.larder("web-1").await;
    larder.process.says("it may evict the log of purges").await;
    scene.ask(&["CLIENT", "KILL", "TYPE", "normal"]);
    super::leased(&[&larder]).await;
    let warned = larder.process.stderr().into_iter().filter(|line| line.contains("evict the log"));
    assert_eq!(warned.count(), 1);
}

#[tokio::test]
async fn each_command_that_a_user_may_not_run_is_named() {
    let scene = Scene::new();
    scene.ask(&["ACL", "SETUSER", "larder", "on", ">s3cret", "~larder:1:*", "+@all"]);
    let socket = scene.redis.socket();
    let scene =
        Scene { said: format!("url = \"unix://{}?user=larder&pass=s3cret\"", socket.display()), ..scene };
    for command in [
        "GET", "PTTL", "SET", "UNLINK", "TOUCH", "EVALSHA", "SCRIPT", "TIME", "HSET", "XADD", "XREAD",
        "XRANGE",
    ] {
        scene.ask(&["ACL", "SETUSER", "larder", &format!("-{command}")]);
        let (is_well, told) = check(&scene).await;
        assert!(!is_well && told.contains(&format!("larder may not run {command}:")), "{command}: {told}");
        assert!(!told.contains("s3cret"), "{told}");
        scene.ask(&["ACL", "SETUSER", "larder", &format!("+{command}")]);
    }
    scene.ask(&["ACL", "SETUSER", "larder", "resetkeys", "~other:*"]);
    let (is_well, told) = check(&scene).await;
    assert!(!is_well && told.contains("no permissions to access one of the keys"), "{told}");
    scene.ask(&["ACL", "SETUSER", "larder", "-EVAL"]);
    let (is_well, told) = check(&scene).await;
    assert!(!is_well && told.contains("'eval'"), "{told}");
}

/// The clock of the server counts only where responses are shared.
#[tokio::test]
async fn the_rights_of_the_guide_for_a_fleet_are_enough_for_one() {
    let scene = Scene::new();
    let rights = ["~larder:1:{fleet}*", "+@read", "+@write", "+@scripting", "+@connection", "+info"];
    scene.ask(&[&["ACL", "SETUSER", "larder", "on", ">s3cret"], &rights[..]].concat());
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\n[origins.app]\nservers = [{:?}]\n[fleet]\nname = \"web-1\"\n\
         redis = {{ url = \"unix://{}?user=larder&pass=s3cret\" }}\n[[site]]\norigin = \"app\"\n",
        scene.origin.url(),
        scene.redis.socket().display()
    );
    let (_folder, config) = written(&text);
    let (is_well, told) = checked(&config).await;
    assert!(is_well && told.contains("(fleet): Redis 7."), "{told}");
}
