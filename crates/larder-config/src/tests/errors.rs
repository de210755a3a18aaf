//! Bad configs and exactly what is printed about them.

use super::*;
use crate::HostName;

#[track_caller]
pub(super) fn check(text: &str, expected: &str) {
    assert_eq!(printed(text), expected.trim_matches('\n'), "for:\n{text}");
}

/// `lines` in a rule, which begins on line 6.
#[track_caller]
pub(super) fn check_rule(lines: &str, expected: &str) {
    check(&format!("{SITE}[[site.rule]]\n{lines}\n"), expected);
}

/// `lines` at the top, before a good site.
#[track_caller]
pub(super) fn check_top(lines: &str, expected: &str) {
    check(&format!("{lines}\n{SITE}"), expected);
}

#[test]
fn every_error_at_once_in_the_order_of_the_file() {
    check(
        r#"listen = ["127.0.0.1:8080", "8081"]
wrokers = 2
admin = "0.0.0.0:8082"
[origins.app]
servers = ["http://127.0.0.1:3000/app"]
[[site]]
orgin = "app"
[[site.rule]]
ttl = "5 parsecs"
path_regex = "("
[[site]]
origin = "ap"
[[site]]
hosts = ["a.example", "A.example"]
origin = "app"
key = { sort = "yes", query = "non" }
store = "disk"
"#,
        r#"
larder.toml:1:29: listen[1]: found "8081", expected an address to listen on such as "127.0.0.1:8080", "[::1]:8080", "*:80"
  hint: "127.0.0.1:8081" for this machine only, "0.0.0.0:8081" for every IPv4 address of it, "[::]:8081" for IPv4 and IPv6
larder.toml:2:1: wrokers: unknown key "wrokers"
  hint: did you mean "workers"?
larder.toml:3:9: admin: 0.0.0.0:8082 can be reached from other machines, and there is no token
  hint: set token in [admin], or listen on 127.0.0.1
larder.toml:5:12: origins.app.servers[0]: found "http://127.0.0.1:3000/app", expected a server such as "http://127.0.0.1:3000", "https://app.example", "unix:/run/app.sock"
  hint: a server has no path: targets are passed on as the client sent them
larder.toml:6:1: site[0].origin: missing key "origin"
  hint: name one of [origins.*], or give the site a `root`
larder.toml:7:1: site[0].orgin: unknown key "orgin"
  hint: did you mean "origin"?
larder.toml:9:7: site[0].rule[0].ttl: found "5 parsecs", expected a duration such as "10s", "500ms", "5m", "24h"
larder.toml:10:14: site[0].rule[0].path_regex: found "(", expected a regular expression such as '^/user/[0-9]+$', '\.(css|js)$'
  hint: unclosed group
larder.toml:11:1: site[1].hosts: site[0] (line 6) has every host already
  hint: at most one site leaves `hosts` out
larder.toml:12:10: site[1].origin: no origin is named "ap"
  hint: did you mean "app"?
larder.toml:14:23: site[2].hosts[1]: "a.example" belongs to site[2] (line 14)
  hint: a host belongs to one site
larder.toml:16:16: site[2].key.sort: found "yes", expected true or false
larder.toml:16:31: site[2].key.query: found "non", expected "all", "none", "no-tracking" or a list of parameters' names
  hint: did you mean "none"?
larder.toml:17:9: site[2].store: no store is named "disk"
  hint: declared are: default
"#,
    );
}

#[test]
fn syntax_errors_have_a_place_and_come_all_at_once() {
    check(
        "listen = \nadmin = \"127.0.0.1:1\"\nadmin = false\n",
        "larder.toml:1:10: not TOML: string values must be quoted, expected literal string\n\
         larder.toml:3:1: not TOML: duplicate key",
    );
    check("[a", "larder.toml:1:3: not TOML: unclosed table, expected `]`");
}

#[test]
fn an_empty_file_has_no_site() {
    check("", "larder.toml:1:1: site: missing key \"site\"");
    check("site = []", "larder.toml:1:8: site: found an empty list, expected at least one");
    check(
        "[site]\nroot = \"public\"",
        "larder.toml:1:1: site: found a table, expected a list of tables\n  hint: write [[site]]: there may be several",
    );
}

#[test]
fn addresses_do_not_overlap() {
    check_top(
        "listen = [\"127.0.0.1:80\", \"0.0.0.0:80\", \"[::1]:80\"]",
        "larder.toml:1:27: listen[1]: 0.0.0.0:80 is taken by 127.0.0.1:80 (line 1)",
    );
    check_top(
        "listen = \"127.0.0.1:8081\"",
        "larder.toml:1:10: admin: 127.0.0.1:8081 is taken by listen (127.0.0.1:8081)\n  \
         hint: give the admin interface an address of its own, or admin = false",
    );
    check_top("listen = []", "larder.toml:1:10: listen: found an empty list, expected at least one address");
    good(&format!("listen = [\"127.0.0.1:0\", \"127.0.0.1:0\"]\nadmin = false\n{SITE}"));
    good(&format!("admin = {{ address = \"[::]:8081\", token = \"0123456789abcdef\" }}\n{SITE}"));
}

#[test]
fn an_origin_has_servers_and_none_twice() {
    let site = "[[site]]\norigin = \"app\"";
    check(
        &format!("[origins.app]\nidle = \"1s\"\n{site}"),
        "larder.toml:1:1: origins.app.servers: missing key \"servers\"",
    );
    check(
        &format!("[origins.app]\nservers = []\n{site}"),
        "larder.toml:2:11: origins.app.servers: found an empty list, expected at least one",
    );
    check(
        &format!("[origins.app]\nservers = [\"http://a\", \"http://A:80/\"]\n{site}"),
        "larder.toml:2:24: origins.app.servers[1]: http://a:80 is there twice",
    );
}

#[test]
fn a_secret_is_never_quoted() {
    check_top(
        "admin = { token = \"hunter2\" }",
        "larder.toml:1:19: admin.token: found a text of 7 bytes, expected a secret such as the output of \
         `openssl rand -hex 24`\n  hint: 16 to 512 visible ASCII characters",
    );
    let config = good(&format!("admin.token = \"0123456789abcdef\"\n{SITE}")).config;
    assert!(!format!("{config:?}").contains("0123456789abcdef"));
}

#[test]
fn values_out_of_bounds_say_the_bounds() {
    check_top("workers = 0", "larder.toml:1:11: workers: found 0, expected 1 to 1024");
    check_top("workers = -1", &format!("larder.toml:1:11: workers: found -1, expected 0 to {}", usize::MAX));
    check_top(
        "workers = \"2\"",
        "larder.toml:1:11: workers: found \"2\", expected a whole number\n  hint: leave the quotes out",
    );
    check_top("drain = \"2h\"", "larder.toml:1:9: drain: found \"2h\", expected \"0s\" to \"1h\"");
    check_top(
        "drain = 30",
        "larder.toml:1:9: drain: found 30, expected a duration such as \"10s\", \"500ms\", \"5m\", \"24h\"\n  \
         hint: add a unit: \"30s\"",
    );
    check_top(
        "[stores.default]\nmemory = \"64M\"",
        "larder.toml:2:10: stores.default.memory: found \"64M\", expected a size such as \"512MiB\", \"64KiB\", \
         \"2GB\"\n  hint: did you mean \"64MiB\"?",
    );
    check_top(
        "[stores.default]\nmemory = 0",
        "larder.toml:2:10: stores.default.memory: found 0, expected \"1MiB\" to \"1024TiB\"",
    );
    check_top(
        "[stores.default]\nmemory = \"64MiB\"\nmax_object = \"65MiB\"",
        "larder.toml:3:14: stores.default.max_object: found \"65MiB\", expected at most memory, which is 64MiB",
    );
}

#[test]
fn unknown_keys_name_the_nearest_or_where_they_belong() {
    check_top(
        "[limits]\nheadsize = 1",
        "larder.toml:2:1: limits.headsize: unknown key \"headsize\"\n  hint: did you mean \"head_size\"?",
    );
    check_top(
        "root = \"public\"",
        "larder.toml:1:1: root: unknown key \"root\"\n  hint: it belongs in `[[site]]`",
    );
    check_top("\"a b\" = 1", "larder.toml:1:1: \"a b\": unknown key \"a b\"");
    check_top(
        "[log]\naccess = \"stdot\"",
        "larder.toml:2:10: log.access: found \"stdot\", expected \"off\", \"stdout\" or a path with a \"/\" such as \
         \"/var/log/larder/access.log\", \"./access.log\"\n  hint: did you mean \"stdout\"?",
    );
}

#[test]
fn what_is_named_on_this_machine_exists() {
    let beside = repository().join("examples").join("missing");
    check(
        "[[site]]\nroot = \"missing\"",
        &format!(
            "larder.toml:2:8: site[0].root: found \"missing\", expected a directory that exists\n  hint: there is no {}",
            beside.display()
        ),
    );
    assert!(printed("[[site]]\nroot = \"full.toml\"").contains("full.toml is something else"));
}

#[test]
fn matchers_that_can_never_match_are_refused() {
    let expected = r#"expected a path pattern such as "/", "/static/*", "*.png""#;
    for (path, hint) in [
        ("static/*", "paths begin with \"/\": write \"/\" or \"*\" first"),
        ("/a?b=c", "a path has no query: match parameters with `query`"),
        (
            "/%7Euser",
            "paths are compared with escapes of letters, digits and \"-._~\" decoded: write them plain",
        ),
        ("/a//b", "paths are compared without empty and dot segments: this would never match"),
    ] {
        check_rule(
            &format!("path = [\"/ok\", \"{path}\"]"),
            &format!(
                "larder.toml:6:16: site[0].rule[0].path[1]: found \"{path}\", {expected}\n  hint: {hint}"
            ),
        );
    }
    check_rule(
        "methods = \"get\"",
        "larder.toml:6:11: site[0].rule[0].methods: found \"get\", expected a method such as \"GET\", \"HEAD\", \
         \"POST\"\n  hint: methods are case-sensitive: did you mean \"GET\"?",
    );
    check_rule(
        "header = { Host = \"a\" }",
        "larder.toml:6:12: site[0].rule[0].header.Host: found \"Host\", expected a field's name such as \
         \"Accept-Language\", \"X-Device\"\n  hint: the host decides the site (`hosts`), and goes on as it came",
    );
    check_rule(
        "cookie = {}",
        "larder.toml:6:10: site[0].rule[0].cookie: found a table, expected something to match\n  hint: leave `cookie` \
         out to match any",
    );
    check_rule(
        "query = { page = 2 }",
        "larder.toml:6:18: site[0].rule[0].query.page: found 2, expected a value pattern such as \"dark\", \
         \"*Mobile*\", or true or false\n  hint: did you mean \"2\"?",
    );
}

#[test]
fn lifetimes_name_single_final_statuses() {
    check_rule(
        "ttl = { 200 = \"1s\", 206 = \"1s\", 4xx = \"1s\" }",
        "larder.toml:6:21: site[0].rule[0].ttl.206: found \"206\", expected a status such as 200, 301, 404\n  \
         hint: it is a part of another response, whose lifetime it has\n\
         larder.toml:6:33: site[0].rule[0].ttl.4xx: found \"4xx\", expected a status such as 200, 301, 404\n  \
         hint: statuses are named one by one",
    );
    check_rule(
        "ttl = 5",
        "larder.toml:6:7: site[0].rule[0].ttl: found 5, expected a duration such as \"10s\", \"500ms\", \"5m\", \
         \"24h\"\n  hint: add a unit: \"5s\"",
    );
}

#[test]
fn edits_never_touch_framing_the_connection_or_the_caches_own_fields() {
    for name in ["Connection", "TE", "Upgrade", "Keep-Alive", "Transfer-Encoding", "Content-Length", "Host"] {
        for edit in [format!("set = {{ {name} = \"x\" }}"), format!("remove = [\"{name}\"]")] {
            let errors = printed(&format!("{SITE}response = {{ {edit} }}\nrequest = {{ {edit} }}\n"));
            assert_eq!(
                errors.lines().filter(|line| line.contains("expected a field's name")).count(),
                2,
                "{errors}"
            );
        }
    }
    check_rule(
        "request = { set = { If-None-Match = \"x\" }, remove = [\"Range\"] }\nresponse = { remove = \"age\" }",
        "larder.toml:6:21: site[0].rule[0].request.set: the field \"if-none-match\" cannot be changed here\n  hint: \
         ranges and conditions are the cache's own: it would store what only one client asked for\n\
         larder.toml:6:54: site[0].rule[0].request.remove: the field \"range\" cannot be changed here\n  hint: \
         ranges and conditions are the cache's own: it would store what only one client asked for\n\
         larder.toml:7:23: site[0].rule[0].response.remove: the field \"age\" cannot be changed here\n  hint: other \
         caches and clients count on it: it goes on as it is",
    );
    for value in ["a\\r\\nSet-Cookie: x", "a\\u0000", " a", "a\\n"] {
        let errors = printed(&format!("{SITE}response = {{ set = {{ X = \"{value}\" }} }}\n"));
        assert!(errors.contains("expected a field's value"), "{value}: {errors}");
    }
    check_rule(
        "response.set = { X-A = \"1\", x-a = \"2\" }",
        "larder.toml:6:29: site[0].rule[0].response.set.x-a: \"x-a\" is already there, on line 6",
    );
}

#[test]
fn a_key_says_one_thing() {
    check_rule(
        "key = { query = [\"id\"], query_except = [\"x\"] }",
        "larder.toml:6:40: site[0].rule[0].key.query_except: it has no meaning beside this `query`\n  hint: `query` \
         names what belongs to the key already: leave one of them out",
    );
    check_rule(
        "key = { query = \"id\" }",
        "larder.toml:6:17: site[0].rule[0].key.query: found \"id\", expected \"all\", \"none\", \"no-tracking\" or a \
         list of parameters' names\n  hint: write a list for a single parameter: [\"id\"]",
    );
    check_rule(
        "key.fields = [\"Accept\", \"Cookie\"]",
        "larder.toml:6:25: site[0].rule[0].key.fields[1]: found \"Cookie\", expected a field that may be part of a \
         key\n  hint: name single cookies in `cookies`",
    );
}

#[test]
fn warnings_do_not_stop_anything() {
    let checked = good(
        r#"[origins.app]
servers = "http://127.0.0.1:3000"
[origins.old]
servers = "http://127.0.0.1:3001"
ca_file = "ca.pem"
[limits]
head_size = "4KiB"
[[site]]
origin = "app"
[[site.rule]]
path = "/*"
cache = "off"
ttl = "1s"
[[site.rule]]
path = "/never"
"#,
    );
    let warnings: Vec<_> = checked.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings.join("\n"),
        "larder.toml:3:10: origins.old: it is not used by any site\n\
         larder.toml:5:11: origins.old.ca_file: it is not used\n  hint: none of the servers is https\n\
         larder.toml:7:13: limits.field_size: field_size (16KiB) is never reached: head_size (4KiB) is less\n\
         larder.toml:7:13: limits.target_size: target_size (8KiB) is never reached: head_size (4KiB) is less\n\
         larder.toml:13:7: site[0].rule[0].ttl: it is not used\n  hint: `cache` is \"off\" here\n\
         larder.toml:14:1: site[0].rule[1]: this rule is never reached: rule[0] matches every request\n  hint: the \
         first rule that matches decides: put the general ones last"
    );
}

#[test]
fn a_changed_request_that_shares_its_key_is_warned_about() {
    let rule = "[[site.rule]]\nheader.X-Beta = true\ncookie.lang = \"de\"\nrequest.set.X-A = \"1\"\n";
    let warnings = |more: &str| good(&format!("{SITE}{rule}{more}")).warnings;
    assert_eq!(
        warnings("key.fields = \"Accept\"")[0].to_string(),
        "larder.toml:8:1: site[0].rule[0].request: it depends on the field \"x-beta\" and the cookie \"lang\", which \
         the key does not hold\n  hint: answers to changed and unchanged requests share one place: extend `key`"
    );
    assert_eq!(warnings("key = { fields = \"X-Beta\", cookies = \"lang\" }"), []);
    assert_eq!(warnings("key.fields = \"X-A\""), []);
    assert_eq!(warnings("cache = \"off\""), []);
}

#[test]
fn a_file_that_cannot_be_read_is_one_clear_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("larder.toml");
    let show = |path: &Path| crate::load(path).map_err(|errors| errors.to_string()).unwrap_err();
    assert_eq!(
        show(&path),
        format!("{}: cannot be read: No such file or directory (os error 2)", path.display())
    );
    std::fs::write(&path, b"admin = false\n# caf\xe9\n").unwrap();
    assert_eq!(show(&path), format!("{}:2:6: not UTF-8, which TOML has to be", path.display()));
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert_eq!(show(&path), format!("{}: larger than 1 MiB", path.display()));
}

#[test]
fn the_admin_address_is_a_table_or_an_address_or_false() {
    let admin = |text: &str| good(&format!("{text}\n{SITE}")).config.admin;
    let loopback = Some("127.0.0.1:8081".parse().unwrap());
    for (text, address) in [
        ("", loopback),
        ("admin = false", None),
        ("admin = \"127.0.0.1:8081\"", loopback),
        ("admin = {}", loopback),
        ("admin = { address = false }", None),
    ] {
        assert_eq!(admin(text).address, address, "{text}");
    }
    let full = admin(
        "[admin]\ntoken = \"0123456789abcdef\"\nview_token = \"fedcba9876543210\"\nhosts = \"Cache1.internal\"",
    );
    assert_eq!(full.address, loopback);
    assert_eq!(full.view_token.unwrap().expose(), "fedcba9876543210");
    assert_eq!(full.hosts.iter().map(HostName::as_str).collect::<Vec<_>>(), ["cache1.internal"]);
    check_top(
        "admin = 8081",
        "larder.toml:1:9: admin: found 8081, expected an address such as \"127.0.0.1:8080\", \"[::1]:8080\", \"0.0.0.0:80\"",
    );
    check_top(
        "[admin]\naddress = \"8081\"\nhosts = \"*.internal\"\ntokne = 1",
        "larder.toml:2:11: admin.address: found \"8081\", expected an address such as \"127.0.0.1:8080\", \"[::1]:8080\", \"0.0.0.0:80\"\n  \
         hint: \"127.0.0.1:8081\" for this machine only, \"0.0.0.0:8081\" for every IPv4 address of it, \"[::]:8081\" for IPv4 and IPv6\n\
         larder.toml:3:9: admin.hosts: found \"*.internal\", expected a host name such as \"cache1.internal\"\n  hint: each host is named by itself\n\
         larder.toml:4:1: admin.tokne: unknown key \"tokne\"\n  hint: did you mean \"token\"?",
    );
}

#[test]
fn a_key_that_has_moved_says_where_to() {
    check_top(
        "admin_token = \"0123456789abcdef\"",
        "larder.toml:1:1: admin_token: the key has moved\n  hint: write token in [admin]",
    );
}

#[test]
fn names_of_the_admin_address_need_a_token() {
    check_top(
        "admin.hosts = [\"cache1.internal\"]",
        "larder.toml:1:1: admin.address: there are hosts, for a site in front of the admin address, and there is no token\n  \
         hint: set token in [admin]: a site forwards requests of any client",
    );
    good(&format!("admin.hosts = [\"cache1.internal\"]\nadmin.token = \"0123456789abcdef\"\n{SITE}"));
}

#[test]
fn a_token_to_look_stands_beside_one_to_purge() {
    check_top(
        "admin.view_token = \"0123456789abcdef\"",
        "larder.toml:1:20: admin.view_token: it stands alone\n  hint: set token as well: it is what a client needs to purge",
    );
    check_top(
        "[admin]\ntoken = \"0123456789abcdef\"\nview_token = \"0123456789abcdef\"",
        "larder.toml:3:14: admin.view_token: it is the same as token\n  hint: take another secret, with which a client may only look",
    );
}

#[test]
fn off_loopback_the_admin_address_has_a_token_and_a_warning() {
    check_top(
        "[admin]\naddress = \"0.0.0.0:8082\"",
        "larder.toml:2:11: admin.address: 0.0.0.0:8082 can be reached from other machines, and there is no token\n  \
         hint: set token in [admin], or listen on 127.0.0.1",
    );
    let warnings = |address: &str| {
        let text = format!("[admin]\naddress = {address:?}\ntoken = \"0123456789abcdef\"\n{SITE}");
        good(&text).warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(warnings("127.0.0.1:8082"), [""; 0]);
    assert_eq!(warnings("[::ffff:127.0.0.1]:8082"), [""; 0]);
    assert_eq!(
        warnings("0.0.0.0:8082"),
        [
            "larder.toml:2:11: admin.address: 0.0.0.0:8082 can be reached from other machines, and tokens are sent to it in clear text\n  \
          hint: listen on 127.0.0.1 and reach it by `ssh -L 8082:127.0.0.1:8082 HOST`, or by a site of this larder behind TLS"
        ]
    );
}
