//! The access log from outside: its lines, its file, and that it never makes a request wait.

use std::path::Path;
use std::time::{Duration, Instant};

use larder_testkit::client::{Request, Response};
use larder_testkit::origin::{Answer, Origin};
use serde_json::Value;

use crate::support::{
    Process, Signal, answer_of, asking, cache_status, cacheable, config, connect, get, script, until, written,
};

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read(path).unwrap_or_default();
    String::from_utf8(text).expect("a log is UTF-8").lines().map(str::to_owned).collect()
}

async fn until_lines(path: &Path, count: usize) -> Vec<String> {
    until(&format!("{} has {count} lines", path.display()), async || lines(path).len() >= count).await;
    let lines = lines(path);
    assert_eq!(lines.len(), count, "{lines:#?}");
    lines
}

fn logging(origin: &Origin, target: &str, format: &str) -> String {
    let log = format!("[log]\naccess = \"{target}\"\nformat = \"{format}\"\n[origins.app]");
    config(&origin.url(), "", "").replace("[origins.app]", &log)
}

fn origin() -> Origin {
    Origin::simple(vec![
        cacheable("/a*", 1000),
        script("/private", answer_of(&["Cache-Control: private"], 10)),
        script("/form", Answer::new(201, &[], "made")),
        script("/gone", Answer::new(404, &["Cache-Control: max-age=60"], "gone")),
        script("/dies", Answer { vanish: true, ..Answer::default() }),
    ])
    .unwrap()
}

/// Requests of every kind, over one connection each.
async fn visit(larder: &Process) -> Vec<(Request, Response)> {
    let odd = b"GET /a?x=%22' HTTP/1.1\r\nHost: localhost\r\nUser-Agent: odd \" \\ \xff\xc3\xa9 \t end\r\nReferer: http://r.test/\"\r\n\r\n";
    let requests = [
        asking("/a"),
        asking("/a"),
        Request::new("HEAD", "/a", "localhost"),
        asking("/a").field("Range", "bytes=10-19"),
        asking("/private"),
        asking("/private"),
        Request::new("POST", "/form", "localhost").body("name=x"),
        asking("/gone"),
        asking("/dies"),
        Request { version: "1.0".to_owned(), ..asking("/a") },
        Request::raw(&odd[..]),
    ];
    let mut answered = Vec::new();
    for request in requests {
        let response = connect(larder.addr).await.exchange(&request).await.unwrap();
        answered.push((request, response));
    }
    answered
}

/// The outcome that Cache-Status states: `hit`, a forward reason, or nothing.
fn verdict(cache_status: &str) -> Option<&str> {
    let mut parameters = cache_status.split(';').map(str::trim).skip(1);
    parameters.find_map(|parameter| match parameter.split_once('=') {
        Some(("fwd", reason)) => Some(reason),
        None if parameter == "hit" => Some("hit"),
        _ => None,
    })
}

/// A hit asked no origin. Whatever else was asked for says whom, in which time, and who answered or failed.
fn says_whom_it_asked(line: &Value, server: &str, status: u16) {
    let (result, time) = (&line["larder.result"], &line["larder.origin.time"]);
    if line["larder.cache.status"] == "hit" {
        assert_eq!((result, time), (&"memory".into(), &Value::Null), "{line}");
        return;
    }
    assert_eq!((result, line["larder.origin.name"].as_str()), (&"asked".into(), Some("app")), "{line}");
    assert!(time.as_f64().is_some_and(|seconds| seconds < 20.0), "{line}");
    // A kept connection that closes says nothing: the request goes over a new one, too.
    let attempts = if status == 502 { 2 } else { 1 };
    let told = (line["larder.origin.server"].as_str(), line["larder.origin.attempts"].as_u64());
    assert_eq!(told, (Some(server), Some(attempts)), "{line}");
}

#[tokio::test]
async fn a_fetch_is_told_by_all_who_shared_it_and_a_confirmation_by_who_asked() {
    let held = Answer { hold: Some("held".to_owned()), ..answer_of(&["Cache-Control: max-age=60"], 100) };
    let confirmed = answer_of(&["ETag: \"1\"", "Cache-Control: no-cache"], 100);
    let confirmed = Answer { conditional: true, ..confirmed };
    let origin = Origin::simple(vec![script("/held", held), script("/confirmed", confirmed)]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (log, path) = (directory.path().join("access.log"), directory.path().join("larder.toml"));
    std::fs::write(&path, logging(&origin, log.to_str().unwrap(), "json")).unwrap();
    let larder = Process::run_config(&path).await;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let mut client = connect(larder.addr).await;
        clients.spawn(async move { client.exchange(&asking("/held")).await.unwrap() });
    }
    until("three requests wait", async || larder.metrics().await.sum("larder_flights_waiting") == 3).await;
    origin.gates().release("held");
    while let Some(response) = clients.join_next().await {
        assert_eq!(response.unwrap().status, 200);
    }
    for _ in 0..2 {
        connect(larder.addr).await.exchange(&asking("/confirmed")).await.unwrap();
    }
    assert_eq!(origin.log().count(), 3);
    let lines = until_lines(&log, 5).await;
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut results: Vec<&str> = lines.iter().map(|line| line["larder.result"].as_str().unwrap()).collect();
    results.sort_unstable();
    assert_eq!(results, ["asked", "asked", "asked", "joined", "joined"]);
    for line in &lines {
        assert_eq!(line["larder.origin.server"], origin.url(), "{line}");
        assert!(line["larder.origin.time"].as_f64().is_some(), "{line}");
    }
    let is_confirmed = |line: &&Value| line["larder.origin.status_code"] == 304;
    assert_eq!(lines.iter().filter(is_confirmed).count(), 1, "{lines:#?}");
}

#[tokio::test]
async fn json_lines_say_what_the_response_said() {
    let origin = origin();
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("access.log");
    let path = directory.path().join("larder.toml");
    let text = logging(&origin, log.to_str().unwrap(), "json");
    std::fs::write(&path, format!("workers = 1\n{text}")).unwrap();
    let larder = Process::run_config(&path).await;
    let answered = visit(&larder).await;
    let lines = until_lines(&log, answered.len()).await;
    for (line, (request, response)) in lines.iter().zip(&answered) {
        assert!(!line.contains(|c: char| c.is_control()), "a raw control in {line:?}");
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(line["http.response.status_code"], response.status, "{line}");
        assert_eq!(line["http.request.method"], *request.method, "{line}");
        assert_eq!(line["larder.cache.status_field"], cache_status(response), "{line}");
        assert_eq!(line["larder.cache.status"].as_str(), verdict(cache_status(response)), "{line}");
        let stored = cache_status(response).split(';').any(|parameter| parameter.trim() == "stored");
        assert_eq!(line["larder.cache.stored"], stored, "{line}");
        assert_eq!(line["http.response.body.size"], response.body.len(), "{line}");
        assert_eq!(line["larder.complete"], true, "{line}");
        assert_eq!(line["client.address"], "127.0.0.1", "{line}");
        assert!(line["larder.request_time"].as_f64().unwrap() < 20.0, "{line}");
        assert_eq!(line["larder.rule"], "(site)", "{line}");
        says_whom_it_asked(&line, &origin.url(), response.status);
    }
    let paths: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["url.path"].clone()).collect();
    assert_eq!(paths[4], "/private");
    let odd: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!(odd["user_agent.original"], "odd \" \\ \u{fffd}\u{e9} \t end", "{odd}");
    assert_eq!(odd["url.query"], "x=%22'", "{odd}");
    assert_eq!(larder.metrics().await.sum("larder_log_dropped_total"), 0);
}

/// Splits a combined line: address, date, request, status, bytes, referer, user agent.
fn combined(line: &str) -> Option<[&str; 7]> {
    let (address, rest) = line.split_once(" - - [")?;
    let (date, rest) = rest.split_once("] \"")?;
    let (request, rest) = rest.split_once("\" ")?;
    let (status, rest) = rest.split_once(' ')?;
    let (bytes, rest) = rest.split_once(" \"")?;
    let (referer, rest) = rest.split_once("\" \"")?;
    Some([address, date, request, status, bytes, referer, rest.strip_suffix('"')?])
}

#[tokio::test]
async fn a_refused_request_has_its_line() {
    let origin = origin();
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("access.log");
    let path = directory.path().join("larder.toml");
    std::fs::write(&path, logging(&origin, log.to_str().unwrap(), "json")).unwrap();
    let larder = Process::run_config(&path).await;
    let refused = Request::raw(&b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"[..]);
    let response = connect(larder.addr).await.exchange(&refused).await.unwrap();
    assert_eq!(response.status, 400);
    let lines = until_lines(&log, 1).await;
    let line: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(line["http.response.status_code"], 400, "{line}");
    assert_eq!(line["larder.cache.detail"], "host-count", "{line}");
}

/// Requests that larder answers by itself, before or instead of a site: each with its status and its word.
#[tokio::test]
async fn every_answer_that_is_larder_s_own_has_its_line_with_the_word_of_cache_status() {
    let origin = origin();
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("access.log");
    let path = directory.path().join("larder.toml");
    let hosts = "hosts = [\"localhost\"]\n[limits]\nbody_size = \"1KiB\"\nhead_time = \"300ms\"\n";
    let text = logging(&origin, log.to_str().unwrap(), "json") + hosts;
    std::fs::write(&path, format!("workers = 1\n{text}")).unwrap();
    let larder = Process::run_config(&path).await;
    let via = ["1.1 larder"; 40].join(", ");
    let raw = |text: String| Request::raw(text.into_bytes());
    let long = "a".repeat(40_000);
    let cases = [
        (Request::new("GET", "/a", "other.test").field("User-Agent", "me"), 421, "unknown-host"),
        (asking("/../../a?q"), 400, "climbing-path"),
        (asking("/a").field("Via", &via), 508, "loop"),
        (asking("/nowhere").field("Cache-Control", "only-if-cached"), 504, "only-if-cached"),
        (asking("/dies"), 502, "closed"),
        (raw("GET / HTTP/1.1\r\n\r\n".to_owned()), 400, "host-count"),
        (raw(format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n")), 414, "target-too-long"),
        (asking("/a").field("A", &long), 431, "field-too-large"),
        (raw("GET /a HTTP/3.0\r\nHost: localhost\r\n\r\n".to_owned()), 505, "version"),
        (raw("GET /a HT".to_owned()), 408, "head-timeout"),
        (Request::new("POST", "/form", "localhost").body("x".repeat(2000)), 413, "body-too-large"),
        (asking("/a").field("Expect", "wonders"), 417, "expectation"),
    ];
    for (count, (request, status, word)) in cases.iter().enumerate() {
        let response = connect(larder.addr).await.exchange(request).await.unwrap();
        assert_eq!(response.status, *status, "{word}: {response}");
        let lines = until_lines(&log, count + 1).await;
        let line: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
        assert_eq!(line["http.response.status_code"], *status, "{line}");
        assert_eq!(line["larder.cache.detail"], *word, "{line}");
        if let Some(said) = response.fields.first("cache-status") {
            assert!(said.contains(&format!("detail={word}")), "{said}");
        }
    }
    let lines = lines(&log);
    let first: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!((&first["url.path"], &first["user_agent.original"]), (&"/a".into(), &"me".into()), "{first}");
    let metrics = larder.metrics().await;
    for word in ["unknown-host", "climbing-path", "loop"] {
        let series = format!("larder_requests_turned_away_total{{reason=\"{word}\"}}");
        assert_eq!(metrics.value(&series), Some(1.0), "{word}");
    }
}

#[tokio::test]
async fn combined_lines_are_what_log_readers_expect() {
    let origin = origin();
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("access.log");
    let path = directory.path().join("larder.toml");
    let text = logging(&origin, log.to_str().unwrap(), "combined");
    std::fs::write(&path, format!("workers = 1\n{text}")).unwrap();
    let larder = Process::run_config(&path).await;
    let answered = visit(&larder).await;
    let lines = until_lines(&log, answered.len()).await;
    for (line, (request, response)) in lines.iter().zip(&answered) {
        assert!(line.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{line:?}");
        let Some([address, date, asked, status, bytes, referer, agent]) = combined(line) else {
            panic!("not in the combined format: {line}");
        };
        assert_eq!((address, status), ("127.0.0.1", &*response.status.to_string()), "{line}");
        assert_eq!(bytes, response.body.len().to_string(), "{line}");
        assert!(asked.starts_with(&format!("{} /", request.method)), "{line}");
        assert!(asked.ends_with(&format!(" HTTP/{}", request.version)), "{line}");
        assert_eq!((date.len(), date.ends_with(" +0000")), (26, true), "{line}");
        if request.raw.is_none() {
            assert_eq!((referer, agent), ("-", "-"), "{line}");
        }
    }
    let odd = lines.last().unwrap();
    assert!(odd.contains(r#""GET /a?x=%22' HTTP/1.1""#), "{odd}");
    assert!(odd.ends_with(r#""http://r.test/\x22" "odd \x22 \x5C \xFF\xC3\xA9 \x09 end""#), "{odd}");
}

#[tokio::test]
async fn usr1_opens_the_file_anew_after_it_was_moved_away() {
    let origin = origin();
    let directory = tempfile::tempdir().unwrap();
    let [log, moved, path] =
        ["access.log", "access.log.1", "larder.toml"].map(|name| directory.path().join(name));
    std::fs::write(&path, logging(&origin, log.to_str().unwrap(), "json")).unwrap();
    let mut larder = Process::run_config(&path).await;
    get(larder.addr, "/a?1").await;
    until_lines(&log, 1).await;
    std::fs::rename(&log, &moved).unwrap();
    get(larder.addr, "/a?2").await;
    until_lines(&moved, 2).await;
    larder.signal(Signal::USR1);
    until("the file is there again", async || log.exists()).await;
    get(larder.addr, "/a?3").await;
    assert!(until_lines(&log, 1).await[0].contains("\"url.query\":\"3\""));
    assert_eq!(lines(&moved).len(), 2);
    // What the end of larder finds waiting is still written.
    get(larder.addr, "/a?4").await;
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0);
    assert_eq!(lines(&log).len(), 2);
}

#[tokio::test]
async fn lines_on_standard_output_follow_the_greeting() {
    let origin = origin();
    let (_directory, path) = written(&logging(&origin, "stdout", "json"));
    let larder = Process::run_config(&path).await;
    get(larder.addr, "/a").await;
    larder.prints("\"url.path\":\"/a\"").await;
    let line: Value = serde_json::from_str(larder.stdout().last().unwrap()).unwrap();
    assert_eq!(line["larder.cache.status"], "uri-miss", "{line}");
}

#[tokio::test]
async fn a_full_pipe_never_makes_a_request_wait() {
    let origin = origin();
    let (_directory, path) = written(&logging(&origin, "stdout", "json"));
    let mut larder = Process::run_unread(&path).await;
    // 8 KiB of target and as much of everything else that is logged: some 1000 lines fill pipe and queue.
    let long = "q".repeat(8000);
    let request = asking("/a").field("User-Agent", &long).field("Referer", &long);
    let request = Request { target: format!("/a?{long}"), ..request };
    let mut client = connect(larder.addr).await;
    let mut longest = Duration::ZERO;
    let mut sent = 0;
    while larder.metrics().await.sum("larder_log_dropped_total") == 0 {
        for _ in 0..250 {
            let started = Instant::now();
            let response = client.exchange(&request).await.unwrap();
            assert_eq!(response.status, 200, "{response}");
            longest = longest.max(started.elapsed());
            sent += 1;
        }
        assert!(sent < 20_000, "the queue has no end");
    }
    // Full as it is, requests go on and are counted as not logged.
    for _ in 0..250 {
        let started = Instant::now();
        assert_eq!(client.exchange(&request).await.unwrap().status, 200);
        longest = longest.max(started.elapsed());
    }
    assert!(longest < Duration::from_secs(2), "a request waited {longest:?} for the log");
    assert!(larder.metrics().await.sum("larder_log_dropped_total") >= 250);
    drop(client);
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
}
