//! Why a TLS handshake with a server failed, in one word and one sentence each.
//!
//! In: the error of rustls, or of the socket under it. Out: a [`TlsFailure`]. The text of a peer appears in neither word nor
//! sentence: what a certificate says of itself is the peer's.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// Why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFailure {
    /// No authority that is trusted has signed the certificate.
    Untrusted,
    /// The certificate is for other names.
    Name,
    /// The certificate's time is over.
    Expired,
    /// The certificate's time has not begun.
    NotYetValid,
    /// Something else is wrong with the certificate.
    Certificate,
    /// What the server speaks is no TLS 1.2 or 1.3, or no TLS at all.
    Protocol,
    /// Nothing that both sides can encrypt with.
    Cipher,
    /// The server speaks none of the protocols that larder offered (ALPN).
    Alpn,
    /// The server does not accept larder's certificate, or wants one.
    ClientCertificate,
    /// The server refused with another alert.
    Refused,
    /// The server closed the connection in the middle of it.
    Closed,
    /// Anything else.
    Other,
}

impl TlsFailure {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Untrusted,
        Self::Name,
        Self::Expired,
        Self::NotYetValid,
        Self::Certificate,
        Self::Protocol,
        Self::Cipher,
        Self::Alpn,
        Self::ClientCertificate,
        Self::Refused,
        Self::Closed,
        Self::Other,
    ];

    /// The fixed word.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Untrusted => "tls-untrusted",
            Self::Name => "tls-name",
            Self::Expired => "tls-expired",
            Self::NotYetValid => "tls-not-yet-valid",
            Self::Certificate => "tls-certificate",
            Self::Protocol => "tls-protocol",
            Self::Cipher => "tls-cipher",
            Self::Alpn => "tls-alpn",
            Self::ClientCertificate => "tls-client-certificate",
            Self::Refused => "tls-refused",
            Self::Closed => "tls-closed",
            Self::Other => "tls",
        }
    }

    /// What is wrong.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Untrusted => {
                "the certificate is signed by no authority that is trusted; ca_file names others"
            }
            Self::Name => {
                "the certificate is for another name than the one asked for; server_name names another"
            }
            Self::Expired => "the certificate has expired",
            Self::NotYetValid => "the certificate is not valid yet; is the clock right?",
            Self::Certificate => "the certificate cannot be used",
            Self::Protocol => "the server does not speak TLS 1.2 or 1.3",
            Self::Cipher => "the server and larder have no cipher in common",
            Self::Alpn => "the server did not choose the protocol that was offered (ALPN)",
            Self::ClientCertificate => {
                "the server wants a client certificate, or does not accept the one it was shown"
            }
            Self::Refused => "the server refused it with an alert",
            Self::Closed => "the server closed the connection",
            Self::Other => "it failed",
        }
    }

    /// What `error` comes from.
    pub fn of(error: &io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(error) => Self::of_rustls(error),
            None => match error.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe => Self::Closed,
                _ => Self::Other,
            },
        }
    }

    fn of_rustls(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(error) => match error {
                // The latter where a trusted authority goes by the name of the one that signed it.
                CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::Untrusted,
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    Self::Name
                }
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    Self::NotYetValid
                }
                // A certificate that signed itself, as most tools make them: it says that it is an authority.
                CertificateError::Other(other) if other.to_string() == "CaUsedAsEndEntity" => Self::Untrusted,
                _ => Self::Certificate,
            },
            Error::NoCertificatesPresented | Error::UnsupportedNameType => Self::Certificate,
            Error::NoApplicationProtocol => Self::Alpn,
            Error::InvalidMessage(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::PeerIncompatible(_)
            | Error::PeerMisbehaved(_)
            | Error::PeerSentOversizedRecord => Self::Protocol,
            Error::AlertReceived(alert) => Self::of_alert(*alert),
            _ => Self::Other,
        }
    }

    fn of_alert(alert: AlertDescription) -> Self {
        match alert {
            AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => Self::Cipher,
            AlertDescription::ProtocolVersion => Self::Protocol,
            AlertDescription::NoApplicationProtocol => Self::Alpn,
            AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::CertificateRequired => Self::ClientCertificate,
            AlertDescription::CloseNotify | AlertDescription::UserCanceled => Self::Closed,
            _ => Self::Refused,
        }
    }
}

/// The alert that a server ended a connection with, where `error` comes from one: with TLS 1.3 a server judges the client's
/// certificate when the handshake is over for the client.
pub fn alert_within(error: &(dyn std::error::Error + 'static)) -> Option<io::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(inner) = error.downcast_ref::<io::Error>().and_then(|error| error.get_ref())
            && let Some(alert @ Error::AlertReceived(_)) = inner.downcast_ref::<Error>()
        {
            return Some(io::Error::new(io::ErrorKind::InvalidData, alert.clone()));
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: Error, expected: &str) {
        let error = io::Error::new(io::ErrorKind::InvalidData, error);
        assert_eq!(TlsFailure::of(&error).token(), expected, "{error}");
    }

    #[test]
    fn each_reason_has_a_word_of_its_own() {
        check(Error::InvalidCertificate(CertificateError::UnknownIssuer), "tls-untrusted");
        check(Error::InvalidCertificate(CertificateError::BadSignature), "tls-untrusted");
        check(Error::InvalidCertificate(CertificateError::NotValidForName), "tls-name");
        check(Error::InvalidCertificate(CertificateError::Expired), "tls-expired");
        check(Error::InvalidCertificate(CertificateError::NotValidYet), "tls-not-yet-valid");
        check(Error::InvalidCertificate(CertificateError::BadEncoding), "tls-certificate");
        check(Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType), "tls-protocol");
        check(Error::AlertReceived(AlertDescription::ProtocolVersion), "tls-protocol");
        check(Error::AlertReceived(AlertDescription::HandshakeFailure), "tls-cipher");
        check(Error::AlertReceived(AlertDescription::NoApplicationProtocol), "tls-alpn");
        check(Error::AlertReceived(AlertDescription::CertificateRequired), "tls-client-certificate");
        check(Error::AlertReceived(AlertDescription::UnrecognisedName), "tls-refused");
        assert_eq!(TlsFailure::of(&io::ErrorKind::UnexpectedEof.into()).token(), "tls-closed");
        assert_eq!(TlsFailure::of(&io::Error::other("x")).token(), "tls");
    }

    #[test]
    fn an_alert_is_found_under_what_it_became() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] io::Error);
        let alert = Error::AlertReceived(AlertDescription::CertificateRequired);
        let outer = Outer(io::Error::new(io::ErrorKind::InvalidData, alert));
        let found = alert_within(&outer).expect("an alert");
        assert_eq!(TlsFailure::of(&found), TlsFailure::ClientCertificate);
        assert!(alert_within(&Outer(io::Error::other("x"))).is_none());
    }
}
