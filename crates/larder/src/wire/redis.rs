//! From a server of Redis in the config to what its clients are told of it.

use std::time::Duration;

use larder_config::{RedisNode, RedisPassword, RedisServer, SentinelAddress};
use larder_remote::Address;
use larder_remote::redis::{Password, RedisPlace, RedisSettings, SentinelSettings};
use larder_tls::{ClientCertificate, TlsSettings};

/// How a server is reached.
pub(crate) fn settings(server: &RedisServer, timeout: Duration, max_object: u64) -> RedisSettings {
    RedisSettings {
        place: match &server.place {
            larder_config::RedisPlace::Tcp { host, port } => {
                RedisPlace::Server(Address::Tcp { host: host.clone(), port: *port })
            }
            larder_config::RedisPlace::Unix(path) => RedisPlace::Server(Address::Unix(path.clone())),
            larder_config::RedisPlace::Cluster(nodes) => {
                let address =
                    |RedisNode { host, port }: &RedisNode| Address::Tcp { host: host.clone(), port: *port };
                RedisPlace::Cluster(nodes.iter().map(address).collect())
            }
            larder_config::RedisPlace::Sentinel { sentinels, master, user, password_file } => {
                let address = |SentinelAddress { host, port }: &SentinelAddress| Address::Tcp {
                    host: host.clone(),
                    port: *port,
                };
                RedisPlace::Sentinel(SentinelSettings {
                    sentinels: sentinels.iter().map(address).collect(),
                    master: master.as_str().to_owned(),
                    user: user.as_ref().map(|user| user.as_str().to_owned()),
                    password: password_file.clone().map(Password::File),
                })
            }
        },
        tls: server.tls.as_ref().map(tls),
        user: server.user.clone(),
        password: server.password.as_ref().map(|password| match password {
            RedisPassword::Text(text) => Password::Text(text.clone()),
            RedisPassword::File(path) => Password::File(path.clone()),
        }),
        database: server.database,
        timeout,
        max_object: usize::try_from(max_object).unwrap_or(usize::MAX),
    }
}

fn tls(said: &larder_config::RedisTls) -> TlsSettings {
    let client = said.client.clone().map(|(cert, key)| ClientCertificate { cert, key });
    TlsSettings {
        ca_file: said.ca_file.clone(),
        client,
        server_name: said.server_name.clone(),
        ..TlsSettings::default()
    }
}
