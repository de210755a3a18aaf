//! From `[origins.NAME]` to what the origin side and the proxy are told of it.
//!
//! In: an origin of a checked config. Out: settings, and a digest of the files that they name, by which a reload finds out
//! that a certificate was renewed in place.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use larder_origin::{
    Balance, Ejection, HealthCheck, InFlightLimit, OriginSettings, Protocol, ResolveSettings, Retry,
    SentHost, ServerAddress, ServerSettings, Timeouts,
};
use larder_proxy::settings::HashBy;
use larder_tls::{ClientCertificate, TlsSettings};

/// The settings of the origin called `name`.
pub(super) fn settings(name: &str, origin: &larder_config::Origin) -> OriginSettings {
    OriginSettings {
        servers: origin.servers.iter().map(server).collect(),
        balance: match origin.balance {
            larder_config::Balance::RoundRobin => Balance::RoundRobin,
            larder_config::Balance::LeastRequests => Balance::LeastRequests,
            larder_config::Balance::Hash => Balance::Hash,
        },
        timeouts: Timeouts {
            connect: origin.connect_timeout,
            first_byte: origin.first_byte_timeout,
            between_bytes: origin.between_bytes_timeout,
            total: origin.total_timeout,
            ..Timeouts::default()
        },
        idle: origin.idle,
        max_idle: origin.max_idle,
        max_connections: origin.max_connections,
        tls: tls(origin),
        host: match &origin.host {
            larder_config::SentHost::Client => SentHost::Client,
            larder_config::SentHost::Upstream => SentHost::Upstream,
            larder_config::SentHost::Name(name) => SentHost::Name(name.clone()),
        },
        protocol: match origin.protocol {
            larder_config::Protocol::Http1 => Protocol::Http1,
            larder_config::Protocol::Http2 => Protocol::Http2,
            larder_config::Protocol::Auto => Protocol::Auto,
        },
        proxy_protocol: origin.proxy_protocol,
        in_flight: InFlightLimit {
            max: origin.max_in_flight,
            queue: origin.queue,
            queue_timeout: origin.queue_timeout,
        },
        retry: origin.retry.as_ref().map(retry),
        ejection: Ejection {
            failures: origin.ejection.failures,
            time: origin.ejection.time,
            time_max: origin.ejection.max_time,
        },
        slow_start: origin.slow_start,
        health: origin.health.as_ref().map(health),
        resolve: ResolveSettings {
            every: origin.resolve_every,
            name_servers: origin.name_servers.iter().map(|server| server.0).collect(),
        },
        ..OriginSettings::new(name, Vec::new())
    }
}

fn server(entry: &larder_config::ServerEntry) -> ServerSettings {
    use larder_http::message::Scheme;
    let address = match &entry.server {
        larder_config::Server::Tcp { scheme: Scheme::Http, host, port } => {
            ServerAddress::Http { host: host.clone(), port: *port }
        }
        larder_config::Server::Tcp { scheme: Scheme::Https, host, port } => {
            ServerAddress::Https { host: host.clone(), port: *port }
        }
        larder_config::Server::Unix(path) => ServerAddress::Unix(path.clone()),
        larder_config::Server::Srv { scheme, name } => {
            ServerAddress::Srv { tls: *scheme == Scheme::Https, name: name.clone() }
        }
    };
    ServerSettings { address, weight: entry.weight, backup: entry.backup }
}

pub(super) fn tls(origin: &larder_config::Origin) -> TlsSettings {
    // A checked config has both or none.
    let client = origin.client_cert.as_ref().zip(origin.client_key.as_ref());
    TlsSettings {
        ca_file: origin.ca_file.as_ref().map(|file| file.0.clone()),
        client: client.map(|(cert, key)| ClientCertificate { cert: cert.0.clone(), key: key.0.clone() }),
        server_name: origin.server_name.as_ref().map(|name| name.as_str().to_owned()),
        ..TlsSettings::default()
    }
}

/// Changes when the content of a file changes. Whether it can be read and what is in it the origin will say; here a
/// file that cannot be read only differs from one that can.
pub(super) fn digest_of_files(tls: &TlsSettings) -> u64 {
    let client = tls.client.as_ref();
    let paths = [tls.ca_file.as_ref(), client.map(|client| &client.cert), client.map(|client| &client.key)];
    let mut digest = DefaultHasher::new();
    for path in paths.into_iter().flatten() {
        std::fs::read(path).ok().hash(&mut digest);
    }
    digest.finish()
}

fn retry(retry: &larder_config::Retry) -> Retry {
    use larder_config::RetryOn;
    let status = |on: &RetryOn| match on {
        RetryOn::Status(status) => Some(*status),
        RetryOn::Error | RetryOn::Timeout => None,
    };
    Retry {
        servers: retry.servers,
        on_error: retry.on.contains(&RetryOn::Error),
        on_timeout: retry.on.contains(&RetryOn::Timeout),
        statuses: retry.on.iter().filter_map(status).collect(),
        budget_percent: retry.budget.hundredths(),
    }
}

fn health(health: &larder_config::Health) -> HealthCheck {
    HealthCheck {
        path: health.path.0.clone(),
        host: health.host.as_ref().map(|host| host.0.clone()),
        statuses: health.status.iter().map(larder_config::StatusRange::range).collect(),
        every: health.every,
        timeout: health.timeout,
        healthy: health.healthy,
        unhealthy: health.unhealthy,
    }
}

pub(super) fn hash_by(part: larder_config::HashBy) -> HashBy {
    match part {
        larder_config::HashBy::Url => HashBy::Url,
        larder_config::HashBy::Path => HashBy::Path,
        larder_config::HashBy::Host => HashBy::Host,
        larder_config::HashBy::Client => HashBy::Client,
        larder_config::HashBy::Field(name) => HashBy::Field(name),
        larder_config::HashBy::Cookie(name) => HashBy::Cookie(name.as_str().to_owned()),
        larder_config::HashBy::Query(name) => HashBy::Query(name.as_str().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;
    use std::time::Duration;

    use super::*;

    /// The settings of an origin that says `lines`.
    fn origin_of(lines: &str) -> OriginSettings {
        let text = format!("[origins.a]\n{lines}\n[[site]]\norigin = \"a\"\n");
        let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
        let config = larder_config::parse(&text, "larder.toml", examples).unwrap().config;
        settings("a", &config.origins[0].1)
    }

    #[test]
    fn an_origin_that_says_nothing_has_the_origin_s_own_defaults() {
        let address = ServerAddress::Http { host: "127.0.0.1".to_owned(), port: 1 };
        let expected = OriginSettings::new("a", vec![address]);
        assert_eq!(format!("{:?}", origin_of("servers = \"http://127.0.0.1:1\"")), format!("{expected:?}"));
        // Tables that are empty are all defaults.
        let said = origin_of("servers = \"http://b\"\nretry = {}\nhealth = { path = \"/up\" }");
        let path = larder_http::target::Target::parse("/up".into()).unwrap();
        assert_eq!(said.retry, Some(Retry::default()));
        assert_eq!(format!("{:?}", said.health), format!("{:?}", Some(HealthCheck::new(path))));
    }

    #[test]
    fn every_word_about_an_origin_reaches_it() {
        let said = origin_of(
            r#"
servers = ["http://b:81", { url = "https://c", weight = 2 }, { url = "unix:/run/d", backup = true }, "http+srv://_e._tcp.f", "https+srv://_e._tcp.f"]
balance = "hash"
connect_timeout = "1s"
first_byte_timeout = "2s"
between_bytes_timeout = "3s"
total_timeout = "4s"
idle = "5s"
max_idle = 6
max_connections = 7
max_in_flight = 8
queue = 9
queue_timeout = "10s"
retry = { servers = 2, on = ["timeout", "502", 503], budget = "11%" }
ejection = { failures = 12, time = "13s", max_time = "14s" }
slow_start = "15s"
health = { path = "/up", host = "g:16", status = ["200-299", 404], every = "17s", timeout = "18s", healthy = 19, unhealthy = 20 }
resolve_every = "21s"
name_servers = "127.0.0.1:22"
protocol = "auto"
ca_file = "ca.pem"
client_cert = "client.pem"
client_key = "client.key"
server_name = "h"
"#,
        );
        let seconds = Duration::from_secs;
        let server = |address, weight, backup| ServerSettings { address, weight, backup };
        let srv = |tls| ServerAddress::Srv { tls, name: "_e._tcp.f".to_owned() };
        assert_eq!(
            said.servers,
            [
                server(ServerAddress::Http { host: "b".to_owned(), port: 81 }, 1, false),
                server(ServerAddress::Https { host: "c".to_owned(), port: 443 }, 2, false),
                server(ServerAddress::Unix("/run/d".into()), 1, true),
                server(srv(false), 1, false),
                server(srv(true), 1, false),
            ]
        );
        let Timeouts { connect, first_byte, between_bytes, total, .. } = said.timeouts;
        assert_eq!([connect, first_byte, between_bytes], [seconds(1), seconds(2), seconds(3)]);
        assert_eq!((total, said.idle, said.max_idle), (Some(seconds(4)), seconds(5), 6));
        assert_eq!((said.max_connections, said.balance, said.protocol), (7, Balance::Hash, Protocol::Auto));
        assert_eq!(said.in_flight, InFlightLimit { max: Some(8), queue: 9, queue_timeout: seconds(10) });
        let retry = Retry {
            servers: 2,
            on_error: false,
            on_timeout: true,
            statuses: vec![502, 503],
            budget_percent: 11,
        };
        assert_eq!(said.retry, Some(retry));
        assert_eq!(said.ejection, Ejection { failures: 12, time: seconds(13), time_max: seconds(14) });
        assert_eq!(said.slow_start, seconds(15));
        let health = said.health.unwrap();
        assert_eq!((health.path.as_str(), health.host.unwrap().as_str()), ("/up", "g:16"));
        assert_eq!(health.statuses, [200..=299, 404..=404]);
        assert_eq!((health.every, health.timeout), (seconds(17), seconds(18)));
        assert_eq!((health.healthy, health.unhealthy), (19, 20));
        let name_servers = vec!["127.0.0.1:22".parse().unwrap()];
        assert_eq!(said.resolve, ResolveSettings { every: seconds(21), name_servers });
        let file_of = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let client = said.tls.client.unwrap();
        assert_eq!(
            [said.tls.ca_file.as_ref().unwrap(), &client.cert, &client.key].map(file_of),
            ["ca.pem", "client.pem", "client.key"]
        );
        assert_eq!(said.tls.server_name.as_deref(), Some("h"));
        let sent = |text: &str| origin_of(&format!("servers = \"http://b\"\nhost = \"{text}\"")).host;
        let name =
            larder_http::authority::Authority::parse("i:81".into(), larder_http::message::Scheme::Http);
        assert_eq!(said.host, SentHost::Client);
        assert_eq!(
            [sent("client"), sent("upstream"), sent("I:81")],
            [SentHost::Client, SentHost::Upstream, SentHost::Name(name.unwrap())]
        );
        assert!(!said.proxy_protocol);
        assert!(origin_of("servers = \"http://b\"\nproxy_protocol = true").proxy_protocol);
        assert_eq!(origin_of("servers = \"http://b\"\nprotocol = \"h2\"").protocol, Protocol::Http2);
        let least = origin_of("servers = \"http://b\"\nbalance = \"least-requests\"");
        assert_eq!(least.balance, Balance::LeastRequests);
    }
}
