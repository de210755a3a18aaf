//! `larder export` and `larder get --assembled` of pages from fragments: the same bytes as clients got, from memory and from a disk,
//! and not one request to the origin for it.

use std::collections::BTreeMap;
use std::path::Path;

use larder_testkit::client::Request;
use larder_testkit::origin::{Answer, Origin, PathScript};
use serde_json::Value;

use super::keeping::{run, said, settled, stored, text, told};
use crate::support::{Process, Signal, config, connect, get, script, until, within, written};

const HTML: &str = "Content-Type: text/html";
const FRESH: &str = "Cache-Control: max-age=3600";
const SSI: &str = "Surrogate-Control: content=\"SSI/1.0\"";
const ESI: &str = "Surrogate-Control: content=\"ESI/1.0\"";

fn page(path: &str, fields: &[&str], body: &str) -> PathScript {
    let fields = fields.iter().map(|&line| line.to_owned()).collect();
    script(path, Answer { fields, body: Some(body.to_owned()), ..Answer::default() })
}

/// Longer than what may become a variable, and than what is inlined on a disk.
fn long() -> String {
    "0123456789abcdef".repeat(8 * 1024)
}

fn scripts() -> Vec<PathScript> {
    let method = "<!--#if expr=\"$request_method = POST\" --><!--#include virtual=\"/posted\" --><!--#else -->got<!--#endif -->";
    vec![
        page(
            "/",
            &[HTML, FRESH, SSI],
            "<p><!--#include virtual=\"/nav\" -->|<!--#include virtual=\"/box\" --></p>",
        ),
        page("/nav", &[HTML, FRESH], "nav"),
        page("/box", &[HTML, FRESH, ESI], "[<esi:include src=\"/long.txt\"/>]"),
        page("/long.txt", &["Content-Type: text/plain", FRESH], &long()),
        page("/stale", &[HTML, FRESH, ESI], "<p><esi:include src=\"/short\"/></p>"),
        page("/short", &[HTML, "Cache-Control: max-age=1"], "short"),
        page("/lacks", &[HTML, FRESH, ESI], "<esi:include src=\"/private\"/>"),
        page("/private", &[HTML, "Cache-Control: private"], "yours"),
        page("/mine", &[HTML, FRESH, SSI], "<!--#include virtual=\"/for/me\" -->"),
        page("/for/me", &[HTML, FRESH], "nobody"),
        page("/method", &[HTML, FRESH, SSI], method),
        page("/posted", &[HTML, "Cache-Control: no-store"], "posted"),
        page("/only-posted", &[HTML, FRESH, SSI], "<!--#include virtual=\"/nav\" -->"),
    ]
}

/// Pages that every visitor may have, and the files that stand for them.
const EXPORTED: [(&str, &str); 8] = [
    ("/", "index.html"),
    ("/nav", "nav/index.html"),
    ("/box", "box/index.html"),
    ("/long.txt", "long.txt"),
    ("/stale", "stale/index.html"),
    ("/short", "short/index.html"),
    ("/for/me", "for/me/index.html"),
    ("/method", "method/index.html"),
];

async fn post(larder: &Process, target: &str) -> Vec<u8> {
    let request = Request::new("POST", target, "localhost");
    let answered = async { connect(larder.addr).await.exchange(&request).await.unwrap() };
    within("an answer to a POST", answered).await.body
}

/// Every file below a directory, by its path there.
fn files(below: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut waiting) = (BTreeMap::new(), vec![below.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(below).unwrap().to_str().unwrap().to_owned();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// Exports into a new directory, and compares that with what clients got.
async fn check_export(larder: &Process, below: &Path, clients: &BTreeMap<String, Vec<u8>>) {
    let (tree, admin) = (below.join("tree"), larder.admin.to_string());
    let output = run(&["export", tree.to_str().unwrap(), "localhost", "--admin", &admin]).await;
    let (printed, warned) = (said(&output.stdout), said(&output.stderr));
    assert!(output.status.success(), "{warned}");
    let found = files(&tree.join("localhost"));
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(clients));
    for (name, body) in clients {
        assert!(found[name] == *body, "{name} is another page than clients got");
    }
    let mut left_out: Vec<_> = warned.lines().filter(|line| line.starts_with("left out: ")).collect();
    left_out.sort_unstable();
    let expected = [
        "left out: localhost/lacks: part-missing: a part of the page is not stored",
        "left out: localhost/mine: personal: the page is for one visitor",
    ];
    assert_eq!(left_out, expected);
    assert!(
        printed.starts_with("8 files with ") && printed.ends_with(", 2 responses left out\n"),
        "{printed}"
    );
    std::fs::remove_dir_all(tree).unwrap();
}

#[tokio::test]
async fn pages_are_exported_and_shown_as_clients_got_them_and_the_origin_is_not_asked() {
    let origin = Origin::simple(scripts()).unwrap();
    let site = "[[site.rule]]\npath = \"/for/*\"\nkey = { cookies = [\"id\"] }\n[stores.default]\nmemory = \"16MiB\"\n\
                disks = [{ path = \"d1\", size = \"64MiB\" }]\n";
    let (directory, path) = written(&config(&origin.url(), "", site));
    let mut larder = Process::run_config(&path).await;
    // These pages are for the sender of the POST, and are not stored.
    assert_eq!(post(&larder, "/method").await, b"posted");
    assert_eq!(post(&larder, "/only-posted").await, b"nav");
    let mut clients = BTreeMap::new();
    for (target, file) in EXPORTED {
        let answer = within(target, get(larder.addr, target)).await;
        assert_eq!(answer.status, 200, "{answer}");
        clients.insert(file.to_owned(), answer.body);
    }
    let nested = format!("<p>nav|[{}]</p>", long());
    assert!(clients["index.html"] == nested.as_bytes());
    for (target, body) in [("/lacks", &b"yours"[..]), ("/mine", b"nobody")] {
        assert_eq!(within(target, get(larder.addr, target)).await.body, body);
    }
    for target in ["/nav", "/long.txt", "/for/me"] {
        stored(&larder, target).await;
    }
    until("a part is stale", async || {
        let told = get(larder.admin, "/object?url=http%3A%2F%2Flocalhost%2Fshort").await;
        let told: Value = serde_json::from_slice(&told.body).unwrap();
        told["responses"][0]["ttl_seconds"].as_i64().unwrap() < 0
    })
    .await;
    settled(&larder).await;

    let asked = origin.log().count();
    let before = larder.metrics().await;
    check_export(&larder, directory.path(), &clients).await;
    for (target, file) in EXPORTED {
        let url = format!("http://localhost{target}");
        assert!(told(&larder, &["get", "--assembled", &url]).await == clients[file], "{target}");
    }
    let after = larder.metrics().await;
    for family in [
        "larder_requests_total",
        "larder_fragments_total",
        "larder_pages_total",
        "larder_cache_lookups_total",
    ] {
        assert_eq!(before.sum(family), after.sum(family), "{family}: nothing is counted as use");
    }

    // The head is that of the page, as a client gets it of one that is whole.
    let whole = within("a whole page", get(larder.addr, "/")).await;
    let tag = whole.fields.first("etag").unwrap_or_else(|| panic!("{whole}"));
    let head = text(&larder, &["get", "--assembled", "--head", "http://localhost/"]).await;
    for part in [
        &format!("etag: {tag}"),
        "a page from a template in SSI",
        &format!("content-length: {}", nested.len()),
    ] {
        assert!(head.contains(part), "no {part:?} in:\n{head}");
    }
    assert!(head.contains("cache-control: max-age=3600") && !head.contains("surrogate"), "{head}");
    // Without the option it is the template.
    let template = text(&larder, &["get", "http://localhost/"]).await;
    assert!(template.starts_with("<p><!--#include"), "{template}");
    let head = text(&larder, &["get", "--head", "http://localhost/box"]).await;
    assert!(head.contains("a template in ESI: --assembled shows its page"), "{head}");

    let admin = larder.admin.to_string();
    let get_page = async |url: &str| {
        let output = run(&["get", "--assembled", url, "--admin", &admin]).await;
        (output.status.code(), said(&output.stdout), said(&output.stderr))
    };
    let (code, body, warned) = get_page("http://localhost/mine").await;
    assert_eq!((code, body.as_str()), (Some(0), "nobody"));
    assert!(warned.contains("larder export leaves this page out: personal"), "{warned}");
    let (code, body, warned) = get_page("http://localhost/lacks").await;
    assert_eq!((code, body.as_str()), (Some(1), ""));
    assert!(warned.contains("part-missing: A part is not stored: http://localhost/private"), "{warned}");
    let (code, _, warned) = get_page("http://localhost/only-posted").await;
    assert!(code == Some(1) && warned.contains("answers a request without fields"), "{warned}");
    let personal =
        get(larder.admin, "/object?url=http%3A%2F%2Flocalhost%2Fmine&assembled=export&body=1").await;
    assert_eq!(personal.status, 404, "{personal}");
    assert_eq!(origin.log().count(), asked, "nobody was asked");

    // And from the disk alone, with the origin gone.
    larder.signal(Signal::TERM);
    larder.end().await;
    drop(origin);
    let larder = Process::run_config(&path).await;
    check_export(&larder, directory.path(), &clients).await;
    let metrics = larder.metrics().await;
    let held = metrics.samples().into_iter().filter(|(name, _)| name.starts_with("larder_cache_objects{"));
    let in_memory: Vec<_> = held.filter(|(name, _)| name.contains("tier=\"memory\"")).collect();
    assert!(in_memory.len() == 1 && in_memory[0].1 == 0.0, "nothing came into memory: {in_memory:?}");
}
