//! Of figures: what a question may say, and the form of answers.

use std::sync::Arc;

use http::StatusCode;
use larder_http::body::Body;
use larder_http::fields::cache_status::{Forward, RequestResult};
use larder_http::message::{Response, Scheme};
use larder_http::time::{Now, WallTime};
use larder_observe::watch::{Dimension, TableKind, TableWindow, Watch, WatchSettings};
use larder_observe::{Fetched, Metrics, RuleId, SampleHead, SampleTexts, Tap, Vocabulary, Weight};
use serde_json::Value;

use super::*;

/// A request that was missed, as the tap takes it.
fn missed(time: WallTime) -> SampleHead {
    let fetched = Fetched {
        origin: "app".into(),
        server: None,
        attempts: 1,
        is_reused: false,
        took: std::time::Duration::from_secs(2),
        queue: Default::default(),
        connect: None,
        first_byte: None,
        status: None,
        error: Some("connect"),
    };
    SampleHead {
        time,
        weight: Weight::ONE,
        rule: RuleId::default(),
        result: RequestResult::Asked,
        forward: Some(Forward::UriMiss),
        detail: Some("connect"),
        not_stored: None,
        stored: false,
        before: Some("evicted"),
        status: StatusCode::BAD_GATEWAY,
        scheme: Scheme::Https,
        version: http::Version::HTTP_11,
        tls: Some(larder_http::message::TlsVersion::Tls13),
        client: std::net::Ipv4Addr::LOCALHOST.into(),
        body_bytes: 500,
        took: Default::default(),
        collapse_wait: None,
        fetched: Some(Arc::new(fetched)),
        trace: None,
    }
}

/// A watch that has run for 100 seconds and seen three requests just now.
fn watch() -> (Watch, Now) {
    let metrics = Arc::new(Metrics::new(1, Vocabulary::default(), WallTime(0), "1"));
    let tap = Arc::new(Tap::new(1));
    let watch = Watch::new(metrics, Arc::clone(&tap), WatchSettings::default());
    let start = Now { wall: WallTime(1_000_000), monotonic: std::time::Duration::from_secs(7) };
    watch.drain(start);
    let now = start.later(std::time::Duration::from_secs(100));
    for target in ["/a/1?x=1", "/a/1?x=1", "/b?y=&token=secret"] {
        let texts =
            SampleTexts { host: b"shop.example", target: target.as_bytes(), ..SampleTexts::default() };
        tap.put(0, missed(now.wall), &texts);
    }
    watch.drain(now);
    (watch, now)
}

fn read(response: &Response) -> (u16, Value) {
    let Body::Full(bytes) = &response.body else { panic!("{:?}", response.body) };
    (response.head.status.as_u16(), serde_json::from_slice(bytes).unwrap())
}

#[test]
fn a_top_is_a_list_of_keys_with_rates() {
    let (watch, now) = watch();
    let ask = |query: &str| read(&top(&watch, query, now));
    let (status, told) = ask("of=before&window=86400&limit=1");
    assert_eq!(
        (status, &told["of"], &told["window"], &told["folded"]),
        (200, &"before".into(), &86400.into(), &0.into())
    );
    let row = &told["rows"][0];
    assert_eq!(row["key"], serde_json::json!(["evicted", "https://shop.example/a/1?x=1"]));
    assert_eq!((&row["error"], &row["last"]), (&0.0.into(), &1100.0.into()));
    assert!((row["rate"].as_f64().unwrap() - 0.02).abs() < 0.001, "{row}");
    assert_eq!(told["rows"].as_array().unwrap().len(), 1);
    let (_, told) = ask("");
    assert_eq!((&told["of"], &told["window"]), (&"urls".into(), &600.into()));
    assert_eq!(told["rows"][1]["key"], serde_json::json!(["https://shop.example/b?y=&token=***"]));
    for (query, keys) in [
        ("of=urls&where=*/a/*", serde_json::json!([["https://shop.example/a/1?x=1"]])),
        ("of=urls&where=/a/*", serde_json::json!([])),
        ("of=errors", serde_json::json!([["connect", "app"]])),
        ("of=parameters&where=", serde_json::json!([["x"], ["token"], ["y"]])),
        ("of=hosts", serde_json::json!([])),
    ] {
        let (_, told) = ask(query);
        let found: Vec<_> = told["rows"].as_array().unwrap().iter().map(|row| row["key"].clone()).collect();
        assert_eq!(Value::from(found), keys, "{query}");
    }
}

#[test]
fn a_breakdown_is_a_list_of_rates_with_their_shares() {
    let (watch, now) = watch();
    let ask = |query: &str| read(&breakdown(&watch, query, now));
    let (status, told) = ask("by=folder,store&limit=1");
    let expected = serde_json::json!({
        "source": "samples", "from": 1000.0, "to": 1100.0, "samples": 3, "total": 0.03,
        "rows": [{ "key": ["/a/*", null], "rate": 0.02, "share": 2.0 / 3.0, "bytes": 10.0, "origin_seconds": 0.04 }],
        "other": { "rate": 0.01, "share": 1.0 / 3.0 },
    });
    assert_eq!(status, 200);
    let (told_share, share) = (&told["rows"][0]["share"], 2.0 / 3.0);
    assert!((told_share.as_f64().unwrap() - share).abs() < 1e-9);
    let rounded = |value: &Value| {
        let mut value = value.clone();
        value["rows"][0]["share"] = Value::Null;
        value["other"]["share"] = Value::Null;
        value
    };
    assert_eq!(rounded(&told), rounded(&expected));
    let (_, told) = ask("where=path=/b&from=50.5");
    assert_eq!((&told["rows"][0]["key"], &told["from"]), (&serde_json::json!(["asked"]), &1049.5.into()));
    assert_eq!((&told["rows"][0]["share"], &told["samples"]), (&1.0.into(), &1.into()));
    let (_, told) = ask("where=path=/c");
    assert_eq!((&told["rows"], &told["other"]["share"]), (&serde_json::json!([]), &0.0.into()));
}

#[test]
fn a_value_that_cannot_be_had_is_told_with_those_that_can() {
    let (watch, now) = watch();
    let long = format!("where={}", "x".repeat(257));
    let tops = [
        ("of=", "of is one of urls, bytes, misses, before, errors, hosts, parameters"),
        ("of=URLS", "of is one of urls, "),
        ("window=60", "window is one of 600, 86400"),
        ("limit=0", "limit is a number from 1 to 1000"),
        ("limit=1001", "limit is a number from 1 to 1000"),
        ("limit=-1", "limit is a number"),
        ("limit=x", "limit is a number"),
        ("of=urls&of=urls", "a parameter stands twice"),
        ("of", "has no value"),
        ("where=%ff", "is no text"),
        (&long, "where has at most 256 bytes"),
    ];
    let breakdowns = [
        (
            "by=",
            "each word of by is one of result, reason, before, not_stored, detail, status, site, rule, store, origin, server, method, host, path, type, folder, url",
        ),
        ("by=result,colour", "each word of by is one of result, "),
        ("by=result,site,rule,store,host", "by has at most 4 words"),
        ("from=0", "from is a number of seconds from 1 to 86400"),
        ("from=-1", "from is a number"),
        ("from=86401", "from is a number"),
        ("from=NaN", "from is a number"),
        ("from=inf", "from is a number"),
        ("from=x", "from is a number"),
        ("limit=0", "limit is a number from 1 to 1000"),
        ("where=colour=red", "colour"),
        ("by=result&by=result", "a parameter stands twice"),
    ];
    let asked = tops.iter().map(|(query, part)| (query, part, top(&watch, query, now)));
    let asked =
        asked.chain(breakdowns.iter().map(|(query, part)| (query, part, breakdown(&watch, query, now))));
    for (query, part, response) in asked {
        let (status, told) = read(&response);
        assert_eq!(status, 400, "{query}");
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(part), "{query}: {message}");
    }
    for query in ["limit=1000", "from=1", "from=86400", "by=result,site,rule,store"] {
        assert_eq!(read(&breakdown(&watch, query, now)).0, 200, "{query}");
    }
    let (_, told) = read(&breakdown(&watch, "where=colour=red", now));
    assert_eq!((&told["error"], told["column"].is_number()), (&"filter".into(), true));
}

#[test]
fn the_reference_names_every_word() {
    let page = crate::endpoints::api_markdown();
    let part = |path: &str| page.split("\n## ").find(|part| part.starts_with(path)).unwrap().to_owned();
    let (top, breakdown) = (part("`/api/v1/top`"), part("`/api/v1/breakdown`"));
    let words =
        TableKind::ALL.map(TableKind::token).into_iter().chain(TableWindow::ALL.map(TableWindow::token));
    words.for_each(|word| assert!(top.contains(&format!("`{word}`")), "{word}"));
    let words = Dimension::ALL.iter().map(|dimension| dimension.token());
    words.for_each(|word| assert!(breakdown.contains(&format!("`{word}`")), "{word}"));
}
