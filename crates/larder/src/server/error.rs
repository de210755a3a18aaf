//! Why a larder did not start, or did not take over a config.

use larder_listen::ListenError;
use larder_observe::ObserveError;

use super::descriptors::Shortage;
use crate::wire::WireError;

/// Why a larder did not start, or did not take over a config.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A socket.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The config, where it meets the world.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The access log.
    #[error("access log")]
    Log(#[from] ObserveError),
    /// A thread or its runtime.
    #[error("cannot start {what}")]
    Thread {
        /// Which.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The fleet's thread.
    #[error("cannot start the fleet's thread")]
    Fleet(#[source] larder_remote::RemoteError),
    /// Files that TLS with clients is configured with.
    #[error("{0}")]
    Certificates(larder_config::Errors),
    /// Certificates cannot be ordered.
    #[error("[acme]")]
    Acme(#[from] larder_acme::AcmeError),
    /// A worker ended before its time.
    #[error("a worker is gone")]
    WorkerGone,
    /// A token of the admin address.
    #[error("a token of [admin]")]
    Token(#[from] larder_admin::AdminError),
    /// The stores need more descriptors than there are.
    #[error(transparent)]
    Descriptors(#[from] Shortage),
}
