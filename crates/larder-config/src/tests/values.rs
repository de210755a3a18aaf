//! Stores with values in memcached: what is read, and what would mix up hosts or visitors.

use std::time::Duration;

use super::*;
use crate::{Memcached, Ring, ValueFormat};

/// One site for `example.com` that uses the store `values`.
const SITE: &str = "[origins.app]\nservers = \"http://127.0.0.1:3000\"\n[[site]]\nhosts = [\"example.com\"]\n\
                    origin = \"app\"\nstore = \"values\"\n";

fn config(memcached: &str, rest: &str) -> String {
    format!("[stores.values]\n{memcached}\n{SITE}{rest}")
}

fn read(memcached: &str) -> Memcached {
    let checked = good(&config(memcached, ""));
    assert_eq!(checked.warnings, []);
    checked.config.stores[0].1.memcached.clone().unwrap()
}

fn warned(text: &str) -> String {
    good(text).warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn servers_alone_have_every_default() {
    let short = read("memcached = [\"a\", \"127.0.0.1:5\"]");
    assert_eq!(
        short,
        read("memcached = { servers = [\"a:11211\", { server = \"127.0.0.1:5\", weight = 1 }] }")
    );
    assert_eq!(short.servers.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a:11211", "127.0.0.1:5"]);
    assert_eq!(
        (short.values.near, short.values.timeout),
        (Duration::from_secs(1), Duration::from_millis(200))
    );
    assert_eq!(
        (short.values.format, short.ring, short.values.write),
        (ValueFormat::Body, Ring::Ketama, false)
    );
    assert_eq!((short.values.default_type.as_str(), short.gzip_flag), ("application/octet-stream", 0));
    assert_eq!(read("memcached = \"unix:/run/m.sock\"").servers.len(), 1);
}

#[test]
fn every_key_of_the_table_is_read() {
    let full = read(
        "[stores.values.memcached]\nservers = [{ server = \"a\", weight = 3 }]\nkey = \"page:{host}{target}\"\nformat = \
         \"http\"\nnear = \"0s\"\ntimeout = \"50ms\"\ndefault_type = \"text/html; charset=utf-8\"\nwrite = true\nring = \
         \"nginx\"\ngzip_flag = 2\nzlib_flag = 8",
    );
    assert_eq!((full.servers[0].weight, full.values.format, full.ring), (3, ValueFormat::Http, Ring::Nginx));
    assert_eq!(
        (full.values.near, full.values.timeout, full.values.write),
        (Duration::ZERO, Duration::from_millis(50), true)
    );
    assert_eq!((full.gzip_flag, full.zlib_flag, full.values.key.has_host()), (2, 8, true));
    assert_eq!(full.values.default_type.as_str(), "text/html; charset=utf-8");
}

#[test]
fn every_error_in_the_table_has_its_place() {
    let check =
        |memcached: &str, said: &str| assert_eq!(printed(&config(memcached, "")), said, "{memcached}");
    check(
        "memcached = { servers = [], key = \"{uri}\", format = \"json\", timeout = \"1h\", ring = \"md5\", user = \"a\" }",
        "larder.toml:2:25: stores.values.memcached.servers: found an empty list, expected at least one\n\
         larder.toml:2:35: stores.values.memcached.key: found \"{uri}\", expected a key of values such as \"{target}\", \
         \"page:{host}{target}\", \"{path}:{cookie:lang}\"\n\
         larder.toml:2:53: stores.values.memcached.format: found \"json\", expected \"body\" or \"http\"\n\
         larder.toml:2:71: stores.values.memcached.timeout: found \"1h\", expected \"5ms\" to \"10s\"\n\
         larder.toml:2:84: stores.values.memcached.ring: found \"md5\", expected \"ketama\" or \"consistent\" or \"nginx\"\n\
         larder.toml:2:91: stores.values.memcached.user: unknown key \"user\"\n  hint: it belongs in a table \
         of a Redis",
    );
    let heavy = vec!["{ server = \"a\", weight = 256 }"; 17].join(", ");
    check(
        &format!("memcached = {{ servers = [{heavy}] }}"),
        "larder.toml:2:13: stores.values.memcached: found a table, expected at most 256 servers, whose weights are 4096 \
         together",
    );
    check(
        "memcached = []",
        "larder.toml:2:13: stores.values.memcached: found an empty list, expected at least one server",
    );
    check(
        "memcached = [\"a\"]\ndisks = [{ path = \"d1\", size = \"1GiB\" }]",
        "larder.toml:3:9: stores.values.disks: it has no meaning beside `memcached`\n  hint: a store has disks, or lies in \
         memcached: take two stores for both",
    );
    check(
        "memcached = [\"a\"]\nfiles = \"html\"",
        "larder.toml:2:13: stores.values.memcached: it has no meaning beside `files`\n  hint: a store keeps plain files, or \
         lies in memcached: take two stores for both",
    );
}

#[test]
fn hosts_that_share_values_have_keys_of_their_own_where_larder_writes() {
    let hint = "\n  hint: add {host}: what one host wrote would be given to visitors of another";
    let second = "[[site]]\nhosts = [\"example.org\"]\norigin = \"app\"\n[[site.rule]]\npath = \"/a\"\nstore = \"values\"\n";
    let shared = format!(
        "stores.values.memcached.key: several hosts share the values, and the key does not hold the host{hint}"
    );
    assert_eq!(warned(&config("memcached = [\"a\"]", second)), format!("larder.toml:2:13: {shared}"));
    let writing = |key: &str| format!("memcached = {{ servers = \"a\", key = \"{key}\", write = true }}");
    assert_eq!(printed(&config(&writing("{target}"), second)), format!("larder.toml:2:36: {shared}"));
    assert_eq!(warned(&config(&writing("{host}{target}"), second)), "");
    assert_eq!(warned(&config(&writing("{target}"), "")), "", "one exact host");
    let open = format!(
        "stores.values.memcached.key: larder writes here for every host that a client names, and the key does not hold the \
         host{hint}"
    );
    for site in [
        "[[site]]\norigin = \"app\"\nstore = \"values\"\n",
        "[[site]]\nhosts = [\"*.example.org\"]\norigin = \"app\"\nstore = \"values\"\n",
    ] {
        assert_eq!(
            printed(&config(&writing("{target}"), site)),
            format!("larder.toml:2:36: {open}"),
            "{site}"
        );
        assert_eq!(warned(&config(&writing("{host}{target}"), site)), "", "{site}");
    }
    let unused = "[[site]]\nhosts = [\"example.org\"]\norigin = \"app\"\n[[site.rule]]\npath = \"/a\"\ncache = \"off\"\nstore = \"values\"\n";
    assert_eq!(warned(&config("memcached = [\"a\"]", unused)), "");
}

#[test]
fn cookies_and_fields_of_both_keys_are_the_same_or_values_are_not_looked_up() {
    let hint =
        "  hint: the cookies and fields of `key` and those of the store's memcached.key have to be the same";
    let with_lang = "memcached = { servers = \"a\", key = \"{target}{cookie:lang}\" }";
    assert_eq!(
        warned(&config(with_lang, "")),
        format!(
            "larder.toml:8:9: site[0].store: values of the store \"values\" are not looked up here\n{hint}"
        )
    );
    assert_eq!(warned(&config(with_lang, "key = { cookies = [\"lang\"] }\n")), "");
    assert_eq!(
        warned(&config(
            "memcached = [\"a\"]",
            "[[site.rule]]\npath = \"/a\"\nkey = { fields = [\"Accept-Language\"] }\n"
        )),
        format!(
            "larder.toml:11:7: site[0].rule[0].key: values of the store \"values\" are not looked up here\n{hint}"
        )
    );
    let writes = "memcached = { servers = \"a\", key = \"{target}{cookie:lang}\", write = true }";
    assert_eq!(
        printed(&config(writes, "key = { cookies = [\"lang\"] }\n")),
        "larder.toml:2:36: stores.values.memcached.key: larder cannot write under a key with cookies or fields\n  hint: no \
         invalidation of a URL could name its values: leave them out, or let the application write alone"
    );
}
