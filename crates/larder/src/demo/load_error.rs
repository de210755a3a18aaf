//! Why a demo's load came to nothing.
//!
//! In: what broke. Out: an error for the terminal, its cause behind it.

use std::time::Duration;

use http::StatusCode;

use super::expected::WrongPage;

/// How long a connection may take to come about.
pub(super) const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Why a load came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error("cannot connect")]
    Connect(#[source] std::io::Error),
    #[error("no connection within {} s", CONNECT_TIME.as_secs())]
    ConnectTime,
    #[error("the exchange broke")]
    Exchange(#[from] hyper::Error),
    #[error("not a request")]
    Request(#[from] http::Error),
    #[error("answered with status {0}")]
    Status(StatusCode),
    #[error(transparent)]
    Page(#[from] WrongPage),
    #[error("a client is gone")]
    Client(#[from] tokio::task::JoinError),
}
