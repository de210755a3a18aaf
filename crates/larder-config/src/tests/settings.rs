//! How settings resolve, and what values come to mean.

use std::time::Duration;

use super::*;
use crate::{CacheMode, Cookies, QueryParts, Settings};

#[test]
fn each_setting_comes_from_the_rule_then_the_site_then_the_defaults() {
    let config = good(
        r#"[defaults]
cookies = "ignore"
ttl = "3s"
response = { set = { X-A = "1" } }
[origins.app]
servers = "http://127.0.0.1:3000"
[[site]]
origin = "app"
ttl = { 404 = "2s" }
response = { remove = "Server" }
[[site.rule]]
path = "/a"
cache = "off"
[[site.rule]]
path = "/b"
ttl = "1s"
"#,
    )
    .config;
    let site = &config.sites[0];
    let resolve = |rule: Option<usize>| {
        Settings::resolve(
            rule.map(|index| &site.rules[index].settings),
            &site.settings,
            &config.defaults.settings,
        )
    };
    let (none, off, own) = (resolve(None), resolve(Some(0)), resolve(Some(1)));
    assert_eq!((none.cache, off.cache, own.cache), (CacheMode::Auto, CacheMode::Off, CacheMode::Auto));
    assert_eq!(
        (none.ttl.any, none.ttl.by_status.as_slice()),
        (None, [(404, Duration::from_secs(2))].as_slice())
    );
    assert_eq!((own.ttl.any, own.ttl.by_status.len()), (Some(Duration::from_secs(1)), 0));
    assert_eq!(own.cookies, Cookies::Ignore);
    assert_eq!((none.response.set.len(), none.response.remove.len()), (0, 1), "tables are taken whole");
    assert_eq!(none.store.as_str(), "default");
    assert!(config.store(&none.store).is_some());
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = good(SITE).config;
    assert_eq!(config.drain, Duration::from_secs(30));
    assert_eq!(
        (config.limits.fields, config.limits.head_size.0, config.limits.body_size),
        (100, 32 << 10, None)
    );
    let origin = &config.origins[0].1;
    assert_eq!((origin.connect_timeout, origin.idle), (Duration::from_secs(3), Duration::from_secs(4)));
    assert_eq!(config.stores.len(), 1);
    assert!(config.trusted.is_empty() && config.workers.is_none() && !config.sites[0].websocket);
}

#[test]
fn the_parts_of_the_query_are_one_choice() {
    let parts = |key: &str| {
        good(&format!("{SITE}key = {{ {key} }}\n")).config.sites[0]
            .settings
            .key
            .clone()
            .unwrap()
            .query_parts()
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(parts("sort = true"), QueryParts::All);
    assert_eq!(parts("query = \"none\""), QueryParts::None);
    assert_eq!(parts("query = [\"id\", \"p_*\"]"), QueryParts::Only(names(&["id", "p_*"])));
    assert_eq!(parts("query_except = \"x\""), QueryParts::Except(names(&["x"])));
    let QueryParts::Except(dropped) = parts("query = \"no-tracking\", query_except = [\"x\"]") else {
        panic!()
    };
    assert!(["utm_*", "gclid", "fbclid", "x"].iter().all(|name| dropped.iter().any(|other| other == name)));
}
