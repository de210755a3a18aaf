//! The live view of the admin address: what happened, and what happens, with the real binary.

use std::time::Duration;

use larder_testkit::client::Request;
use larder_testkit::origin::Origin;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::support::{
    Process, Signal, answer_of, asking, cacheable, config, connect, script, until, written,
};

const LIMIT: Duration = Duration::from_secs(20);

fn origin() -> Origin {
    let cookie = answer_of(&["Set-Cookie: session=8f14e45fceea167a; HttpOnly"], 10);
    Origin::simple(vec![cacheable("/page*", 1000), script("/cookie", cookie)]).unwrap()
}

/// The JSON of a path of the admin address.
async fn json(larder: &Process, path: &str) -> (u16, Value) {
    let request = Request::new("GET", path, &larder.admin.to_string());
    let response = connect(larder.admin).await.exchange(&request).await.unwrap();
    (response.status, serde_json::from_slice(&response.body).unwrap())
}

/// Remembered requests that a filter takes, once there are so many.
async fn remembered(larder: &Process, filter: &str, count: usize) -> Vec<Value> {
    let path = format!("/api/v1/requests?where={}", filter.replace(' ', "%20"));
    let what = format!("{count} requests are remembered with {filter}");
    let all = async || json(larder, &path).await.1["requests"].as_array().unwrap().clone();
    until(&what, async || all().await.len() >= count).await;
    let all = all().await;
    assert_eq!(all.len(), count, "{all:#?}");
    all
}

#[tokio::test]
async fn what_was_no_hit_is_remembered_with_the_reason_and_without_secrets() {
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    let mut client = connect(larder.addr).await;
    for target in ["/page?token=hunter2&a=1", "/cookie", "/cookie"] {
        assert_eq!(client.exchange(&asking(target)).await.unwrap().status, 200);
    }
    let asked = remembered(&larder, "result=asked", 3).await;
    let newest = &asked[0];
    assert_eq!((&newest["path"], &newest["reason"]), (&"/cookie".into(), &"uri-miss".into()), "{newest}");
    assert_eq!(
        (&newest["before"], &newest["detail"]),
        (&"not-stored".into(), &"set-cookie".into()),
        "{newest}"
    );
    assert_eq!((&newest["server"], &newest["status"]), (&origin.url().into(), &200.into()), "{newest}");
    assert_eq!((&newest["rule"], &newest["stored"]), (&"(site)".into(), &false.into()), "{newest}");
    assert_eq!(newest["not_stored"], "set-cookie", "{newest}");
    assert_eq!((&newest["client"], &newest["weight"]), (&"127.0.0.0/24".into(), &1.into()), "{newest}");
    let stored = remembered(&larder, "stored=true and path=/page", 1).await;
    assert_eq!(stored[0]["query"], "token=***&a=1", "{}", stored[0]);
    assert_eq!(stored[0]["bytes"], 1000, "{}", stored[0]);
    assert_eq!(remembered(&larder, "before=not-stored", 1).await.len(), 1);
}

#[tokio::test]
async fn what_is_most_frequent_and_how_requests_divide_is_told() {
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    let mut client = connect(larder.addr).await;
    for target in ["/page?token=hunter2&a=1", "/cookie", "/cookie", "/cookie"] {
        assert_eq!(client.exchange(&asking(target)).await.unwrap().status, 200);
    }
    remembered(&larder, "result=asked", 4).await;
    let (status, top) = json(&larder, "/api/v1/top?of=before&where=not-stored%20*").await;
    let key = top["rows"][0]["key"].as_array().unwrap();
    assert_eq!((status, top["rows"].as_array().unwrap().len(), &key[0]), (200, 1, &"not-stored".into()));
    assert!(key[1].as_str().unwrap().ends_with("/cookie"), "{top}");
    assert!(top["rows"][0]["rate"].as_f64().unwrap() > 0.0 && top["rows"][0]["error"] == 0.0, "{top}");
    let (_, top) = json(&larder, "/api/v1/top?limit=2&window=86400").await;
    assert!(top["rows"][1]["key"][0].as_str().unwrap().ends_with("/page?token=***&a=1"), "{top}");
    let (status, told) = json(&larder, "/api/v1/breakdown?by=path,before&where=result=asked").await;
    let [most, other] = [0, 1].map(|row| told["rows"][row].clone());
    assert_eq!((status, &told["samples"], &told["source"]), (200, &4.into(), &"samples".into()), "{told}");
    assert_eq!((&most["key"][0], &most["key"][1]), (&"/cookie".into(), &"not-stored".into()), "{told}");
    assert_eq!(most["share"], 0.5, "the first of three was new: {told}");
    assert!(other["share"] == 0.25 && told["total"].as_f64().unwrap() > 0.0, "{told}");
    for path in ["/api/v1/top?of=all", "/api/v1/breakdown?by=colour"] {
        let (status, said) = json(&larder, path).await;
        assert_eq!((status, &said["error"]), (400, &"query".into()), "{path}: {said}");
    }
    assert!(larder.metrics().await.sum("larder_live_table_bytes") > 0);
}

#[tokio::test]
async fn a_filter_that_cannot_be_read_is_400_with_the_column() {
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    for path in ["/api/v1/requests?where=sttus=200", "/api/v1/live?requests=sttus=200"] {
        let (status, said) = json(&larder, path).await;
        assert_eq!((status, &said["error"], &said["column"]), (400, &"filter".into(), &1.into()), "{said}");
        assert!(said["message"].as_str().unwrap().contains("status"), "{said}");
    }
    for path in ["/api/v1/requests?limit=1001", "/api/v1/live?all=1", "/api/v1/live?recent=x"] {
        let (status, said) = json(&larder, path).await;
        assert_eq!((status, &said["error"]), (400, &"query".into()), "{path}: {said}");
    }
    assert_eq!(json(&larder, "/api/v1/live?nothing=1").await.1["error"], "parameter");
}

/// A stream of the admin address.
struct Stream(BufReader<TcpStream>);

impl Stream {
    async fn open(larder: &Process, query: &str) -> (u16, Self) {
        let mut socket = TcpStream::connect(larder.admin).await.unwrap();
        let head = format!("GET /api/v1/live?{query} HTTP/1.1\r\nHost: {}\r\n\r\n", larder.admin);
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut stream = Self(BufReader::new(socket));
        let status = stream.line().await.split(' ').nth(1).unwrap().parse().unwrap();
        while !stream.line().await.is_empty() {}
        (status, stream)
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        tokio::time::timeout(LIMIT, self.0.read_line(&mut line)).await.expect("a line in time").unwrap();
        line.trim_end().to_owned()
    }

    /// The next event of this name.
    async fn next(&mut self, name: &str) -> Value {
        loop {
            if self.line().await == format!("event: {name}") {
                let data = self.line().await;
                return serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_stream_has_every_request_where_all_is_asked_for_and_begins_with_what_is_remembered() {
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    let mut client = connect(larder.addr).await;
    assert_eq!(client.exchange(&asking("/page1")).await.unwrap().status, 200);
    remembered(&larder, "path=/page1", 1).await;
    let (status, mut stream) = Stream::open(&larder, "requests=path=/page*&all=true&recent=10").await;
    assert_eq!(status, 200);
    assert_eq!(stream.next("request").await["result"], "asked");
    for _ in 0..20 {
        assert_eq!(client.exchange(&asking("/page1")).await.unwrap().status, 200);
        assert_eq!(client.exchange(&asking("/cookie")).await.unwrap().status, 200);
    }
    for _ in 0..20 {
        let seen = stream.next("request").await;
        assert_eq!((&seen["result"], &seen["weight"]), (&"memory".into(), &1.into()), "{seen}");
    }
    // A reload is told to those who look on, and remembered.
    larder.signal(Signal::HUP);
    assert_eq!(stream.next("event").await["kind"], "reload");
    assert_eq!(json(&larder, "/api/v1/events").await.1["events"][0]["kind"], "reload");
}

#[tokio::test]
async fn a_stream_that_leaves_makes_room_for_another() {
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    let mut streams = Vec::new();
    for _ in 0..32 {
        let (status, stream) = Stream::open(&larder, "requests=").await;
        assert_eq!(status, 200);
        streams.push(stream);
    }
    assert_eq!(Stream::open(&larder, "requests=").await.0, 503);
    assert_eq!(larder.metrics().await.sum("larder_live_subscribers"), 32);
    streams.pop();
    until("a stream has left", async || larder.metrics().await.sum("larder_live_subscribers") < 32).await;
    assert_eq!(Stream::open(&larder, "requests=").await.0, 200);
}

/// The sum over the last ten minutes of a figure per second, which is known in each second since the start.
async fn sum(larder: &Process, name: &str) -> f64 {
    let (status, said) = json(larder, &format!("/api/v1/series?names={name}&step=1")).await;
    assert_eq!(status, 200, "{said}");
    said["values"][name].as_array().unwrap().iter().filter_map(Value::as_f64).sum()
}

#[tokio::test]
async fn figures_over_time_add_up_to_what_was_asked_and_to_what_the_origin_counted() {
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    let (status, mut stream) = Stream::open(&larder, "tick=1&samples=0").await;
    assert_eq!(status, 200);
    let mut client = connect(larder.addr).await;
    for _ in 0..20 {
        assert_eq!(client.exchange(&asking("/page1")).await.unwrap().status, 200);
        assert_eq!(client.exchange(&asking("/cookie")).await.unwrap().status, 200);
    }
    until("all requests are in the figures", async || (sum(&larder, "requests").await - 40.0).abs() < 0.01)
        .await;
    let asked = sum(&larder, "result.asked").await;
    assert!(
        (asked - origin.log().count() as f64).abs() < 0.01,
        "{asked}, the origin: {}",
        origin.log().count()
    );
    let (_, rules) = json(&larder, "/api/v1/series?names=rule:*&step=1").await;
    let of_rule = |measure: &str| -> f64 {
        let all = rules["values"].as_object().unwrap().iter();
        let of_it = all.filter(|(name, _)| name.ends_with(&format!(":(site):{measure}")));
        of_it.flat_map(|(_, all)| all.as_array().unwrap()).filter_map(Value::as_f64).sum()
    };
    let memory = of_rule("result.memory");
    let of_all = sum(&larder, "result.memory").await;
    assert!((of_all - 19.0).abs() < 0.01 && (memory - of_all).abs() < 0.01, "{of_all}, by rule {memory}");
    // Ticks and the series are the same figures.
    let mut ticks = 0.0;
    while ticks < 39.9 {
        ticks += stream.next("tick").await["values"]["requests"].as_f64().unwrap_or_default();
    }
    assert!((ticks - 40.0).abs() < 0.1, "{ticks}");
    let (_, now) = json(&larder, "/api/v1/now").await;
    assert_eq!(now["stats"]["requests"], 40, "{now}");
    assert!(now["minute"]["requests"].as_f64().is_some_and(|rate| rate > 0.0), "{now}");
    assert!(now["values"]["memory"].as_f64().is_some_and(|bytes| bytes > 1e6), "{now}");
    let server = &now["stats"]["origins"][0]["servers"][0];
    assert_eq!(server["by_code_class"]["2xx"], origin.log().count(), "{server}");
    assert_eq!(server["body_bytes"], 1000 + 20 * 10, "{server}");
    assert!(server["p50"].as_f64().is_some_and(|p50| p50 > 0.0) && server["check"].is_null(), "{server}");
    let received = sum(&larder, "bytes_in").await;
    assert!((received - 1200.0).abs() < 1.0, "{received}");
    assert_eq!(now["stats"]["rules"][0]["received_bytes"], 1200, "{now}");
    assert!((of_rule("bytes_in") - 1200.0).abs() < 1.0, "{rules}");
    let (_, heat) = json(&larder, "/api/v1/latency?of=all&step=1").await;
    let points = heat["counts"].as_array().unwrap().iter().filter_map(Value::as_array).flatten();
    let counted: f64 = points.filter_map(Value::as_f64).sum();
    assert!((counted - 40.0).abs() < 0.5, "{counted}");
    let (_, of_origin) = json(&larder, "/api/v1/latency?of=origin/app").await;
    assert_eq!(of_origin["bounds"].as_array().unwrap().len(), 22, "{of_origin}");
}

#[tokio::test]
async fn a_question_for_figures_beyond_the_bounds_is_400_and_tells_them() {
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    let many = vec!["requests"; 65].join(",");
    for (query, word, told) in [
        ("series", "query", "names=A,B"),
        ("series?names=", "query", "names=A,B"),
        ("series?names=requests&from=x", "query", "seconds"),
        ("series?names=requests&from=86401", "query", "86400"),
        ("series?names=requests&from=5&to=6", "query", "to"),
        ("series?names=requests&step=0", "query", "86400"),
        ("series?names=requests&from=86400&step=1", "query", "2000"),
        (&*format!("series?names={many}"), "query", "64"),
        ("latency", "query", "origin/NAME"),
        ("latency?of=all/x", "query", "origin/NAME"),
        ("live?tick=yes", "query", "tick"),
    ] {
        let (status, said) = json(&larder, &format!("/api/v1/{query}")).await;
        assert_eq!((status, &said["error"]), (400, &word.into()), "{query}: {said}");
        assert!(said["message"].as_str().unwrap().contains(told), "{query}: {said}");
    }
}
