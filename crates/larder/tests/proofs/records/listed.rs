//! `larder ls --remote` lists what lies in Redis: each record once, marked `remote`, as far as it is to go; and it changes nothing there.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use larder_testkit::client::Request;
use serde_json::Value;

use super::explained::writes;
use super::{Larder, Scene, together};
use crate::support::until;

/// Runs `larder ls`.
async fn ls(larder: &Larder, arguments: &[&str]) -> Output {
    let admin = larder.process.admin.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg("ls").args(arguments).args(["--admin", &admin]);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// What it lists, as JSON.
async fn listed(larder: &Larder, arguments: &[&str]) -> Vec<Value> {
    let output = ls(larder, &[arguments, &["--json"]].concat()).await;
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Puts so many names there that are no records of larders.
fn crowd(scene: &Scene, count: usize) {
    let script = "for i = 1, ARGV[1] do redis.call('SET', 'other:' .. i, i) end return 1";
    assert!(scene.ask(&["EVAL", script, "0", &count.to_string()]).is_some());
}

#[tokio::test]
async fn each_record_is_listed_once_and_none_of_anything_else() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    let mut expected = BTreeMap::new();
    for number in 0..40 {
        let target = format!("/list/{number}-{}", 100 + number);
        scene.fetched_by(&first, &target).await;
        expected.insert(format!("http://localhost{target}"), 100 + number);
    }
    scene.fetched_by(&first, "/vary/a-700000").await;
    expected.insert("http://localhost/vary/a-700000".to_owned(), 700_000);
    crowd(&scene, 3000);
    // Neither what only begins like a record nor one under another's name is listed.
    let name = scene.names().into_iter().find(|name| name.contains(":r:")).unwrap();
    let value = scene.redis.raw().ask(&[b"GET", name.as_bytes()]).unwrap();
    scene.redis.raw().set("larder:1:default:r:{00}", &value);
    scene.redis.raw().set("larder:1:default:r:{01}", b"lrdr and nothing more");
    scene.ask(&["LPUSH", "larder:1:default:r:{02}", "a list"]);
    let before = writes(&scene);
    assert_eq!(listed(&second, &[]).await, Vec::<Value>::new(), "nothing lies in its memory");
    let all = listed(&second, &["--remote"]).await;
    let found: BTreeMap<String, i32> = all
        .iter()
        .map(|object| {
            assert_eq!(
                (&object["places"][0], &object["status"]),
                (&"remote".into(), &200.into()),
                "{object}"
            );
            assert!(
                object["age_seconds"].as_u64().unwrap() < 100 && object["ttl_seconds"].as_i64() > Some(3000)
            );
            (object["url"].as_str().unwrap().to_owned(), object["body_bytes"].as_i64().unwrap() as i32)
        })
        .collect();
    assert_eq!((&found, all.len()), (&expected, expected.len()), "each once");
    let output = ls(&second, &["--remote"]).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "larder: warning: 2 records in Redis could not be read, or have a long head\n");
    assert_eq!(listed(&second, &["localhost/list/1*", "--remote"]).await.len(), 11);
    assert_eq!(listed(&second, &["--remote", "--limit", "7"]).await.len(), 7);
    // Page after page, none has more than was asked for.
    let (mut cursor, mut urls, mut pages) = (String::new(), Vec::new(), 0);
    loop {
        let target = format!("/objects?remote=true&limit=7{cursor}");
        let page = second.admin(&Request::new("GET", &target, "localhost")).await.1;
        let objects = page["objects"].as_array().unwrap();
        assert!(objects.len() <= 7, "{page}");
        urls.extend(objects.iter().map(|object| object["url"].as_str().unwrap().to_owned()));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    urls.sort();
    assert!(urls.iter().eq(expected.keys()) && pages >= 6, "{pages}: {urls:?}");
    assert_eq!(writes(&scene), before, "nothing is claimed, written or touched");
    // What this larder has in memory as well is listed for each place, and what was purged is said to be gone.
    second.get("/list/1-101").await;
    let places =
        |all: Vec<Value>| all.into_iter().map(|object| object["places"][0].clone()).collect::<Vec<_>>();
    assert_eq!(places(listed(&second, &["localhost/list/1-101", "--remote"]).await), ["memory", "remote"]);
    assert_eq!(second.purge(r#"{"urls": ["http://localhost/list/2-102"]}"#).await.0, 200);
    let gone = listed(&second, &["localhost/list/2-102", "--remote"]).await;
    assert_eq!((gone.len(), &gone[0]["gone"]), (1, &true.into()), "{gone:?}");
}

#[tokio::test]
async fn a_listing_ends_with_its_number_of_names_and_says_so_and_a_server_that_fails_is_told() {
    let mut scene = Scene::with_default_timeout();
    let larder = scene.larder("web-1").await;
    scene.fetched_by(&larder, "/a").await;
    crowd(&scene, 20_000);
    let output = ls(&larder, &["--remote", "--names", "1000"]).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("the listing is not complete"), "{said}");
    assert!(said.contains("its last server has 2000"), "{said}");
    let output = ls(&larder, &["--remote"]).await;
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "all of it");
    scene.redis.kill();
    until("it is told", async || {
        let output = ls(&larder, &["--remote"]).await;
        let said = String::from_utf8(output.stderr).unwrap();
        output.status.code() == Some(1)
            && said.contains("what larders share in the store \"default\" cannot be listed")
    })
    .await;
    let (status, told) =
        larder.admin(&Request::new("GET", "/objects?remote=true&cursor=default:@7", "localhost")).await;
    assert_eq!((status, &told["error"]), (400, &"cursor".into()), "{told}");
}
