//! What is said about a store in Redis.
//!
//! In: the config, already read. Out: how its one server is logged in to. The password is never printed.

use std::fmt;
use std::time::Duration;

use super::login::Login;
use crate::address::Address;

/// The settings of one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// Where the server listens.
    pub address: Address,
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

impl RedisSettings {
    pub(crate) fn login(&self) -> Login {
        let password = self.password.as_ref().map(|password| password.0.as_str());
        Login::new(self.user.as_deref(), password, self.database)
    }
}

/// A password. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// The password in plain text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
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
            address: Address::Tcp { host: "redis".into(), port: 6379 },
            user: Some("larder".into()),
            password: Some(Password::new("s3cret")),
            database: 2,
            timeout: Duration::from_millis(200),
            max_object: 1,
        };
        assert!(format!("{settings:?}").contains("larder"));
        assert!(!format!("{settings:?} {:?}", settings.login()).contains("s3cret"));
    }
}
