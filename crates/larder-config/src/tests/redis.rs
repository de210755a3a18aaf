//! Stores with values in Redis: the settings that are read, and the errors for forms that larder does not have.

use std::time::Duration;

use super::*;
use crate::{RecordCoding, Redis, RedisPassword, RedisPlace, RedisServer, ValueFormat, ValueSettings};

/// One site for `example.com` that uses the store `values`.
const SITE: &str = "[origins.app]\nservers = \"http://127.0.0.1:3000\"\n[[site]]\nhosts = [\"example.com\"]\n\
                    origin = \"app\"\nstore = \"values\"\n";

/// A site that uses the default store.
const SITE_ALONE: &str = "[origins.app]\nservers = \"http://127.0.0.1:3000\"\n[[site]]\norigin = \"app\"\n";

fn config(redis: &str) -> String {
    format!("[stores.values]\n{redis}\n{SITE}")
}

fn read(redis: &str) -> Redis {
    let checked = good(&config(redis));
    assert_eq!(checked.warnings, []);
    checked.config.stores[0].1.redis.clone().unwrap()
}

fn read_values(redis: &str) -> (Redis, ValueSettings) {
    let read = read(redis);
    let values = read.values.clone().unwrap();
    (read, values)
}

#[test]
fn a_url_and_a_key_have_every_default() {
    let (short, values) = read_values("redis = { url = \"redis://cache\", key = \"{target}\" }");
    assert_eq!(short, read("redis = { url = \"valkey://cache:6379/0\", format = \"body\" }"));
    assert_eq!(short.server.place, RedisPlace::Tcp { host: "cache".into(), port: 6379 });
    assert_eq!((values.near, values.timeout), (Duration::from_secs(1), Duration::from_millis(200)));
    assert_eq!((values.format, values.write), (ValueFormat::Body, false));
    assert_eq!(values.default_type.as_str(), "application/octet-stream");
}

#[test]
fn every_key_of_the_table_is_read() {
    let (full, values) = read_values(
        "[stores.values.redis]\nurl = \"unix:///run/r.sock?db=2&user=larder&pass=s3cret\"\nkey = \"page:{host}{target}\"\n\
         format = \"http\"\nnear = \"0s\"\ntimeout = \"50ms\"\ndefault_type = \"text/html\"\nwrite = true",
    );
    assert_eq!(full.server.user.as_deref(), Some("larder"));
    assert_eq!(full.server.password, Some(RedisPassword::Text("s3cret".into())));
    assert_eq!(
        (full.server.place.clone(), full.server.database),
        (RedisPlace::Unix("/run/r.sock".into()), 2)
    );
    assert_eq!(
        (values.near, values.timeout, values.write),
        (Duration::ZERO, Duration::from_millis(50), true)
    );
    assert_eq!(full.timeout, values.timeout);
    assert_eq!((values.format, values.key.has_host()), (ValueFormat::Http, true));
    assert!(!format!("{full:?}").contains("s3cret"));
}

#[test]
fn a_url_alone_is_for_responses_that_larders_share() {
    let checked = good(&config("redis = \"redis://:s3cret@cache\""));
    let records = checked.config.stores[0].1.records().unwrap();
    assert_eq!((&records.values, records.timeout), (&None, Duration::from_millis(200)));
    assert_eq!(*records, read("redis = { url = \"redis://:s3cret@cache\" }"));
    // They are a fleet, whatever else is said of it.
    let (fleet, server) = checked.config.membership().unwrap();
    assert_eq!((fleet.lease, fleet.prefix.as_str()), (Some(Duration::from_secs(600)), "larder"));
    assert_eq!(server.to_string(), "redis://cache:6379/0");
    let named =
        good(&format!("[fleet]\nname = \"web-1\"\nlease = \"3s\"\n{}", config("redis = \"redis://cache\"")));
    let (fleet, _) = named.config.membership().unwrap();
    assert_eq!((fleet.lease, fleet.name.as_ref().unwrap().as_str()), (Some(Duration::from_secs(3)), "web-1"));
    let own =
        good(&format!("fleet = {{ redis = \"redis://log\" }}\n{}", config("redis = \"redis://cache\"")));
    assert_eq!(own.config.membership().unwrap().1.to_string(), "redis://log:6379/0");
    assert!(good(SITE_ALONE).config.membership().is_none());
}

#[test]
fn bodies_of_shared_responses_are_compressed_by_choice() {
    let compress = |said: &str| read(&format!("redis = {{ url = \"redis://cache\"{said} }}")).compress;
    assert_eq!((compress(""), compress(", compress = \"lz4\"")), (RecordCoding::None, RecordCoding::Lz4));
    let url = "url = \"redis://cache\"";
    for (said, told) in [
        ("compress = \"lz4\", key = \"{target}\"", "compress: it has no meaning with `key` or `format`"),
        ("compress = \"lz5\"", "did you mean \"lz4\"?"),
    ] {
        let printed = printed(&config(&format!("redis = {{ {url}, {said} }}")));
        assert!(printed.contains(told), "{printed}");
    }
}

#[test]
fn a_fleet_has_one_server() {
    assert_eq!(
        printed(&format!("[fleet]\nname = \"web-1\"\n{SITE_ALONE}")),
        "larder.toml:1:1: fleet: missing key \"redis\"\n  hint: no store shares its responses: say where the purges lie: fleet = { \
         redis = \"redis://HOST\" }"
    );
    let two = "[stores.values]\nredis = \"redis://a\"\n[stores.more]\nredis = \"redis://b\"\n";
    let told = printed(&format!("{two}{SITE}"));
    assert!(
        told.contains("stores.more.redis: the stores have 2 servers, and the fleet has one\n  hint: say where its purges lie: \
                       [fleet] redis, one of redis://a:6379/0, redis://b:6379/0"),
        "{told}"
    );
    good(&format!("fleet = {{ redis = \"redis://a\" }}\n{two}{SITE}"));
    let many: String = (0..9).map(|number| format!("[stores.s{number}]\nredis = \"redis://a\"\n")).collect();
    let told = printed(&format!("{many}{SITE_ALONE}"));
    assert!(told.contains("stores.s8.redis: there are 9 stores in Redis, and 8 at most"), "{told}");
}

#[test]
fn what_is_no_server_is_told_and_no_error_shows_a_password() {
    let without = "it has no meaning without `key` or `format`\n  hint: without `key` and `format` the store has responses that \
                   larders share; for values that an application writes, say how it names them: key = \"{target}\"";
    let url = "expected a URL of Redis such as \"redis://127.0.0.1:6379/0\", \"redis://:PASSWORD@cache.internal\", \
               \"unix:///run/redis/redis.sock?db=1\"";
    let one = "\n  hint: a URL names one server; where Sentinel watches over several: { sentinel = [\"s1:26379\", \"s2:26379\", \
               \"s3:26379\"], master = \"NAME\" }; for a cluster: { cluster = [\"n1:6379\", \"n2:6379\"] }";
    let check = |redis: &str, said: &str| {
        let told = printed(&config(redis));
        assert_eq!(told, said, "{redis}");
        assert!(!told.contains("s3cret"), "{told}");
    };
    check(
        "redis = { url = \"redis://:s3cret@cache\", near = \"0s\" }",
        &format!("larder.toml:2:49: stores.values.redis.near: {without}"),
    );
    check(
        "redis = \"http://:s3cret@cache\"",
        &format!(
            "larder.toml:2:9: stores.values.redis: found another text, {url}\n  hint: a URL begins with redis:// or unix://"
        ),
    );
    check(
        "redis = [\"redis://a\", \"redis://b\"]",
        &format!("larder.toml:2:9: stores.values.redis: found a list, expected a table{one}"),
    );
    let of_url = |text: &str| format!("redis = {{ key = \"{{target}}\", url = {text} }}");
    let at_url = "larder.toml:2:35: stores.values.redis.url: found";
    check(&of_url("[\"redis://a\", \"redis://b\"]"), &format!("{at_url} a list, {url}{one}"));
    check(&of_url("\"redis://:s3cret@a,b\""), &format!("{at_url} another text, {url}{one}"));
    check(&of_url("\"redis-sentinel://:s3cret@a\""), &format!("{at_url} another text, {url}{one}"));
    check(
        "redis = { key = \"{target}\" }",
        &format!("larder.toml:2:9: stores.values.redis.url: missing key \"url\"{one}"),
    );
}

#[test]
fn values_lie_in_one_place() {
    let redis = "redis = { url = \"redis://a\", key = \"{target}\" }";
    let check = |rest: &str, said: &str| assert_eq!(printed(&config(&format!("{redis}\n{rest}"))), said);
    check(
        "memcached = [\"a\"]",
        "larder.toml:2:9: stores.values.redis: it has no meaning beside `memcached`\n  hint: a store has a part in memcached, \
         or in Redis: take two stores for both",
    );
    check(
        "files = \"html\"",
        "larder.toml:2:9: stores.values.redis: it has no meaning beside `files`\n  hint: a store keeps plain files, or lies \
         in Redis: take two stores for both",
    );
    check(
        "disks = [{ path = \"d1\", size = \"1GiB\" }]",
        "larder.toml:3:9: stores.values.disks: it has no meaning beside `redis`\n  hint: a store has disks, or lies in \
         Redis: take two stores for both, or let larders with disks share their purges: [fleet] redis",
    );
}

#[test]
fn keys_have_to_tell_apart_what_the_cache_does_here_too() {
    let second = "[[site]]\nhosts = [\"example.org\"]\norigin = \"app\"\nstore = \"values\"\n";
    let shared =
        format!("{}{second}", config("redis = { url = \"redis://a\", key = \"{target}\", write = true }"));
    assert_eq!(
        printed(&shared),
        "larder.toml:2:36: stores.values.redis.key: several hosts share the values, and the key does not hold the host\n  \
         hint: add {host}: what one host wrote would be given to visitors of another"
    );
    let keyed = good(&config("redis = { url = \"redis://a\", key = \"{target}{cookie:lang}\" }"));
    let warned = keyed.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(warned.ends_with("those of the store's redis.key have to be the same"), "{warned}");
}

/// The errors of a table, without their places.
fn refused(redis: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for name in ["pw", "ca.pem", "c.pem", "c.key"] {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    let file = folder.path().join("larder.toml");
    std::fs::write(&file, config(redis)).unwrap();
    let told = crate::load(&file).err().map(|errors| errors.to_string()).unwrap_or_default();
    let lines = told.lines().filter_map(|line| line.split_once("stores.values.redis."));
    lines.map(|(_, said)| said.to_owned()).collect()
}

fn server(redis: &str) -> RedisServer {
    let folder = tempfile::tempdir().unwrap();
    for name in ["pw", "spw", "ca.pem", "c.pem", "c.key"] {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    let file = folder.path().join("larder.toml");
    std::fs::write(&file, config(redis)).unwrap();
    let checked = crate::load(&file).unwrap_or_else(|errors| panic!("{errors}"));
    checked.config.stores[0].1.redis.clone().unwrap().server
}

#[test]
fn a_server_has_tls_a_user_and_a_password_in_a_file() {
    let read = server(
        "redis = { url = \"rediss://cache/2\", user = \"larder\", password_file = \"pw\", ca_file = \"ca.pem\", \
         client_cert = \"c.pem\", client_key = \"c.key\", server_name = \"cache.internal\" }",
    );
    assert_eq!((read.to_string().as_str(), read.user.as_deref()), ("rediss://cache:6379/2", Some("larder")));
    assert!(matches!(&read.password, Some(RedisPassword::File(path)) if path.ends_with("pw")));
    let tls = read.tls.unwrap();
    assert!(tls.ca_file.is_some() && tls.client.is_some());
    assert_eq!(tls.server_name.as_deref(), Some("cache.internal"));
    assert!(server("redis = \"redis://cache\"").tls.is_none());
}

#[test]
fn sentinels_are_named_with_their_master() {
    let read = server(
        "redis = { sentinel = [\"S1\", \"[::1]:7\"], master = \"main\", tls = true, database = 3, password_file = \"pw\", \
         sentinel_user = \"asks\", sentinel_password_file = \"spw\" }",
    );
    assert_eq!(read.to_string(), "rediss, master main of the Sentinels s1:26379, [::1]:7, database 3");
    assert_eq!((read.named(), read.tls.is_some()), (2, true));
    let read = server(
        "redis = { cluster = [\"n1\", \"n2:7\"], tls = true, user = \"larder\", password_file = \"pw\" }",
    );
    assert_eq!(read.to_string(), "rediss, the cluster of n1:6379, n2:7");
    assert_eq!(read.user.as_deref(), Some("larder"));
    // The same is said to a fleet, and to versions.
    let sentinel = "{ sentinel = \"s1\", master = \"main\" }";
    let checked = good(&format!("fleet = {{ redis = {sentinel} }}\n{SITE_ALONE}"));
    assert_eq!(checked.config.membership().unwrap().1.named(), 1);
}

#[test]
fn keys_of_a_server_that_contradict_each_other_are_refused() {
    let check = |redis: &str, said: &[&str]| {
        let refused = refused(redis);
        assert_eq!(refused.len(), said.len(), "{redis}: {refused:?}");
        for (line, said) in refused.iter().zip(said) {
            assert!(line.starts_with(said), "{redis}: {line}");
        }
    };
    let url = "url = \"redis://cache\"";
    check(&format!("redis = {{ {url}, sentinel = \"s\" }}"), &["sentinel: it has no meaning beside `url`"]);
    check("redis = { sentinel = \"s\" }", &["sentinel: there is no `master` beside it"]);
    check("redis = { sentinel = [], master = \"m\" }", &["sentinel: found 0, expected 1 to 31"]);
    check("redis = { cluster = \"n1\", database = 1 }", &["database: it has no meaning without `sentinel`"]);
    check(&format!("redis = {{ {url}, cluster = \"n1\" }}"), &["cluster: it has no meaning beside `url`"]);
    check("redis = { cluster = [] }", &["cluster: found 0, expected 1 to 31"]);
    check(&format!("redis = {{ {url}, master = \"m\" }}"), &["master: it has no meaning without `sentinel`"]);
    check(&format!("redis = {{ {url}, tls = true }}"), &["tls: it has no meaning beside `url`"]);
    check(&format!("redis = {{ {url}, database = 1 }}"), &["database: it has no meaning without `sentinel`"]);
    check(
        "redis = { url = \"redis://u:p@cache\", user = \"x\", password_file = \"pw\" }",
        &["user: the URL has a user as well", "password_file: the URL has a password as well"],
    );
    check(&format!("redis = {{ {url}, user = \"x\" }}"), &["user: there is no `password_file` beside it"]);
    check(&format!("redis = {{ {url}, ca_file = \"ca.pem\" }}"), &["ca_file: it is not used"]);
    check(
        "redis = { url = \"rediss://cache\", client_cert = \"c.pem\" }",
        &["client_cert: there is no client_key beside it"],
    );
    check(&format!("redis = {{ {url}, password_file = \"none\" }}"), &["password_file: "]);
}
