//! `larder ls`, `get`, `rm` and `stats` against a running larder, with stores in memory and on disks; and everything that can
//! be in the way.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use larder_testkit::client::Request;
use larder_testkit::origin::{Answer, Origin, PathScript};
use larder_testkit::seeded;
use serde_json::Value;

use crate::support::{
    Process, Signal, answer_of, asking, assert_whole, cache_status, cacheable, config, connect, get, script,
    until, with_admin, within, written,
};

/// Runs a command and waits for it, off the runtime that the origin runs on.
pub(super) async fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(arguments).env_remove("LARDER_ADMIN_TOKEN");
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

pub(super) fn said(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a command of this larder prints when all is well.
pub(super) async fn told(larder: &Process, arguments: &[&str]) -> Vec<u8> {
    let admin = larder.admin.to_string();
    let output = run(&[arguments, &["--admin", &admin]].concat()).await;
    assert!(output.status.success(), "{arguments:?}: {}", said(&output.stderr));
    output.stdout
}

pub(super) async fn text(larder: &Process, arguments: &[&str]) -> String {
    said(&told(larder, arguments).await)
}

/// A JSON value per line.
pub(super) async fn lines(larder: &Process, arguments: &[&str]) -> Vec<Value> {
    let text = text(larder, &[arguments, &["--json"]].concat()).await;
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(super) fn urls(listed: &[Value]) -> BTreeSet<String> {
    listed.iter().map(|object| object["url"].as_str().unwrap().to_owned()).collect()
}

const LARGE: u64 = 700_000;

fn scripts() -> Vec<PathScript> {
    let mut scripts: Vec<_> = (0..20).map(|number| cacheable(&format!("/n/{number}"), 100)).collect();
    let vary = answer_of(&["Cache-Control: max-age=3600", "Vary: Accept-Language"], 20);
    scripts.extend([cacheable("/large", LARGE), script("/vary", vary)]);
    scripts
}

/// A config whose store has a disk beneath the directory of the config.
fn with_disk(origin: &str) -> (tempfile::TempDir, PathBuf) {
    let store = "[stores.default]\nmemory = \"16MiB\"\ndisks = [{ path = \"d1\", size = \"64MiB\" }]\n";
    written(&config(origin, "", store))
}

pub(super) async fn stored(larder: &Process, target: &str) {
    until("it is stored", async || cache_status(&get(larder.addr, target).await).contains("; hit")).await;
}

/// Waits until nothing is on its way to a disk.
pub(super) async fn settled(larder: &Process) {
    until("the disks have it", async || {
        let metrics = larder.metrics().await;
        metrics.sum("larder_disk_queued_objects") + metrics.sum("larder_disk_queued_bytes") == 0
    })
    .await;
}

#[tokio::test]
async fn everything_stored_is_listed_once_whatever_the_pages() {
    let origin = Origin::simple(scripts()).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--workers", "2"]).await;
    for number in 0..20 {
        stored(&larder, &format!("/n/{number}")).await;
    }
    stored(&larder, "/large").await;
    let listed = lines(&larder, &["ls"]).await;
    assert_eq!((listed.len(), urls(&listed).len()), (21, 21));
    let large = listed.iter().find(|object| object["url"] == "http://localhost/large").unwrap();
    assert_eq!((&large["status"], &large["body_bytes"]), (&Value::from(200), &Value::from(LARGE)));
    assert_eq!((&large["store"], &large["places"][0]), (&Value::from("default"), &Value::from("memory")));
    assert!((3590..=3600).contains(&large["ttl_seconds"].as_i64().unwrap()), "{large}");
    for (prefix, count) in [
        ("localhost", 21),
        ("LOCALHOST", 21),
        ("http://localhost/n/1", 11),
        ("localhost/n/1", 11),
        ("https://localhost", 0),
        ("local", 0),
        ("other.test", 0),
    ] {
        assert_eq!(lines(&larder, &["ls", prefix]).await.len(), count, "{prefix}");
    }
    assert_eq!(lines(&larder, &["ls", "--limit", "3", "--store", "default"]).await.len(), 3);
    let text = text(&larder, &["ls", "localhost/large"]).await;
    assert!(text.starts_with("STATUS      BYTES") && text.lines().count() == 2, "{text}");
    assert!(text.contains("684 KiB") && text.contains("http://localhost/large"), "{text}");

    // By hand, in pages of four.
    let (mut met, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let response = get(larder.admin, &format!("/objects?limit=4{cursor}")).await;
        let page: Value = serde_json::from_slice(&response.body).unwrap();
        let objects = page["objects"].as_array().unwrap();
        assert!(objects.len() <= 4);
        met.extend(objects.iter().cloned());
        pages += 1;
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert!(pages >= 6 && met.len() == 21 && urls(&met) == urls(&listed), "{pages} {}", met.len());
}

#[tokio::test]
async fn a_body_is_shown_byte_for_byte_and_a_head_with_its_fields() {
    let origin = Origin::simple(scripts()).unwrap();
    let (_directory, path) = with_disk(&origin.url());
    let larder = Process::run_config(&path).await;
    stored(&larder, "/large").await;
    stored(&larder, "/n/1").await;
    for (target, bytes) in [("/large", LARGE), ("/n/1", 100)] {
        let body = told(&larder, &["get", &format!("http://localhost{target}")]).await;
        assert!(body == seeded::bytes_of(target, 0, bytes), "{target}: another body");
    }
    for language in ["de", "fr"] {
        let request = Request { ..asking("/vary") }.field("Accept-Language", language);
        let status = async || {
            let response = connect(larder.addr).await.exchange(&request).await.unwrap();
            cache_status(&response).to_owned()
        };
        until("it is stored", async || status().await.contains("; hit")).await;
    }
    settled(&larder).await;
    let head = text(&larder, &["get", "http://localhost/vary", "--head"]).await;
    for part in [
        "1  200 http://localhost/vary  [accept-language: fr]",
        "2  200 ",
        "/d1",
        "vary: Accept-Language",
        "fresh for",
    ] {
        assert!(head.contains(part), "no {part:?} in:\n{head}");
    }
    let told: Value =
        serde_json::from_str(&text(&larder, &["get", "http://localhost/vary", "--json"]).await).unwrap();
    let responses = told["responses"].as_array().unwrap();
    assert_eq!((responses.len(), &responses[1]["vary"][0]["value"]), (2, &Value::from("de")));
    let admin = larder.admin.to_string();
    let output = run(&["get", "http://localhost/vary", "--admin", &admin, "--response", "2"]).await;
    assert!(said(&output.stderr).contains("2 responses lie under this URL"), "{}", said(&output.stderr));
    assert_eq!(output.stdout, seeded::bytes_of("/vary", 0, 20));
    assert_eq!(lines(&larder, &["ls"]).await.len(), 4);
}

#[tokio::test]
async fn what_lies_on_a_disk_alone_is_listed_and_shown_without_taking_it_into_memory() {
    let origin = Origin::simple(scripts()).unwrap();
    let (_directory, path) = with_disk(&origin.url());
    let mut larder = Process::run_config(&path).await;
    stored(&larder, "/large").await;
    stored(&larder, "/n/1").await;
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0);
    let larder = Process::run_config(&path).await;
    let listed = lines(&larder, &["ls"]).await;
    assert_eq!(listed.len(), 2);
    for object in &listed {
        let places = object["places"].as_array().unwrap();
        assert!(places.len() == 1 && places[0].as_str().unwrap().ends_with("/d1"), "{object}");
    }
    assert!(text(&larder, &["ls", "localhost/n"]).await.contains("  default   disk "));
    let body = told(&larder, &["get", "http://localhost/large"]).await;
    assert!(body == seeded::bytes_of("/large", 0, LARGE), "another body");
    assert_eq!(larder.metrics().await.sum("larder_cache_objects"), 0, "looking promotes nothing");
    let response = get(larder.addr, "/large").await;
    assert_whole(&response, "/large", LARGE);
    assert!(cache_status(&response).contains("; hit"), "{response}");
}

#[tokio::test]
async fn a_purge_takes_all_variants_and_what_is_on_its_way_and_says_how_many() {
    let hold = Answer { hold: Some("go".to_owned()), ..answer_of(&["Cache-Control: max-age=3600"], 50) };
    let mut all = scripts();
    all.push(script("/held", hold));
    let origin = Origin::simple(all).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--workers", "2"]).await;
    for language in ["de", "fr"] {
        let request = Request { ..asking("/vary") }.field("Accept-Language", language);
        connect(larder.addr).await.exchange(&request).await.unwrap();
    }
    stored(&larder, "/n/1").await;
    until("both are stored", async || lines(&larder, &["ls", "localhost/vary"]).await.len() == 2).await;
    assert_eq!(
        text(&larder, &["rm", "http://localhost/vary", "http://localhost/never"]).await,
        "2 responses removed: http://localhost/vary\n0 responses removed: http://localhost/never\n"
    );
    assert_eq!(urls(&lines(&larder, &["ls"]).await).len(), 1, "the others stay");
    assert_eq!(larder.metrics().await.value("larder_invalidations_total{kind=\"purge\"}"), Some(2.0));

    let addr = larder.addr;
    let waiting = tokio::spawn(async move { get(addr, "/held").await });
    until("it is asked for", async || origin.log().count() >= 4).await;
    let removed = lines(&larder, &["rm", "http://localhost/held"]).await;
    assert_eq!(removed, [serde_json::json!({"url": "http://localhost/held", "removed": 0})]);
    origin.gates().release("go");
    let response = within("the held answer", waiting).await.unwrap();
    assert_whole(&response, "/held", 50);
    assert_eq!(lines(&larder, &["ls", "localhost/held"]).await.len(), 0, "it does not come back");
    let again = get(larder.addr, "/held").await;
    assert!(cache_status(&again).contains("fwd=uri-miss"), "{again}");
}

#[tokio::test]
async fn an_acknowledged_purge_holds_after_a_kill() {
    let origin = Origin::simple(scripts()).unwrap();
    let (_directory, path) = with_disk(&origin.url());
    let mut larder = Process::run_config(&path).await;
    for number in 0..10 {
        stored(&larder, &format!("/n/{number}")).await;
    }
    settled(&larder).await;
    let purged: Vec<String> = (0..5).map(|number| format!("http://localhost/n/{number}")).collect();
    let arguments: Vec<&str> = std::iter::once("rm").chain(purged.iter().map(String::as_str)).collect();
    assert_eq!(text(&larder, &arguments).await.matches("1 response removed").count(), 5);
    larder.signal(Signal::KILL);
    until("it is gone", async || !larder.is_running()).await;
    larder = Process::run_config(&path).await;
    let left: BTreeSet<String> = (5..10).map(|number| format!("http://localhost/n/{number}")).collect();
    assert_eq!(urls(&lines(&larder, &["ls"]).await), left);
}

#[tokio::test]
async fn a_purge_removes_files_whoever_put_them_there() {
    let origin = Origin::simple(scripts()).unwrap();
    let store = "[stores.default]\nfiles = \"pages\"\n";
    let (directory, path) = written(&config(&origin.url(), "", store));
    let larder = Process::run_config(&path).await;
    let file = |name: &str| directory.path().join("pages/localhost").join(name);
    stored(&larder, "/n/1").await;
    until("its file is there", async || file("n/1").is_file()).await;
    std::fs::write(file("n/mine.txt"), "mine").unwrap();
    until("it is served", async || get(larder.addr, "/n/mine.txt").await.body == b"mine").await;
    let urls = ["http://localhost/n/1", "http://localhost/n/mine.txt", "http://localhost/n/none"];
    let removed = text(&larder, &["rm", urls[0], urls[1], urls[2]]).await;
    assert_eq!(removed.matches("1 response removed").count(), 2, "{removed}");
    assert!(!file("n/1").exists() && !file("n/mine.txt").exists());
    assert!(cache_status(&get(larder.addr, "/n/1").await).contains("fwd="));
}

#[tokio::test]
async fn the_figures_are_told_as_tables_and_as_they_came() {
    let origin = Origin::simple(scripts()).unwrap();
    let (_directory, path) = with_disk(&origin.url());
    let larder = Process::run_config(&path).await;
    stored(&larder, "/n/1").await;
    settled(&larder).await;
    let told = text(&larder, &["stats"]).await;
    for part in [
        "saved",
        "hits",
        "collapsed",
        "SERVED",
        "default",
        "memory",
        "disk /",
        "64.0 MiB",
        "ORIGIN",
        "app",
        "up",
    ] {
        assert!(told.contains(part), "no {part:?} in:\n{told}");
    }
    let json: Value = serde_json::from_str(&text(&larder, &["stats", "--json"]).await).unwrap();
    assert_eq!(json["stores"][0]["tiers"][1]["objects"], 1, "{json}");
}

#[tokio::test]
async fn what_is_in_the_way_is_told_in_one_line_with_its_exit_code() {
    let origin = Origin::simple(scripts()).unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let admin = larder.admin.to_string();
    let front = larder.addr.to_string();
    let unused = "127.0.0.1:1";
    let cases: [(&[&str], i32, &str); 19] = [
        (&["ls", "--admin", unused], 1, "no larder answers at 127.0.0.1:1"),
        (&["get", "http://a/", "--admin", unused], 1, "no larder answers at 127.0.0.1:1"),
        (&["rm", "http://a/", "http://b/", "--admin", unused], 1, "no larder answers at 127.0.0.1:1"),
        (&["stats", "--admin", unused], 1, "no larder answers at 127.0.0.1:1"),
        (&["ls", "--admin", &front], 1, "no larder that lists what it has stored (status"),
        (&["get", "http://a/", "--admin", &front], 1, "no larder that shows what it has stored (status"),
        (&["rm", "http://a/", "--admin", &front], 1, "no larder that takes out what it has stored (status"),
        (&["stats", "--admin", &front], 1, "no larder that tells its figures (status"),
        (&["ls", "--store", "none", "--admin", &admin], 1, "there is no store \"none\""),
        (&["ls", "--limit", "0", "--admin", &admin], 2, "--limit"),
        (
            &["get", "http://localhost/never", "--admin", &admin],
            1,
            "nothing is stored under http://localhost/never",
        ),
        (&["get", "http://localhost/never", "--head", "--admin", &admin], 1, "nothing is stored under"),
        (&["get", "/n/1", "--admin", &admin], 2, "\"/n/1\" is not an absolute URL"),
        (&["get", "ftp://localhost/n/1", "--admin", &admin], 2, "is not an absolute URL"),
        (&["get", "http://a/", "--response", "0", "--admin", &admin], 2, "--response"),
        (&["get", "http://a/", "--response", "2", "--head", "--admin", &admin], 2, "cannot be used with"),
        (&["rm", "--admin", &admin], 2, "<URL>"),
        (&["rm", "localhost/n/1", "--admin", &admin], 2, "is not an absolute URL"),
        (&["rm", "http://a b/", "--admin", &admin], 2, "is not an absolute URL"),
    ];
    for (arguments, code, part) in cases {
        let output = run(arguments).await;
        let stderr = said(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part), "{arguments:?}: no {part:?} in {stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    // One that is wrong does not keep the others from going.
    stored(&larder, "/n/1").await;
    let output = run(&["rm", "nonsense", "http://localhost/n/1", "--admin", &admin]).await;
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(said(&output.stdout), "1 response removed: http://localhost/n/1\n");
    stored(&larder, "/n/1").await;
    let output = run(&["get", "http://localhost/n/1", "--response", "2", "--admin", &admin]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output.stderr).contains("no number 2"), "{}", said(&output.stderr));
    for target in [
        "/objects?cursor=nonsense",
        "/objects?cursor=default:m0",
        "/objects?limit=0",
        "/object",
        "/objects?x=1",
    ] {
        assert_eq!(get(larder.admin, target).await.status, 400, "{target}");
    }
}

#[tokio::test]
async fn the_admin_token_guards_what_is_stored() {
    let origin = Origin::simple(scripts()).unwrap();
    let token = "s3cret-and-long-enough";
    let (_directory, path) =
        written(&with_admin(&config(&origin.url(), "", ""), &format!("token = \"{token}\"")));
    let larder = Process::run_config(&path).await;
    stored(&larder, "/n/1").await;
    let admin = larder.admin.to_string();
    for command in
        [&["ls"][..], &["get", "http://localhost/n/1"], &["rm", "http://localhost/n/1"], &["stats"]]
    {
        let output = run(&[command, &["--admin", &admin]].concat()).await;
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        assert!(said(&output.stderr).contains("wants its admin token"), "{}", said(&output.stderr));
        let output = run(&[command, &["--admin", &admin, "--token", token]].concat()).await;
        assert!(output.status.success(), "{command:?}: {}", said(&output.stderr));
    }
}

#[tokio::test]
async fn an_export_is_a_tree_that_any_web_server_can_serve() {
    let typed = |target, media_type: &str, bytes| {
        let fields = ["Cache-Control: max-age=3600", &format!("Content-Type: {media_type}")];
        script(target, answer_of(&fields, bytes))
    };
    let scripts = vec![
        typed("/a/page.html", "text/html", 5_000),
        typed("/films/one.mp4", "video/mp4", LARGE),
        typed("/untold", "image/png", 10),
    ];
    let origin = Origin::simple(scripts).unwrap();
    let (folder, config) = with_disk(&origin.url());
    let larder = Process::run_config(&config).await;
    for target in ["/a/page.html", "/films/one.mp4", "/untold"] {
        stored(&larder, target).await;
    }
    settled(&larder).await;
    let tree = folder.path().join("tree");
    let printed = text(&larder, &["export", tree.to_str().unwrap()]).await;
    assert!(printed.starts_with("2 files with "), "{printed}");
    let host = tree.join("localhost");
    for (target, bytes) in [("/a/page.html", 5_000), ("/films/one.mp4", LARGE)] {
        let written = std::fs::read(host.join(&target[1..])).unwrap();
        assert!(written == seeded::bytes_of(target, 0, bytes), "{target}");
    }
    assert!(!host.join("untold").exists(), "no web server could tell its type");
    let only = folder.path().join("only");
    let printed = text(&larder, &["export", only.to_str().unwrap(), "localhost/films/"]).await;
    assert!(printed.starts_with("1 file with "), "{printed}");
    let output = run(&["export", only.to_str().unwrap(), "--admin", "127.0.0.1:1"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", said(&output.stderr));
}

#[tokio::test]
async fn what_a_post_has_invalidated_is_validated_after_a_kill_and_stands_in_for_a_dead_origin() {
    let tagged = Answer {
        conditional: true,
        ..answer_of(&["Cache-Control: max-age=3600", "ETag: \"v1\"", "Cache-Groups: \"g\""], 100)
    };
    let post = |fields: &[&str]| Answer { method: Some("POST".to_owned()), ..answer_of(fields, 0) };
    let pages = ["/p/1", "/p/2", "/p/3"].map(|path| {
        let mut script = script(path, tagged.clone());
        script.answer.push(post(&[]));
        script
    });
    let form = script("/form", post(&["Cache-Group-Invalidation: \"g\""]));
    let other = script("/other", answer_of(&["Cache-Control: max-age=3600"], 100));
    let origin = Origin::simple(pages.into_iter().chain([form, other]).collect()).unwrap();
    let (_directory, path) = with_disk(&origin.url());
    let mut larder = Process::run_config(&path).await;
    for target in ["/p/1", "/p/2", "/other"] {
        stored(&larder, target).await;
    }
    settled(&larder).await;
    let posted = |target: &'static str| Request { method: "POST".to_owned(), ..asking(target) };
    let answered = connect(larder.addr).await.exchange(&posted("/p/1")).await.unwrap();
    assert_eq!(answered.status, 200, "{answered}");
    // The client has its answer: from here on nothing may forget it.
    larder.signal(Signal::KILL);
    until("it is gone", async || !larder.is_running()).await;
    larder = Process::run_config(&path).await;
    let listed = lines(&larder, &["ls", "localhost/p/1"]).await;
    assert_eq!(listed[0]["invalidated"], Value::from(true), "{listed:?}");
    let asked = origin.log().count();
    let first = get(larder.addr, "/p/1").await;
    assert!(cache_status(&first).contains("fwd=stale; fwd-status=304"), "{first}");
    assert!(cache_status(&first).contains("detail=invalidated"), "{first}");
    assert_eq!(origin.log().count(), asked + 1);
    for target in ["/p/1", "/p/2", "/other"] {
        let response = get(larder.addr, target).await;
        assert!(cache_status(&response).contains("; hit"), "{target} {response}");
    }
    // The same for a group, and after an end in order.
    settled(&larder).await;
    connect(larder.addr).await.exchange(&posted("/form")).await.unwrap();
    larder.signal(Signal::TERM);
    until("it has ended", async || !larder.is_running()).await;
    larder = Process::run_config(&path).await;
    let asked = origin.log().count();
    let of_group = get(larder.addr, "/p/2").await;
    assert!(cache_status(&of_group).contains("fwd=stale; fwd-status=304"), "{of_group}");
    assert_eq!(origin.log().count(), asked + 1);
    // And once more, with nobody there to ask.
    connect(larder.addr).await.exchange(&posted("/form")).await.unwrap();
    larder.signal(Signal::KILL);
    until("it is gone", async || !larder.is_running()).await;
    drop(origin);
    larder = Process::run_config(&path).await;
    let alone = get(larder.addr, "/p/2").await;
    assert_whole(&alone, "/p/2", 100);
    assert!(cache_status(&alone).contains("fwd=stale; ttl="), "{alone}");
    let other = get(larder.addr, "/other").await;
    assert!(cache_status(&other).contains("; hit"), "{other}");
}
