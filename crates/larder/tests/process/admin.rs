//! The admin address of a running larder: three endpoints, valid formats, and who is let in.

use std::collections::{BTreeMap, BTreeSet};

use larder_testkit::client::Request;
use larder_testkit::origin::{Answer, Origin};

use crate::support::{Process, answer_of, asking, cacheable, connect, get, script, until, written};

/// Two origins, two stores, two sites and a log: everything that has a name of its own in the metrics.
async fn busy() -> (Process, Origin, tempfile::TempDir) {
    let origin = Origin::simple(vec![
        cacheable("/a", 1000),
        script("/private", answer_of(&["Cache-Control: private"], 10)),
        script("/form", Answer::new(201, &[], "made")),
        script("/dies", Answer { vanish: true, ..Answer::default() }),
    ])
    .unwrap();
    let (directory, path) = written("");
    let log = directory.path().join("access.log");
    let config = format!(
        "listen = [\"127.0.0.1:0\", \"127.0.0.2:0\"]\nadmin = \"127.0.0.1:0\"\nworkers = 2\n\
         [log]\naccess = \"{log}\"\n[stores.small]\nmemory = \"1MiB\"\n\
         [origins.one]\nservers = [\"{url}\"]\n[origins.two]\nservers = [\"http://127.0.0.1:1\"]\n\
         [[site]]\norigin = \"one\"\n[[site]]\nhosts = [\"two.test\", \"*.two.test\"]\norigin = \"two\"\nstore = \"small\"\n",
        log = log.display(),
        url = origin.url(),
    );
    std::fs::write(&path, config).unwrap();
    let larder = Process::run_config(&path).await;
    for target in ["/a", "/a", "/private", "/dies"] {
        get(larder.addr, target).await;
    }
    for request in [
        Request::new("POST", "/form", "localhost").body("x"),
        Request::new("GET", "/", "www.two.test"),
        Request::new("BREW", "/form", "localhost"),
        Request::new("GET", "/a", "bad host"),
    ] {
        connect(larder.addr).await.exchange(&request).await.unwrap();
    }
    until("all are counted", async || larder.metrics().await.sum("larder_requests_total") >= 7).await;
    (larder, origin, directory)
}

#[tokio::test]
async fn metrics_are_valid_and_no_series_stands_twice() {
    let (larder, _origin, _directory) = busy().await;
    let metrics = larder.metrics().await;
    let (mut kinds, mut helped, mut closed) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let (mut series, mut current) = (BTreeSet::new(), String::new());
    for line in metrics.0.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(helped.insert(name) && !help.is_empty(), "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(kinds.insert(name, kind).is_none() && helped.contains(name), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{line}");
        assert!(series.insert(sample), "it stands twice: {line}");
        let name = sample.split('{').next().unwrap();
        let histogram = ["_bucket", "_sum", "_count"].into_iter().find_map(|end| name.strip_suffix(end));
        let family = histogram.filter(|family| kinds.get(family) == Some(&"histogram")).unwrap_or(name);
        assert!(kinds.contains_key(family), "no HELP and TYPE before {line}");
        if family != current {
            assert!(closed.insert(family), "the samples of {family} do not stand together");
            family.clone_into(&mut current);
        }
    }
    for expected in [
        "larder_cache_bytes{store=\"default\",tier=\"memory\"}",
        "larder_cache_bytes{store=\"small\",tier=\"memory\"}",
        "larder_origin_connections{origin=\"one\"}",
        "larder_origin_connections{origin=\"two\"}",
        "larder_tasks{worker=\"1\"}",
        "larder_flights",
        "larder_requests_refused_total{reason=\"host\"}",
        "larder_cache_lookups_total{store=\"default\",status=\"hit\"}",
    ] {
        assert!(series.contains(expected), "no {expected} in {}", metrics.0);
    }
    assert_eq!(metrics.value("larder_cache_lookups_total{store=\"default\",status=\"hit\"}"), Some(1.0));
    assert!(metrics.sum("larder_origin_errors_total") >= 2, "{}", metrics.0);
}

#[tokio::test]
async fn stats_are_json_and_agree_with_the_metrics() {
    let (larder, _origin, _directory) = busy().await;
    let response = get(larder.admin, "/stats").await;
    assert!(response.fields.first("content-type").unwrap().starts_with("application/json"), "{response}");
    let stats: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    let metrics = larder.metrics().await;
    assert_eq!(stats["health"], "ok");
    assert_eq!(stats["requests"], metrics.sum("larder_requests_total"));
    assert_eq!(stats["connections"], metrics.sum("larder_connections_open"));
    let of_kind = |kind: &str| {
        let all = stats["listeners"].as_array().unwrap().iter();
        let addresses = all.filter(|listener| listener["kind"] == kind);
        addresses.map(|listener| listener["address"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of_kind("admin"), [larder.admin.to_string()]);
    assert_eq!((of_kind("http").len(), &of_kind("http")[0]), (2, &larder.addr.to_string()));
    for (list, names) in
        [("origins", ["one", "two"]), ("stores", ["default", "small"]), ("sites", ["*", "two.test"])]
    {
        let shown: BTreeSet<&str> =
            stats[list].as_array().unwrap().iter().filter_map(|entry| entry["name"].as_str()).collect();
        assert!(names.iter().all(|name| shown.contains(name)), "{list}: {shown:?}");
    }
    assert_eq!(stats["workers"].as_array().unwrap().len(), 2);
    // "one" answers, "two" listens nowhere.
    let server = |name: &str| {
        let origin = stats["origins"].as_array().unwrap().iter().find(|origin| origin["name"] == name);
        origin.unwrap()["servers"].as_array().unwrap()[0].clone()
    };
    let (one, two) = (server("one"), server("two"));
    assert_eq!(one["state"], "up", "{one}");
    assert!(one["requests"].as_u64() > one["failures"].as_u64(), "{one}");
    assert!(two["failures"].as_u64() >= Some(1) && two["requests"] == two["failures"], "{two}");
}

#[tokio::test]
async fn only_addresses_and_loopback_names_are_let_in() {
    let (larder, _origin, _directory) = busy().await;
    for (host, status) in [
        (larder.admin.to_string(), 200),
        ("localhost".to_owned(), 200),
        ("evil.example".to_owned(), 421),
        ("localhost.evil.example".to_owned(), 421),
    ] {
        for target in ["/healthz", "/metrics", "/stats", "/"] {
            let request = Request { host: Some(host.clone()), ..asking(target) };
            let response = connect(larder.admin).await.exchange(&request).await.unwrap();
            assert_eq!(response.status, status, "{host} {target}: {response}");
        }
    }
    assert_eq!(get(larder.admin, "/nothing").await.status, 404);
    let posted = Request::new("POST", "/stats", "localhost").body("x");
    assert_eq!(connect(larder.admin).await.exchange(&posted).await.unwrap().status, 405);
}
