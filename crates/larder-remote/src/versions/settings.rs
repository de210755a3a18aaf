//! What is said about a server of versions.
//!
//! In: the config, already read. Out: which server, and how long a read may take.

use crate::redis::RedisSettings;

/// The settings of the versions at one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionsSettings {
    /// Where the versions lie. `timeout` bounds one read with all its round trips, and connecting.
    pub server: RedisSettings,
}
