//! What is said about a server of Redis.
//!
//! In: the config, already read. Out: where it is, and how it is logged in to. Passwords are never printed.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use larder_tls::TlsSettings;

use crate::address::Address;

/// The settings of one store, or of whatever else lies in Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// Where the server is.
    pub place: RedisPlace,
    /// How TLS is spoken, with Sentinels too. `None`: not at all.
    pub tls: Option<TlsSettings>,
    /// The user of its access control list; without one the password is that of `requirepass`.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<Password>,
    /// The number of the database.
    pub database: u32,
    /// The longest that a look-up takes, connecting included. 200 ms where nothing else is said.
    pub timeout: Duration,
    /// The largest value in bytes.
    pub max_object: usize,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisPlace {
    /// Always there.
    Server(Address),
    /// Where a majority of the Sentinels says that it is.
    Sentinel(SentinelSettings),
    /// Several, each with its share of the keys: some of them, by which the others are found.
    Cluster(Vec<Address>),
}

/// Sentinels, and the master that they watch over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentinelSettings {
    /// All that there are: more than half of them have to name the same master.
    pub sentinels: Vec<Address>,
    /// What they call the master.
    pub master: String,
    /// The user of their own access control lists.
    pub user: Option<String>,
    /// Their own password.
    pub password: Option<Password>,
}

impl fmt::Display for RedisPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(address) => address.fmt(f),
            Self::Sentinel(said) => write!(f, "sentinel:{}", said.master),
            Self::Cluster(nodes) => match nodes.first() {
                Some(first) => write!(f, "cluster:{first}"),
                None => f.write_str("cluster"),
            },
        }
    }
}

/// A password. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// In plain text.
    Text(String),
    /// What this file has, when a connection is made. White space at its end does not count.
    File(PathBuf),
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_printed() {
        let settings = RedisSettings {
            place: RedisPlace::Server(Address::Tcp { host: "redis".into(), port: 6379 }),
            tls: None,
            user: Some("larder".into()),
            password: Some(Password::Text("s3cret".into())),
            database: 2,
            timeout: Duration::from_millis(200),
            max_object: 1,
        };
        assert!(format!("{settings:?}").contains("larder"));
        assert!(!format!("{settings:?}").contains("s3cret"));
    }
}
