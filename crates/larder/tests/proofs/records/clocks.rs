//! Clocks that differ: larders, and Redis, each live in a time of their own. What they share is as old as it is, by Redis's clock.

use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use larder_testkit::other_time::OtherTime;
use larder_testkit::redis::RedisOnPort;

use super::{Larder, Scene, is_hit, shares, together};
use crate::support::{Process, until, written};

/// A larder in another time.
async fn larder_in(scene: &Scene, name: &str, (time, seconds): (&OtherTime, i64)) -> Larder {
    let (folder, config) = written(&scene.config(name, ""));
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(["run", "-c"]).arg(&config);
    time.applies_to(&mut command, seconds);
    let mut process = Process::spawn(command, None);
    process.greeted().await;
    let larder = Larder { process, name: name.to_owned(), folder };
    until("it has a lease", async || larder.has_lease().await).await;
    larder
}

#[tokio::test]
async fn what_larders_share_is_as_old_as_it_is_whatever_their_clocks_say() {
    let time = OtherTime::build();
    for (of_redis, of_first, of_second) in [(5, 0, -5), (-3600, 0, 3600), (3600, -3600, 0)] {
        let redis = RedisOnPort::start_in(&time, of_redis);
        let told = redis.raw().ask_list(&[b"TIME"]).unwrap();
        let told: i64 = String::from_utf8(told[0].clone()).unwrap().parse().unwrap();
        let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        assert!((told - here - of_redis).abs() <= 2, "it is in another time: {told} {here}");
        let scene = Scene::saying(format!("url = \"redis://127.0.0.1:{}\"", redis.port));
        let first = larder_in(&scene, "web-1", (&time, of_first)).await;
        let second = larder_in(&scene, "web-2", (&time, of_second)).await;
        together(&[&first, &second]).await;
        shares(&scene, (&first, &second)).await;
        scene.fetched_by(&first, "/a").await;
        let found = second.get("/a").await;
        let age: u64 = found.fields.first("age").map_or(0, |age| age.parse().unwrap());
        assert!(is_hit(&found) && age < 60, "{of_redis} {of_first} {of_second}: {found}");
        // Of two seconds none are left then, on whichever clock.
        first.get("/soon").await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let (before, now) = (scene.asked("/soon"), scene.change());
        assert_eq!(second.state("/soon").await, now, "{of_redis} {of_first} {of_second}");
        assert_eq!(scene.asked("/soon"), before + 1);
        let now = scene.change();
        assert_eq!(second.purge(r#"{"tags": ["page"]}"#).await.0, 200);
        assert_eq!((first.state("/a").await, second.state("/a").await), (now, now));
    }
}
