//! `larder ls`, `get` and `export` of a store of plain files: what larder stored there, and what people did.

use larder_testkit::origin::{Origin, PathScript};
use larder_testkit::seeded;
use serde_json::Value;

use super::keeping::{lines, stored, text, told, urls};
use crate::support::{Process, answer_of, cacheable, config, script, until, written};

/// More than fits one page.
const FILES: usize = 40;
const LARGE: u64 = 300_000;

fn scripts() -> Vec<PathScript> {
    let mut scripts: Vec<_> = (0..FILES).map(|number| cacheable(&format!("/n/{number}"), 100)).collect();
    let page = answer_of(&["Cache-Control: max-age=3600", "Content-Type: text/html"], LARGE);
    let vary = answer_of(&["Cache-Control: max-age=3600", "Vary: Accept-Language"], 20);
    scripts.extend([script("/about", page), script("/vary", vary)]);
    scripts
}

/// A larder with everything stored, and where its files are.
async fn started(origin: &Origin) -> (tempfile::TempDir, Process) {
    let store = "[stores.default]\nmemory = \"8MiB\"\nfiles = \"pages\"\n";
    let (directory, path) = written(&config(&origin.url(), "", store));
    let larder = Process::run_config(&path).await;
    for number in 0..FILES {
        stored(&larder, &format!("/n/{number}")).await;
    }
    stored(&larder, "/about").await;
    stored(&larder, "/vary").await;
    until("all have their files", async || {
        larder.metrics().await.sum("larder_files_stored_total") == FILES as u64 + 1
    })
    .await;
    (directory, larder)
}

#[tokio::test]
async fn plain_files_are_listed_and_shown_and_exported() {
    let origin = Origin::simple(scripts()).unwrap();
    let (directory, larder) = started(&origin).await;
    let host = directory.path().join("pages/localhost");
    std::fs::write(host.join("mine.txt"), "mine").unwrap();
    std::fs::write(host.join(".hidden"), "no").unwrap();

    let listed = lines(&larder, &["ls"]).await;
    assert_eq!((listed.len(), urls(&listed).len()), (FILES + 3, FILES + 3));
    let of = |url: &str| listed.iter().find(|object| object["url"] == url).unwrap();
    let (about, mine) = (of("http://localhost/about"), of("http://localhost/mine.txt"));
    assert_eq!((&about["places"][0], &about["body_bytes"]), (&Value::from("files"), &Value::from(LARGE)));
    assert_eq!(about["file"].as_str(), host.join("about").to_str());
    assert!((3590..=3600).contains(&about["ttl_seconds"].as_i64().unwrap()), "{about}");
    assert_eq!((&mine["by_hand"], &mine["content_type"]), (&Value::from(true), &Value::from("text/plain")));
    assert!(about["by_hand"].is_null());
    assert_eq!(of("http://localhost/vary")["places"][0], "memory", "no file can stand for it");
    assert_eq!(lines(&larder, &["ls", "localhost/n/1"]).await.len(), 11);
    assert_eq!(lines(&larder, &["ls", "--limit", "7"]).await.len(), 7);
    let secure = lines(&larder, &["ls", "https://localhost/"]).await;
    assert_eq!(urls(&secure).into_iter().collect::<Vec<_>>(), ["https://localhost/mine.txt"]);
    let table = text(&larder, &["ls", "localhost/mine"]).await;
    assert!(table.contains("stays  default   files, by hand http://localhost/mine.txt"), "{table}");

    let body = told(&larder, &["get", "http://localhost/about"]).await;
    assert!(body == seeded::bytes_of("/about", 0, LARGE), "another body");
    for url in ["http://localhost/mine.txt", "https://localhost/mine.txt"] {
        assert_eq!(told(&larder, &["get", url]).await, b"mine");
        let head = text(&larder, &["get", url, "--head"]).await;
        for part in [url, "mine.txt, put there by hand", "fresh for as long as it lies there", "etag: "] {
            assert!(head.contains(part), "no {part:?} in:\n{head}");
        }
    }
    let head = text(&larder, &["get", "http://localhost/about", "--head"]).await;
    assert!(head.contains("content-type: text/html") && head.contains("/pages/localhost/about"), "{head}");

    let tree = directory.path().join("tree");
    let printed = text(&larder, &["export", tree.to_str().unwrap()]).await;
    assert!(printed.starts_with("2 files with "), "{printed}");
    let exported = std::fs::read(tree.join("localhost/about/index.html")).unwrap();
    assert!(exported == seeded::bytes_of("/about", 0, LARGE), "another body");
    assert_eq!(std::fs::read(tree.join("localhost/mine.txt")).unwrap(), b"mine");

    let stats = text(&larder, &["stats"]).await;
    let tier = stats.lines().find(|line| line.contains("files /"));
    assert!(tier.is_some_and(|line| line.contains("/pages")), "{stats}");
    assert_eq!(origin.log().count(), FILES as u64 + 2, "looking asked nobody");
}
