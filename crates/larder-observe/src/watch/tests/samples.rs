//! One sample: its names, its secrets, its JSON, and that a filter finds each of its fields.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::filter::FILTER_FIELDS;

fn json_of(sample: &Sample) -> Value {
    let mut out = Vec::new();
    sample.json(&mut out);
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn every_field_of_a_filter_asks_for_what_a_sample_has() {
    let mut world = World::new();
    let rule = world.metrics.rule("shop", "assets", world.metrics.cache("pages"));
    let whole = world.sample(full(rule), &full_texts());
    let empty = world.sample(bare(), &SampleTexts::default());
    // The filter, and whether a sample matches in which nothing is missing, or everything.
    let cases = [
        ("cache=uri-miss", true, false),
        ("result=asked", true, false),
        ("result=own", false, true),
        ("reason=uri-miss", true, false),
        ("before=evicted", true, false),
        ("detail=set-cookie", true, false),
        ("not_stored=no-room", true, false),
        ("stored=true", true, false),
        ("method=GET", true, false),
        ("scheme=https", true, false),
        ("scheme=http", false, true),
        ("host=shop.example:8080", true, false),
        ("path=/Blog/a%20b.html", true, false),
        ("path=\"\"", false, true),
        ("query=\"x=1&token=***\"", true, false),
        ("query=\"\"", false, true),
        ("url=shop.example:8080/Blog*", true, false),
        ("status=404", true, false),
        ("status=200", false, true),
        ("site=shop", true, false),
        ("rule=assets", true, false),
        ("store=pages", true, false),
        ("site=\"\" and rule=\"\" and store=\"\"", false, true),
        ("origin=app", true, false),
        ("server=10.0.0.7:*", true, false),
        ("client=192.0.2.0/24", true, false),
        ("client=127.0.0.0/24", false, true),
        ("ua=curl*", true, false),
        ("referer=*y=2*", true, false),
        ("type=text/html", true, false),
        ("bytes=2KiB", true, false),
        ("time=1750ms", true, false),
        ("wait=60ms", true, false),
        ("queue=3ms", true, false),
        ("connect=20ms", true, false),
        ("first_byte=1.6s", true, false),
        ("attempts=2", true, false),
        ("trace=4bf92f3577b34da6a3ce929d0e0e4736", true, false),
        ("protocol=2.0", true, false),
        ("protocol=1.1", false, true),
        ("tls=1.2", true, false),
        ("tls=\"\"", false, true),
    ];
    for (text, of_whole, of_empty) in cases {
        let filter = filter(text);
        assert_eq!([filter.matches(&*whole), filter.matches(&*empty)], [of_whole, of_empty], "{text}");
    }
    for field in FILTER_FIELDS {
        assert!(
            cases.iter().any(|(text, whole, _)| *whole && text.starts_with(field.name)),
            "{}",
            field.name
        );
    }
}

#[test]
fn a_sample_is_an_object_with_the_declared_keys() {
    let mut world = World::new();
    let rule = world.metrics.rule("shop", "assets", world.metrics.cache("pages"));
    let whole = world.sample(full(rule), &full_texts());
    let expected = json!({
        "at": 1_700_000_000.042, "weight": 1, "client": "192.0.2.0/24", "method": "GET", "scheme": "https",
        "host": "shop.example:8080", "path": "/Blog/a%20b.html", "query": "x=1&token=***", "protocol": "2.0",
        "tls": "1.2", "ua": "curl/8.1", "referer": "https://shop.example/?y=2&api_key=***", "site": "shop", "rule": "assets",
        "store": "pages", "result": "asked", "reason": "uri-miss", "before": "evicted", "detail": "set-cookie",
        "stored": true, "not_stored": "no-room", "status": 404, "type": "text/html", "bytes": 2048, "time": 1.75,
        "wait": 0.06, "origin": "app", "server": "10.0.0.7:8080", "attempts": 2, "reused": false, "queue": 0.003,
        "connect": 0.02, "first_byte": 1.6, "origin_time": 1.7, "origin_status": 404, "error": "reset",
        "trace": "4bf92f3577b34da6a3ce929d0e0e4736",
    });
    assert_eq!(json_of(&whole), expected);
    let keys: Vec<_> = SAMPLE_KEYS.iter().map(|key| key.name).collect();
    assert_eq!(expected.as_object().unwrap().len(), keys.len());
    assert!(keys.iter().all(|key| expected.get(key).is_some()));
    let mut written = Vec::new();
    whole.json(&mut written);
    let written = String::from_utf8(written).unwrap();
    let places: Vec<_> = keys.iter().map(|key| written.find(&format!("\"{key}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "another order than in the table: {written}");
    // These two are made of others.
    let made = ["cache", "url"];
    let fields = FILTER_FIELDS.iter().filter(|field| !made.contains(&field.name));
    fields.for_each(|field| assert!(keys.contains(&field.name), "{}", field.name));

    let empty = world.sample(bare(), &SampleTexts::default());
    let expected = json!({
        "at": 0.0, "weight": 1, "client": "127.0.0.0/24", "scheme": "http", "protocol": "1.1", "result": "own",
        "stored": false, "status": 200, "bytes": 0, "time": 0.0,
    });
    assert_eq!(json_of(&empty), expected);
}

#[test]
fn a_rule_without_a_store_has_none() {
    let mut world = World::new();
    let rule = world.metrics.rule("shop", "assets", CacheId::default());
    let json = json_of(&world.sample(full(rule), &SampleTexts::default()));
    assert_eq!([&json["site"], &json["rule"]], ["shop", "assets"]);
    assert_eq!(json.get("store"), None);
}

fn keeping<'a>(names: impl IntoIterator<Item = &'a str>, clients: Clients) -> WatchSettings {
    WatchSettings { redact: Redact::new(names), clients, ..WatchSettings::default() }
}

#[test]
fn secrets_and_addresses_are_kept_as_the_settings_say() {
    for (names, clients, query, client) in [
        (vec!["x"], Clients::Full, "x=***&token=secret", json!("192.0.2.7")),
        (vec![], Clients::Off, "x=1&token=secret", Value::Null),
        (vec!["*"], Clients::Masked, "x=***&token=***", json!("192.0.2.0/24")),
    ] {
        let mut world = World::with(keeping(names, clients));
        let sample = world.sample(full(RuleId::default()), &full_texts());
        let json = json_of(&sample);
        assert_eq!(json["query"], query);
        assert_eq!(json.get("client").cloned().unwrap_or_default(), client);
        assert!(!format!("{sample:?}").contains("192.0.2.7") || clients == Clients::Full);
    }
}

#[test]
fn what_is_remembered_goes_when_less_may_be_kept() {
    let mut world = World::with(keeping([], Clients::Full));
    world.put_many("/?token=secret", 2);
    world.drain_after(Duration::ZERO);
    world.watch.configure(keeping([], Clients::Full));
    let shorter = WatchSettings { history: Duration::ZERO, memory_bytes: 0, ..keeping([], Clients::Full) };
    world.watch.configure(shorter);
    assert_eq!(world.watch.requests(None, 10).len(), 2);
    world.watch.configure(WatchSettings::default());
    assert!(world.watch.requests(None, 10).is_empty());
    world.put_many("/?token=secret", 1);
    world.drain_after(Duration::ZERO);
    assert_eq!(json_of(&world.watch.requests(None, 10)[0])["query"], "token=***");
}

proptest! {
    #[test]
    fn any_bytes_become_one_object_and_can_be_asked(
        texts in prop::array::uniform6(prop::collection::vec(any::<u8>(), 0..600)),
    ) {
        let mut world = World::new();
        let [method, host, target, user_agent, referer, content_type] = &texts;
        let put = SampleTexts { method, host, target, user_agent, referer, content_type };
        let sample = world.sample(bare(), &put);
        prop_assert!(sample.bytes() < size_of::<Sample>() + 8 * 1024);
        let json = json_of(&sample);
        let shown = |text: &[u8], bytes_max: usize| {
            let text = String::from_utf8_lossy(&text[..text.len().min(bytes_max)]).into_owned();
            if text.is_empty() { Value::Null } else { Value::String(text) }
        };
        prop_assert_eq!(json.get("method").cloned().unwrap_or_default(), shown(method, 32));
        prop_assert_eq!(json.get("host").cloned().unwrap_or_default(), shown(host, 255));
        prop_assert_eq!(json.get("ua").cloned().unwrap_or_default(), shown(user_agent, 256));
        for field in FILTER_FIELDS {
            let absent = Filter::parse(&format!("{}=1", field.name));
            if let Ok(absent) = absent {
                absent.matches(&*sample);
            }
        }
    }
}
