//! Values at a master that Sentinels watch over: a deletion counts when the master has confirmed it, and not a former one.

use super::{Setup, is_from_origin, is_hit, page};
use crate::redis_servers::Watched;
use crate::support::{script, until};

/// The former master is cut off from the Sentinels and from its replicas, and answers larder as before.
#[tokio::test]
async fn a_deletion_that_a_former_master_confirms_does_not_count() {
    let mut watched = Watched::start().await;
    let user = watched.with_a_user("larder", "s3cret");
    let origin = vec![script("/*", page(&["Cache-Control: no-store"], "from the origin"))];
    let values = "near = \"1h\"\nkey = \"{target}\"\ntimeout = \"2s\"";
    let place = format!("{}\n{user}", watched.said().replace(", master", "\nmaster"));
    let targets: Vec<String> = (0..30).map(|number| format!("/page-{number}")).collect();
    targets.iter().for_each(|target| watched.servers[0].raw().set(target, b"value"));
    let setup = Setup::with((watched, &place), origin, values, "").await;
    until("its values are found", async || setup.get("/page-0").await.body == b"value").await;
    for target in &targets {
        is_hit(&setup.get(target).await, "value");
    }
    let has_all = |server: &larder_testkit::redis::RedisOnPort| {
        server.raw().ask_list(&[b"KEYS", b"/page-*"]).unwrap().len() == targets.len()
    };
    until("the replicas have them", async || setup.redis.servers[1..].iter().all(has_all)).await;
    let former = setup.redis.isolates_master();
    let port = setup.redis.all_name_another().await;
    // larder may not have asked them yet.
    let urls: Vec<String> = targets.iter().map(|target| format!("\"http://localhost{target}\"")).collect();
    let answer = setup.purge(&format!("{{\"urls\": [{}], \"wait\": 20}}", urls.join(", "))).await;
    assert_eq!(answer.status, 200, "{answer}");
    let master = setup.redis.servers.iter().find(|server| server.port == port).unwrap();
    assert_eq!(master.raw().ask_list(&[b"KEYS", b"/page-*"]).unwrap().len(), 0);
    for target in &targets {
        is_from_origin(&setup.get(target).await, "from the origin");
    }
    drop(former);
}
