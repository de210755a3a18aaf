//! `larder explain` against the real binary: a running larder, a config alone, and everything that can be in the way.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use larder_testkit::client::Request;
use larder_testkit::origin::Origin;
use larder_testkit::redis::RedisServer;
use serde_json::Value;

use crate::support::{
    Process, Signal, answer_of, asking, cache_status, cacheable, config, connect, get, script, until,
    with_admin, written,
};

/// Runs `larder explain` and waits for it, off the runtime that the origin runs on.
async fn explain(arguments: &[&str], token: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg("explain").args(arguments).env_remove("LARDER_ADMIN_TOKEN");
    command.envs(token.map(|token| ("LARDER_ADMIN_TOKEN", token)));
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What it prints when all is well.
async fn explained(arguments: &[&str]) -> String {
    let output = explain(arguments, None).await;
    assert!(output.status.success(), "{arguments:?}: {}", said(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", said(&output.stderr));
    said(&output.stdout)
}

async fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&explained(&[arguments, &["--json"]].concat()).await).unwrap()
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

async fn fixture() -> (Process, Origin) {
    let vary = answer_of(&["Cache-Control: max-age=3600", "Vary: Accept-Language"], 20);
    let origin = Origin::simple(vec![
        cacheable("/hit", 1000),
        cacheable("/new", 10),
        script("/private", answer_of(&["Cache-Control: private"], 10)),
        script("/vary", vary),
    ])
    .unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--workers", "2"]).await;
    (larder, origin)
}

#[tokio::test]
async fn a_hit_is_explained_with_the_line_that_it_gets_and_without_the_origin() {
    let (larder, origin) = fixture().await;
    let (url, admin) = ("http://localhost/hit", larder.admin.to_string());
    until("it is stored", async || cache_status(&get(larder.addr, "/hit").await).contains("; hit")).await;
    let asked = origin.log().count();
    let told = json(&[url, "--admin", &admin]).await;
    assert_eq!(told["decision"]["verdict"], "hit");
    assert_eq!(told["stored"]["responses"][0]["body_bytes"], 1000);
    assert_eq!(told["origin"], Value::Null);
    let ttl = |line: &str| line.rsplit_once("ttl=").unwrap().1.parse::<i64>().unwrap();
    let real = get(larder.addr, "/hit").await;
    let (told, real) = (told["cache_status"].as_str().unwrap(), cache_status(&real));
    assert!(told.starts_with("larder; hit; ttl=") && (ttl(told) - ttl(real)).abs() <= 5, "{told} {real}");
    let text = explained(&[url, "--admin", &admin]).await;
    assert_says(&text, &["1  Site and rule", "which takes every host", "max-age=3600", "[RFC 9111 4]"]);
    assert_eq!(origin.log().count(), asked, "{}", origin.log());
}

#[tokio::test]
async fn what_is_not_stored_is_explained_by_one_request_that_stores_nothing() {
    let (larder, origin) = fixture().await;
    let admin = larder.admin.to_string();
    let text = explained(&["http://localhost/private", "--admin", &admin]).await;
    let parts = ["not stored", "private", "[RFC 9111 5.2.2.7]", "what helps", "fwd=uri-miss; fwd-status=200"];
    assert_says(&text, &parts);
    let told = json(&["http://localhost/new", "--admin", &admin]).await;
    assert_eq!(told["origin"]["judgement"]["stored"], true);
    assert_eq!(origin.log().count(), 2, "{}", origin.log());
    let offline = json(&["http://localhost/new", "--admin", &admin, "--offline"]).await;
    assert_eq!(offline["decision"]["reason"]["token"], "uri-miss", "nothing was stored");
    assert_eq!(origin.log().count(), 2, "{}", origin.log());
    assert!(cache_status(&get(larder.addr, "/new").await).contains("fwd=uri-miss"));
}

#[tokio::test]
async fn a_variant_miss_is_explained_with_all_variants() {
    let (larder, _origin) = fixture().await;
    for language in ["de", "fr"] {
        let request = Request { ..asking("/vary") }.field("Accept-Language", language);
        let status = async || {
            let response = connect(larder.addr).await.exchange(&request).await.unwrap();
            cache_status(&response).to_owned()
        };
        until("it is stored", async || status().await.contains("; hit")).await;
    }
    let (admin, url) = (larder.admin.to_string(), "http://localhost/vary");
    let told = json(&[url, "--admin", &admin, "--offline", "-H", "Accept-Language: es"]).await;
    assert_eq!(told["decision"]["reason"]["token"], "vary-miss");
    let responses = told["stored"]["responses"].as_array().unwrap();
    assert!(responses.len() == 2 && responses.iter().all(|one| one["selected"] == false), "{told}");
    let text = explained(&[url, "--admin", &admin, "--offline", "-H", "Accept-Language: es"]).await;
    assert_says(
        &text,
        &[
            "varies by",
            "accept-language: stored for \"fr\", asked for \"es\"",
            "not selected",
            "[RFC 9111 4.1]",
        ],
    );
    let selected = json(&[url, "--admin", &admin, "-H", "Accept-Language: fr"]).await;
    assert_eq!(selected["decision"]["verdict"], "hit");
    assert_eq!(selected["stored"]["responses"][0]["selected"], true, "the newest comes first");
}

const RULES: &str = "hosts = [\"a.test\", \"*.b.test\"]\n\
    [[site.rule]]\npath = \"/off*\"\ncache = \"off\"\n\
    [[site.rule]]\nname = \"x\"\npath = [\"/x*\"]\nkey = { query = \"no-tracking\", cookies = [\"lang\"] }\n";

#[tokio::test]
async fn a_config_is_explained_without_a_larder() {
    let origin = Origin::simple(vec![cacheable("/x?a=2", 10)]).unwrap();
    let (_directory, path) = written(&config(&origin.url(), "", RULES));
    let lines: Vec<usize> = (1..)
        .zip(std::fs::read_to_string(&path).unwrap().lines())
        .filter_map(|(number, line)| (line == "[[site.rule]]").then_some(number))
        .collect();
    let path = path.to_str().unwrap();
    let url = "http://www.b.test/x?utm_source=1&a=2";
    let text = explained(&[url, "-c", path, "-H", "Cookie: lang=de"]).await;
    let (taken, passed) = (
        format!("2 of 2 (x, line {}): path /x*", lines[1]),
        format!("rule 1 (/off*, line {}): path /off*", lines[0]),
    );
    let parts = [
        "from the config alone",
        "by its host *.b.test",
        &taken,
        &passed,
        "cookie lang   de",
        "utm_source=1: not in the key",
        "It will be stored",
    ];
    assert_says(&text, &parts);
    assert_eq!(origin.log().count(), 1, "{}", origin.log());
    let told = json(&["http://a.test/off/1", "-c", path]).await;
    assert_eq!((&told["decision"]["verdict"], &told["key"]), (&Value::from("pass"), &Value::Null));
    assert_eq!(told["request"]["running"], false);
    let route = &told["route"];
    assert_eq!((&route["label"], &route["line"]), (&Value::from("/off*"), &Value::from(lines[0])));
}

#[tokio::test]
async fn what_is_in_the_way_is_told_in_one_line_with_its_exit_code() {
    let (larder, _origin) = fixture().await;
    let admin = larder.admin.to_string();
    let (_directory, path) = written(&config("http://127.0.0.1:1", "", "hosts = [\"a.test\"]\n"));
    let path = path.to_str().unwrap();
    let (_other, bad) = written("nonsense = 1\n");
    let cases: [(&[&str], i32, &str); 9] = [
        (&["/hit"], 2, "is not an absolute URL"),
        (&["localhost/hit"], 2, "is not an absolute URL"),
        (&["http://a.test/", "-H", "nothing"], 2, "Name: value"),
        (&["http://a.test/", "-X", "G T"], 2, "is not a method"),
        (&["http://a.test/", "-c", path, "--admin", "127.0.0.1:1"], 2, "cannot be used with"),
        (&["http://a.test/", "-c", bad.to_str().unwrap()], 3, "unknown key"),
        (&["http://b.test/", "-c", path], 1, "no site takes the host \"b.test\""),
        (&["http://a.test/", "--admin", "127.0.0.1:1"], 1, "no larder answers at 127.0.0.1:1"),
        (&["http://localhost/../x", "--admin", &admin], 1, "climbs above the root"),
    ];
    for (arguments, code, part) in cases {
        let output = explain(arguments, None).await;
        let stderr = said(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert_says(&stderr, &[part]);
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    // A larder that is no admin address: its listener.
    let output = explain(&["http://localhost/", "--admin", &larder.addr.to_string()], None).await;
    assert_says(&said(&output.stderr), &["is no larder that explains (status 500"]);
}

#[tokio::test]
async fn the_admin_token_is_wanted_and_has_to_be_the_right_one() {
    let (_directory, path) =
        written(&with_admin(&config("http://127.0.0.1:1", "", ""), "token = \"s3cret-and-long-enough\""));
    let larder = Process::run_config(&path).await;
    let admin = larder.admin.to_string();
    let arguments = ["http://localhost/", "--offline", "--admin", &admin];
    for (token, part) in [(None, "wants its admin token"), (Some("other"), "has another admin token")] {
        let output = explain(&arguments, token).await;
        assert_eq!(output.status.code(), Some(1));
        assert_says(&said(&output.stderr), &[part]);
    }
    let right = "s3cret-and-long-enough";
    for (extra, token) in [(&[][..], Some(right)), (&["--token", right], Some("other"))] {
        let output = explain(&[&arguments[..], extra].concat(), token).await;
        assert!(output.status.success(), "{}", said(&output.stderr));
    }
}

#[tokio::test]
async fn a_reload_changes_what_is_explained() {
    let (_directory, path) = written(&config("http://127.0.0.1:1", "", "hosts = [\"a.test\"]\n"));
    let larder = Process::run_config(&path).await;
    let admin = larder.admin.to_string();
    let arguments = ["http://new.test/", "--offline", "--admin", &admin];
    assert_says(&said(&explain(&arguments, None).await.stderr), &["no site takes the host \"new.test\""]);
    std::fs::write(&path, config("http://127.0.0.1:1", "", "hosts = [\"new.test\"]\n")).unwrap();
    larder.signal(crate::support::Signal::HUP);
    larder.says("reloaded").await;
    assert_eq!(json(&arguments).await["route"]["site"], "new.test");
}

#[tokio::test]
async fn where_things_lie_and_go_is_explained_for_disks_and_files() {
    let said = |media_type: &str| {
        let media_type = format!("Content-Type: {media_type}");
        answer_of(&["Cache-Control: max-age=3600", &media_type], 10)
    };
    let paths =
        [("/page", "text/html"), ("/video", "video/mp4"), ("/next", "video/mp4"), ("/last", "text/html")];
    let origin = paths.map(|(path, media_type)| script(path, said(media_type)));
    let origin = Origin::simple(origin.into()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (disk, files) = (directory.path().join("disk"), directory.path().join("files"));
    let stores = format!(
        "[stores.default]\nmemory = \"8MiB\"\ndisks = [{{ path = {disk:?}, size = \"16MiB\" }}]\n\
         [stores.pages]\nmemory = \"8MiB\"\nfiles = {files:?}\n"
    );
    let rule =
        "place = [{ status = [404], store = \"default\" }, { type = \"text/*\", store = \"pages\" }]\n";
    let path = directory.path().join("larder.toml");
    std::fs::write(&path, config(&origin.url(), "", rule) + &stores).unwrap();
    let larder = Process::run_config(&path).await;
    let admin = larder.admin.to_string();
    let told = async |path: &str| json(&[&format!("http://localhost{path}"), "--admin", &admin]).await;

    let expected_stores = serde_json::json!([
        { "store": "default", "places": ["memory", disk] },
        { "store": "pages", "places": ["memory", files] },
    ]);
    assert_eq!(told("/none").await["stored"]["stores"], expected_stores);
    for (path, store, places) in [
        ("/video", "default", vec!["memory".into(), disk.clone()]),
        ("/page", "pages", vec![files.join("localhost/page")]),
    ] {
        until("it is stored", async || cache_status(&get(larder.addr, path).await).contains("; hit")).await;
        let response = async || told(path).await["stored"]["responses"][0].clone();
        until("it is written", async || response().await["held_back"].is_null()).await;
        let response = response().await;
        assert_eq!((&response["store"], &response["places"]), (&store.into(), &serde_json::json!(places)));
    }
    let (next, last) = (told("/next").await, told("/last").await);
    let (next, last) = (&next["origin"]["judgement"]["place"], &last["origin"]["judgement"]["place"]);
    assert_eq!((&next["store"], &next["entry"]), (&Value::from("default"), &Value::Null), "{next}");
    assert_eq!(next["reason"]["token"], "built-in");
    assert_eq!((&last["store"], &last["entry"]), (&Value::from("pages"), &Value::from(2)), "{last}");
    assert_eq!(last["conditions"], serde_json::json!(["type text/*"]));
    let text = explained(&["http://localhost/last", "--admin", &admin]).await;
    assert_says(
        &text,
        &["looked in     default (memory,", "will go to    pages (memory,", "place, entry 2:"],
    );
}

/// What the page describes once for all places in which it stands: a reason, a field, a freshness, a purge.
fn is_described_apart(members: &serde_json::Map<String, Value>, at: &str) -> bool {
    let has_only =
        |names: &[&str]| members.len() == names.len() && names.iter().all(|name| members.contains_key(*name));
    has_only(&["token", "sentence", "section"])
        || has_only(&["name", "value"])
        || members.contains_key("dialect")
        || at == "origin.judgement.freshness"
}

/// Every key in `value`, as `a.b[].c`.
fn keys(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) if !is_described_apart(members, at) => {
            for (name, member) in members {
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                keys(member, &path, found);
                found.insert(path);
            }
        }
        Value::Array(members) => members.iter().for_each(|member| keys(member, &format!("{at}[]"), found)),
        _ => {}
    }
}

#[tokio::test]
async fn what_purges_have_done_and_would_do_is_told() {
    let fields = ["Cache-Control: max-age=3600, stale-while-revalidate=60", "Surrogate-Key: a b"];
    let origin = Origin::simple(vec![script("/blog/x", answer_of(&fields, 10))]).unwrap();
    let site = "purge = { token = \"a-long-secret-of-ours\" }\n[[site.rule]]\npath = \"/blog/*\"\nkey = { query = \"none\" }";
    let (_directory, path) = written(&config(&origin.url(), "", site));
    let larder = Process::run_config(&path).await;
    until("it is stored", async || cache_status(&get(larder.addr, "/blog/x").await).contains("; hit")).await;
    let admin = larder.admin.to_string();
    let purge = async |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.arg("purge").args(arguments).args(["--admin", &admin]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{}", said(&output.stderr));
    };
    let url = "http://localhost/blog/x?y";
    let asked = [url, "--offline", "--admin", &admin];
    let before = explained(&asked).await;
    assert_says(
        &before,
        &[
            "tags        a, b",
            "Purges of it",
            "would take    a purge of the URL would take 1 response, 10 B, under /blog/x?y and /blog/x",
            "prefixes      /, /blog/",
            "who may       A request with the token may purge here.",
        ],
    );
    assert!(!before.contains("purged by") && !before.contains("last  "), "{before}");
    purge(&["--tag", "b", "--soft"]).await;
    // Lines are as long as they have to be.
    let soft = explained(&asked).await.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_says(
        &soft,
        &[
            "stale: a soft purge has ended its lifetime",
            "soft since",
            "purged by",
            "tag b, soft; by",
            "(cli, admin)",
        ],
    );
    purge(&[url]).await;
    let gone = json(&asked).await;
    let last = &gone["stored"]["last_purge"];
    assert_eq!(
        (&last["kind"], &last["mode"], &last["by"]),
        (&"url".into(), &"hard".into(), &"admin".into()),
        "{gone}"
    );
    assert_eq!(
        (&gone["stored"]["responses"], &gone["purge"]["responses"]),
        (&serde_json::json!([]), &0.into())
    );
    assert_says(&explained(&asked).await, &["last          ", "a purge of the URL would find nothing"]);
}

/// A template with a problem, and with an include in a branch.
const PAGE: &str = "<esi:nothing/><esi:choose><esi:when test=\"'a'=='a'\"><esi:include src=\"/all\"/></esi:when></esi:choose>";

#[tokio::test]
async fn the_reference_names_every_key_of_the_json_and_no_other() {
    let said = ["Cache-Control: max-age=1000", "ETag: \"v\"", "Vary: X-B", "Cache-Groups: \"g\""];
    let part = larder_testkit::origin::Answer {
        status: Some(206),
        ..answer_of(&[&said[..], &["Content-Range: bytes 0-9/100"]].concat(), 10)
    };
    let page = larder_testkit::origin::Answer {
        body: Some(PAGE.to_owned()),
        bytes: None,
        ..answer_of(&["Cache-Control: max-age=1000", "Surrogate-Control: content=\"ESI/1.0\""], 0)
    };
    let origin = Origin::simple(vec![
        script("/all", answer_of(&said, 10)),
        script("/new", answer_of(&said, 10)),
        script("/part", part),
        script("/page", page),
        script("/dead", larder_testkit::origin::Answer { vanish: true, ..Default::default() }),
    ])
    .unwrap();
    let site = "[[site.rule]]\npath = \"/off*\"\n[[site.rule]]\npath = \"/all*\"\nkey = { query = \"no-tracking\" }\n";
    let (_directory, path) = written(&config(&origin.url(), "", site));
    let larder = Process::run_config(&path).await;
    until("it is stored", async || cache_status(&get(larder.addr, "/all").await).contains("; hit")).await;
    until("it is stored", async || cache_status(&get(larder.addr, "/page").await).contains("; hit")).await;
    let range = asking("/part").field("Range", "bytes=0-9");
    connect(larder.addr).await.exchange(&range).await.unwrap();
    let admin = larder.admin.to_string();
    let mut found = BTreeSet::new();
    let cases: [&[&str]; 7] = [
        &["http://localhost/all"],
        &["http://localhost/page"],
        &["http://localhost/all?utm_source=1", "-H", "X-B: 1", "-H", "X-Host: a"],
        &["http://localhost/all", "-H", "X-B: 2"],
        &["http://localhost/new"],
        &["http://localhost/part"],
        &["http://localhost/dead"],
    ];
    for arguments in cases {
        keys(&json(&[arguments, &["--admin", &admin]].concat()).await, "", &mut found);
    }
    // What larders share is told where they do.
    let redis = RedisServer::start();
    let store =
        format!("[stores.default]\nmemory = \"8MiB\"\nredis = \"unix://{}\"\n", redis.socket().display());
    let (_shared, path) = written(&(config(&origin.url(), "", "") + &store));
    let larder = Process::run_config(&path).await;
    until("it has a lease", async || larder.metrics().await.sum("larder_fleet_lease_seconds") > 0).await;
    get(larder.addr, "/all").await;
    let admin = larder.admin.to_string();
    let shared = async || json(&["http://localhost/all", "--admin", &admin]).await;
    until("its record is told", async || !shared().await["stored"]["records"][0]["record"].is_null()).await;
    keys(&shared().await, "", &mut found);
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/explain.md"));
    let page = page.unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let told: BTreeSet<String> = rows.map(|(key, _)| key.to_owned()).collect();
    assert_eq!(found, told);
}

#[tokio::test]
async fn a_websocket_that_is_not_passed_on_is_explained_and_warned_of_once_per_site() {
    let origin = Origin::simple(vec![cacheable("/*", 10)]).unwrap();
    let text = "[[site]]\norigin = \"app\"\n[[site]]\nhosts = [\"b.test\"]\norigin = \"app\"\n[[site]]\n\
                hosts = [\"c.test\"]\norigin = \"app\"\nwebsocket = true\n";
    let (_directory, path) = written(&format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n[origins.app]\nservers = \"{}\"\n{text}",
        origin.url()
    ));
    let mut larder = Process::run_config(&path).await;
    let key = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    for (number, host) in ["a.test", "a.test", "b.test", "a.test", "b.test"].into_iter().enumerate() {
        let request = Request::new("GET", &format!("/{number}"), host)
            .field("Connection", "Upgrade")
            .field("Upgrade", "websocket")
            .field(key.0, key.1)
            .field("Sec-WebSocket-Version", "13");
        let response = connect(larder.addr).await.exchange(&request).await.unwrap();
        assert!(cache_status(&response).ends_with("; detail=websocket-off"), "{}", cache_status(&response));
    }
    let admin = larder.admin.to_string();
    for (host, detail, verdict) in [("a.test", "websocket-off", "fetch"), ("c.test", "upgrade", "pass")] {
        let url = format!("http://{host}/new");
        let asked = [&url, "--admin", &admin, "-H", "Upgrade: websocket"];
        let told = json(&asked).await;
        assert_eq!(
            (&told["route"]["websocket"]["token"], &told["decision"]["verdict"]),
            (&detail.into(), &verdict.into())
        );
        assert!(told["cache_status"].as_str().unwrap().ends_with(&format!("detail={detail}")), "{told}");
        assert_says(
            &explained(&asked).await,
            &["websocket", "websocket = true"][..if detail == "upgrade" { 1 } else { 2 }],
        );
    }
    larder.signal(Signal::TERM);
    larder.end().await;
    let warned: Vec<String> = larder.stderr().into_iter().filter(|line| line.contains("WebSocket")).collect();
    assert_eq!(warned.len(), 2, "{warned:#?}");
    assert!(warned.iter().all(|line| line.starts_with("larder: warning: site ")), "{warned:#?}");
}
