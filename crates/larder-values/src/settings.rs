//! What is said about the values of one store.
//!
//! In: the config, already read. Out: how a value is named, what it is, and how long a copy of it is used. Servers are `larder-remote`'s settings.

use std::time::Duration;

use http::HeaderValue;

use larder_tier::template::KeyTemplate;

/// What a value is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The bytes of a body: a 200 for all who ask.
    #[default]
    Body,
    /// A message: `HTTP/1.1 200 OK`, fields, an empty line, a body.
    Http,
}

/// The settings of one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuesSettings {
    /// How the name of a value is made of a request.
    pub key: KeyTemplate,
    /// What a value is.
    pub format: Format,
    /// How long a copy is used before its value is asked for again. 1 s where nothing else is said.
    pub near: Duration,
    /// The type of bodies.
    pub default_type: HeaderValue,
    /// Whether what origins gave is written there too.
    pub write: bool,
    /// The largest body at first, in bytes.
    pub max_object: u64,
    /// The longest that asking takes. It is the servers' setting as well.
    pub timeout: Duration,
}
