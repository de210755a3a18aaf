//! What is said about TLS towards a server.

use std::path::PathBuf;

/// How TLS is spoken to servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// Trust these authorities (PEM) in place of the system's.
    pub ca_file: Option<PathBuf>,
    /// Check the certificate and its name. On by default; off gives away what TLS is for, and is meant for
    /// self-signed test servers.
    pub verify: bool,
    /// What we show when a server asks who we are. Nothing.
    pub client: Option<ClientCertificate>,
    /// The name that is asked for (SNI) and checked. The address's host.
    pub server_name: Option<String>,
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self { ca_file: None, verify: true, client: None, server_name: None }
    }
}

/// A certificate of our own, read when a configuration is made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The chain, our own first (PEM).
    pub cert: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
}
