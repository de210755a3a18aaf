//! Who is at the other end of a client's connection, and what a handshake of TLS agreed on with it.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

/// The two ends of a client's connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The client.
    pub remote: SocketAddr,
    /// Our end.
    pub local: SocketAddr,
    /// What the handshake agreed on; `None` in clear text.
    pub tls: Option<Arc<TlsPeer>>,
}

impl Peer {
    /// Of a connection in clear text.
    pub const fn clear(remote: SocketAddr, local: SocketAddr) -> Self {
        Self { remote, local, tls: None }
    }

    /// Under which policy for client certificates it was accepted.
    pub fn client_policy(&self) -> ClientPolicyId {
        self.tls.as_ref().map(|tls| tls.client_policy).unwrap_or_default()
    }
}

/// What a handshake of TLS agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPeer {
    /// The version of TLS.
    pub version: TlsVersion,
    /// The protocol that was chosen by ALPN (RFC 7301); `None` where the client offered none.
    pub alpn: Option<&'static str>,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// What was asked of the client.
    pub client_policy: ClientPolicyId,
    /// The certificate that the client has shown, in DER.
    pub client_certificate: Option<Bytes>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

impl TlsVersion {
    /// As the log has it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        }
    }
}

/// Which certificates clients have to show: a digest of the authorities, and of whether they are required. The default stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientPolicyId(pub [u8; 32]);
