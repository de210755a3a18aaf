//! Why TLS cannot be spoken as configured.

/// See the head of the file.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file of authorities cannot be used.
    #[error("ca file {path}: {reason}")]
    CaFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The system's authorities cannot be read.
    #[error("no system certificate authorities: {0}")]
    SystemRoots(String),
    /// A certificate of our own, or its key, cannot be used.
    #[error("client certificate {path}: {reason}")]
    ClientCertificate {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The TLS library refused the configuration.
    #[error("tls configuration")]
    Library(#[from] rustls::Error),
}
