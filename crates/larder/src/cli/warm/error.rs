//! Why a run does not begin.

use std::io;
use std::net::IpAddr;

use crate::cli::admin::AdminClientError;

/// What is in the way of a run.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum WarmError {
    #[error(transparent)]
    Admin(#[from] AdminClientError),
    #[error("{0}")]
    File(String, #[source] io::Error),
    #[error("the larder at {0} names no listener")]
    NoListener(String),
    #[error("no larder listens on {0}")]
    NotListening(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("larder would take {1} for an http URL: {0} is not in `trusted`")]
    Untrusted(IpAddr, String),
}
