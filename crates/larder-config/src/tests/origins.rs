//! What is said about origins: what it comes to mean, what is refused, what is warned about.

use std::net::SocketAddr;
use std::time::Duration;

use super::*;
use crate::{Balance, HashBy, Origin, Protocol, RetryOn};

/// A config whose origin says `lines`, which begin on line 2, and is used by a site.
fn with_origin(lines: &str) -> String {
    format!("[origins.app]\n{lines}\n[[site]]\norigin = \"app\"\n")
}

fn origin(lines: &str) -> Origin {
    good(&with_origin(lines)).config.origins.remove(0).1
}

#[track_caller]
fn check(lines: &str, expected: &str) {
    assert_eq!(printed(&with_origin(lines)), expected, "for:\n{lines}");
}

/// What is warned about, one line each, hints behind.
#[track_caller]
fn check_warnings(lines: &str, expected: &[&str]) {
    let warnings = good(&with_origin(lines)).warnings;
    let warnings: Vec<_> =
        warnings.iter().map(|warning| warning.to_string().replace("\n  hint: ", " | ")).collect();
    assert_eq!(warnings, expected, "for:\n{lines}");
}

#[test]
fn an_origin_that_names_its_servers_alone_has_the_defaults() {
    let app = origin("servers = \"http://127.0.0.1:3000\"");
    let server = &app.servers[0];
    assert_eq!(
        (server.to_string().as_str(), server.weight, server.backup),
        ("http://127.0.0.1:3000", 1, false)
    );
    assert_eq!(
        (app.balance, app.protocol, app.proxy_protocol),
        (Balance::RoundRobin, Protocol::Http1, false)
    );
    assert_eq!((app.chosen_by(), &app.sticky), (None, &None));
    assert_eq!((app.total_timeout, app.max_connections), (None, 8192));
    assert_eq!((app.max_in_flight, app.queue, app.queue_timeout), (None, 1000, Duration::from_secs(5)));
    assert_eq!((&app.retry, &app.health), (&None, &None));
    let ejection = &app.ejection;
    assert_eq!(
        (ejection.failures, ejection.time, ejection.max_time),
        (5, Duration::from_secs(1), Duration::from_secs(30))
    );
    assert_eq!(app.slow_start, Duration::ZERO);
    assert_eq!((app.resolve_every, app.name_servers.len()), (Duration::from_secs(30), 0));
    assert_eq!((&app.client_cert, &app.client_key, &app.server_name), (&None, &None, &None));
}

#[test]
fn every_word_about_an_origin_comes_to_mean_something() {
    let app = origin(
        r#"servers = ["http://a", { url = "https://b:8443", weight = 3 }, { url = "http+srv://_app._tcp.c", backup = true }]
balance = "hash"
hash_by = "query:id"
sticky = "server"
total_timeout = "2m"
max_connections = 100
max_in_flight = 10
queue = 20
queue_timeout = "500ms"
retry = { servers = 2, on = ["timeout", "502", 503], budget = "10%" }
ejection = { failures = 0 }
slow_start = "30s"
health = { path = "/up?x=1", host = "App.example:81", status = ["200-299", 404], every = "1s", timeout = "100ms", healthy = 1, unhealthy = 9 }
resolve_every = "10s"
name_servers = ["127.0.0.1", "[::1]:5353"]
protocol = "auto"
ca_file = "ca.pem"
client_cert = "client.pem"
client_key = "client.key"
server_name = "B.example""#,
    );
    let servers: Vec<_> =
        app.servers.iter().map(|entry| (entry.to_string(), entry.weight, entry.backup)).collect();
    let expected =
        [("http://a:80", 1, false), ("https://b:8443", 3, false), ("http+srv://_app._tcp.c", 1, true)];
    assert_eq!(servers, expected.map(|(url, weight, backup)| (url.to_owned(), weight, backup)));
    assert_eq!(app.chosen_by().map(|part| part.to_string()), Some("query:id".to_owned()));
    assert_eq!(app.sticky.as_ref().map(|name| name.as_str()), Some("server"));
    assert_eq!((app.total_timeout, app.max_connections), (Some(Duration::from_secs(120)), 100));
    assert_eq!((app.max_in_flight, app.queue, app.queue_timeout), (Some(10), 20, Duration::from_millis(500)));
    let retry = app.retry.unwrap();
    assert_eq!((retry.servers, retry.budget.hundredths()), (2, 10));
    assert_eq!(retry.on, [RetryOn::Timeout, RetryOn::Status(502), RetryOn::Status(503)]);
    assert_eq!((app.ejection.failures, app.slow_start), (0, Duration::from_secs(30)));
    let health = app.health.unwrap();
    assert_eq!((health.path.0.as_str(), health.host.unwrap().0.as_str()), ("/up?x=1", "app.example:81"));
    assert_eq!(health.status.iter().map(|range| range.range()).collect::<Vec<_>>(), [200..=299, 404..=404]);
    assert_eq!((health.every, health.timeout), (Duration::from_secs(1), Duration::from_millis(100)));
    assert_eq!((health.healthy, health.unhealthy), (1, 9));
    let name_servers: Vec<_> = app.name_servers.iter().map(|server| server.0).collect();
    assert_eq!(name_servers, ["127.0.0.1:53", "[::1]:5353"].map(|text| text.parse::<SocketAddr>().unwrap()));
    assert_eq!((app.protocol, app.resolve_every), (Protocol::Auto, Duration::from_secs(10)));
    assert!(app.ca_file.is_some() && app.client_cert.is_some() && app.client_key.is_some());
    assert_eq!(app.server_name.as_ref().map(|name| name.as_str()), Some("b.example"));
}

#[test]
fn a_hash_is_by_the_url_unless_it_is_said() {
    assert_eq!(origin("servers = \"http://a\"\nbalance = \"hash\"").chosen_by(), Some(HashBy::Url));
}

#[test]
fn servers_are_written_as_addresses_tables_or_headers() {
    let text = "[[origins.app.servers]]\nurl = \"http://a\"\n[[origins.app.servers]]\nurl = \"http://b\"\nweight = 2\n\
                [[site]]\norigin = \"app\"\n";
    let origins = good(text).config.origins;
    assert_eq!(origins[0].1.servers.iter().map(|entry| entry.weight).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(origin("servers = { url = \"http://a\", weight = 7 }").servers[0].weight, 7);
}

#[test]
fn a_bad_server_has_its_place() {
    check(
        "servers = [{ url = \"http://a/b\" }, { weight = 1001 }, { url = \"http://c\", weigth = 2 }, 3]",
        "larder.toml:2:20: origins.app.servers[0].url: found \"http://a/b\", expected a server such as \
         \"http://127.0.0.1:3000\", \"https://app.example\", \"unix:/run/app.sock\"\n  hint: a server has no path: targets \
         are passed on as the client sent them\n\
         larder.toml:2:36: origins.app.servers[1].url: missing key \"url\"\n\
         larder.toml:2:47: origins.app.servers[1].weight: found 1001, expected 1 to 1000\n\
         larder.toml:2:75: origins.app.servers[2].weigth: unknown key \"weigth\"\n  hint: did you mean \"weight\"?\n\
         larder.toml:2:89: origins.app.servers[3]: found 3, expected a server such as \"http://127.0.0.1:3000\", \
         \"https://app.example\", \"unix:/run/app.sock\"",
    );
}

#[test]
fn no_server_is_there_twice_however_it_is_written() {
    check(
        "servers = [\"http://a\", { url = \"http://A:80/\", weight = 2 }]",
        "larder.toml:2:24: origins.app.servers[1]: http://a:80 is there twice",
    );
}

#[test]
fn backups_stand_in_for_others() {
    check(
        "servers = [{ url = \"http://a\", backup = true }, { url = \"http://b\", backup = true }]",
        "larder.toml:2:12: origins.app.servers: every server is a backup\n  hint: a backup stands in for servers that \
         are none: leave `backup` out",
    );
}

#[test]
fn a_certificate_goes_with_its_key() {
    check(
        "servers = \"https://a\"\nclient_cert = \"client.pem\"",
        "larder.toml:3:15: origins.app.client_cert: there is no client_key beside it\n  hint: a certificate is shown \
         with its key",
    );
    check(
        "servers = \"https://a\"\nclient_key = \"client.key\"",
        "larder.toml:3:14: origins.app.client_key: there is no client_cert beside it\n  hint: a certificate is shown \
         with its key",
    );
}

#[test]
fn a_shared_connection_names_no_client() {
    for protocol in ["h2", "auto"] {
        check(
            &format!("servers = \"http://a\"\nproxy_protocol = true\nprotocol = \"{protocol}\""),
            "larder.toml:3:18: origins.app.proxy_protocol: connections of HTTP/2 are shared by clients, and PROXY names one \
             client\n  hint: with `proxy_protocol`, leave `protocol` at \"http/1.1\"",
        );
    }
    origin("servers = \"http://a\"\nproxy_protocol = false\nprotocol = \"h2\"");
    origin("servers = \"http://a\"\nproxy_protocol = true\nprotocol = \"http/1.1\"");
}

#[test]
fn values_of_an_origin_say_what_they_could_be() {
    check(
        "servers = \"http://a\"\nbalance = \"least_requests\"\nhash_by = \"headers:X\"\nprotocol = \"http2\"\n\
         name_servers = \"localhost\"\nserver_name = \"a:443\"\nmax_in_flight = 0",
        "larder.toml:3:11: origins.app.balance: found \"least_requests\", expected \"round-robin\" or \"least-requests\" or \
         \"hash\"\n  hint: did you mean \"least-requests\"?\n\
         larder.toml:4:11: origins.app.hash_by: found \"headers:X\", expected a part of the request such as \"url\", \"path\", \
         \"host\", \"client\", \"header:X-Tenant\", \"cookie:cart\", \"query:id\"\n  hint: did you mean \"header:X\"?\n\
         larder.toml:5:12: origins.app.protocol: found \"http2\", expected \"http/1.1\" or \"h2\" or \"auto\"\n\
         larder.toml:6:16: origins.app.name_servers: found \"localhost\", expected a name server's address such as \
         \"127.0.0.1:53\", \"192.0.2.1\", \"[::1]:5353\"\n  hint: did you mean \"127.0.0.1\"?\n\
         larder.toml:7:15: origins.app.server_name: found \"a:443\", expected a name in a certificate such as \
         \"app.example\", \"192.0.2.7\"\n  hint: a name is written without its port\n\
         larder.toml:8:17: origins.app.max_in_flight: found 0, expected 1 to 100000",
    );
}

#[test]
fn retries_have_reasons_and_a_budget() {
    check(
        "servers = [\"http://a\", \"http://b\"]\nretry = { servers = 11, on = [\"eror\", 404, \"5xx\"], budget = 20 }",
        "larder.toml:3:21: origins.app.retry.servers: found 11, expected 1 to 10\n\
         larder.toml:3:31: origins.app.retry.on[0]: found \"eror\", expected a reason to retry such as \"error\", \
         \"timeout\", \"503\"\n  hint: did you mean \"error\"?\n\
         larder.toml:3:39: origins.app.retry.on[1]: found 404, expected a reason to retry such as \"error\", \"timeout\", \
         \"503\"\n  hint: 500 to 599: any other status is an answer\n\
         larder.toml:3:44: origins.app.retry.on[2]: found \"5xx\", expected a reason to retry such as \"error\", \
         \"timeout\", \"503\"\n  hint: statuses are named one by one\n\
         larder.toml:3:61: origins.app.retry.budget: found 20, expected a percentage such as \"10%\", \"0%\"\n  hint: did \
         you mean \"20%\"?",
    );
    check(
        "servers = [\"http://a\", \"http://b\"]\nretry = { on = [], budget = \"0%\" }",
        "larder.toml:3:16: origins.app.retry.on: found an empty list, expected at least one reason\n  hint: leave `retry` \
         out to try no other server\n\
         larder.toml:3:29: origins.app.retry.budget: found \"0%\", expected \"1%\" to \"100%\"",
    );
}

#[test]
fn the_time_of_an_ejection_grows() {
    check(
        "servers = \"http://a\"\nejection = { time = \"1m\" }",
        "larder.toml:3:21: origins.app.ejection.time: time (1m) is longer than max_time (30s)",
    );
    check(
        "servers = \"http://a\"\nejection = { max_time = \"500ms\" }",
        "larder.toml:3:25: origins.app.ejection.max_time: time (1s) is longer than max_time (500ms)",
    );
    origin("servers = \"http://a\"\nejection = { time = \"1m\", max_time = \"1m\" }");
    check_warnings(
        "servers = \"http://a\"\nejection = { failures = 0, time = \"1m\", max_time = \"2s\" }",
        &[
            "larder.toml:3:35: origins.app.ejection.time: it is not used | `failures` is 0: no server is left alone",
            "larder.toml:3:52: origins.app.ejection.max_time: it is not used | `failures` is 0: no server is left alone",
        ],
    );
}

#[test]
fn a_health_check_asks_for_something_that_can_be_answered() {
    check(
        "servers = \"http://a\"\nhealth = { every = \"1s\" }",
        "larder.toml:3:10: origins.app.health.path: missing key \"path\"",
    );
    check(
        "servers = \"http://a\"\nhealth = { path = \"http://a/up\", host = \"http://a\", status = [\"2xx\", 99], healthy = 0 }",
        "larder.toml:3:19: origins.app.health.path: found \"http://a/up\", expected a path to ask for such as \"/healthz\", \
         \"/status?deep=1\"\n  hint: a path alone, each server is asked for it: \"/up\"\n\
         larder.toml:3:41: origins.app.health.host: found \"http://a\", expected a host to ask for such as \"app.example\", \
         \"app.example:8080\"\n  hint: a host is written without a scheme\n\
         larder.toml:3:63: origins.app.health.status[0]: found \"2xx\", expected a status or a range of them such as \
         \"200-399\", \"204\"\n  hint: did you mean \"200-299\"?\n\
         larder.toml:3:70: origins.app.health.status[1]: found 99, expected a status or a range of them such as \
         \"200-399\", \"204\"\n\
         larder.toml:3:85: origins.app.health.healthy: found 0, expected 1 to 100",
    );
    check(
        "servers = \"http://a\"\nhealth = { path = \"/up\", status = [] }",
        "larder.toml:3:35: origins.app.health.status: found an empty list, expected at least one status",
    );
}

#[test]
fn what_is_not_used_is_warned_about() {
    check_warnings(
        "servers = [\"http://127.0.0.1:1\", \"unix:/run/a\"]\nhash_by = \"path\"\nqueue = 5\nqueue_timeout = \"1s\"\n\
         resolve_every = \"5s\"\nname_servers = \"127.0.0.1\"\nserver_name = \"a\"\nclient_cert = \"client.pem\"\n\
         client_key = \"client.key\"",
        &[
            "larder.toml:3:11: origins.app.hash_by: it is not used | `balance` is not \"hash\" here",
            "larder.toml:4:9: origins.app.queue: it is not used | without `max_in_flight` nobody waits",
            "larder.toml:5:17: origins.app.queue_timeout: it is not used | without `max_in_flight` nobody waits",
            "larder.toml:6:17: origins.app.resolve_every: it is not used | none of the servers has a name to look up",
            "larder.toml:7:16: origins.app.name_servers: it is not used | none of the servers has a name to look up",
            "larder.toml:8:15: origins.app.server_name: it is not used | none of the servers is https",
            "larder.toml:9:15: origins.app.client_cert: it is not used | none of the servers is https",
            "larder.toml:10:14: origins.app.client_key: it is not used | none of the servers is https",
        ],
    );
    check_warnings(
        "servers = \"http://127.0.0.1:1\"\nretry = {}",
        &["larder.toml:3:9: origins.app.retry: it is not used | there is no other server"],
    );
    // A name may stand for several servers.
    for servers in [
        "\"http://localhost\"",
        "\"https+srv://_a._tcp.b\"",
        "[\"http://127.0.0.1:1\", \"http://127.0.0.1:2\"]",
    ] {
        check_warnings(&format!("servers = {servers}\nretry = {{}}"), &[]);
    }
    check_warnings(
        "servers = \"https+srv://_a._tcp.b\"\nserver_name = \"a\"\nmax_in_flight = 1\nqueue = 0",
        &[],
    );
}
