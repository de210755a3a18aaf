//! Why a handshake failed, and what one that did not has agreed on, as counts.

use larder_http::message::TlsVersion;
use rustls::{AlertDescription, CertificateError, Error, NamedGroup, PeerIncompatible};

use crate::cell::Cell;

/// Why there is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The client was gone before it was over.
    Gone,
    /// It took longer than `handshake_time`.
    Timeout,
    /// What came was no TLS.
    ClearText,
    /// No site has the name that was asked for, or none has a certificate for it yet.
    UnknownName,
    /// No version, group, suite or signature is known to both.
    NothingShared,
    /// None of the client's protocols is served.
    NoProtocol,
    /// The client has shown no certificate where it has to.
    NoClientCertificate,
    /// The client's certificate is not believed.
    ClientCertificate,
    /// The client has sent an alert: it may not trust the certificate.
    Alert,
    /// Against the rules of TLS.
    Malformed,
}

impl HandshakeFailure {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Gone,
        Self::Timeout,
        Self::ClearText,
        Self::UnknownName,
        Self::NothingShared,
        Self::NoProtocol,
        Self::NoClientCertificate,
        Self::ClientCertificate,
        Self::Alert,
        Self::Malformed,
    ];

    /// A fixed token, as the label of a metric.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Timeout => "timeout",
            Self::ClearText => "clear-text",
            Self::UnknownName => "unknown-name",
            Self::NothingShared => "nothing-shared",
            Self::NoProtocol => "no-protocol",
            Self::NoClientCertificate => "no-client-certificate",
            Self::ClientCertificate => "client-certificate",
            Self::Alert => "alert",
            Self::Malformed => "malformed",
        }
    }

    pub(super) fn of(error: &Error) -> Self {
        match error {
            Error::NoApplicationProtocol => Self::NoProtocol,
            Error::NoCertificatesPresented => Self::NoClientCertificate,
            Error::InvalidCertificate(CertificateError::BadSignature) | Error::InvalidCertificate(_) => {
                Self::ClientCertificate
            }
            Error::PeerIncompatible(PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon) => {
                Self::ClientCertificate
            }
            // A name that no certificate is for is told before; here no key fits the client's signatures.
            Error::PeerIncompatible(_) | Error::General(_) => Self::NothingShared,
            Error::AlertReceived(_) => Self::Alert,
            _ => Self::Malformed,
        }
    }

    pub(super) const fn of_refusal(alert: AlertDescription) -> Self {
        match alert {
            AlertDescription::UnrecognisedName => Self::UnknownName,
            _ => Self::NothingShared,
        }
    }
}

/// The groups that are counted by name, and all others.
pub(crate) const GROUPS: [&str; 5] = ["X25519MLKEM768", "X25519", "secp256r1", "secp384r1", "other"];

fn group(group: Option<NamedGroup>) -> usize {
    match group {
        Some(NamedGroup::X25519MLKEM768) => 0,
        Some(NamedGroup::X25519) => 1,
        Some(NamedGroup::secp256r1) => 2,
        Some(NamedGroup::secp384r1) => 3,
        _ => 4,
    }
}

/// Handshakes by what was agreed on: two versions, by groups, by whether a session was resumed.
#[derive(Debug, Default)]
pub(crate) struct HandshakeKinds([Cell; 2 * GROUPS.len() * 2]);

impl HandshakeKinds {
    pub(crate) fn count(&self, version: TlsVersion, named: Option<NamedGroup>, is_resumed: bool) {
        let index =
            ((version == TlsVersion::Tls13) as usize * GROUPS.len() + group(named)) * 2 + is_resumed as usize;
        if let Some(cell) = self.0.get(index) {
            cell.add(1);
        }
    }

    /// Calls `f` with version, group, whether resumed, and the count.
    pub(crate) fn for_each(&self, mut f: impl FnMut(&'static str, &'static str, &'static str, u64)) {
        let versions = [TlsVersion::Tls12, TlsVersion::Tls13];
        let kinds = versions.into_iter().flat_map(|version| {
            GROUPS
                .into_iter()
                .flat_map(move |group| ["false", "true"].map(|resumed| (version.word(), group, resumed)))
        });
        for ((version, group, resumed), cell) in kinds.zip(&self.0) {
            f(version, group, resumed, cell.value());
        }
    }

    pub(crate) fn absorb(&self, other: &Self) {
        self.0.iter().zip(&other.0).for_each(|(mine, theirs)| mine.add(theirs.value()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_cell_of_its_own() {
        let kinds = HandshakeKinds::default();
        kinds.count(TlsVersion::Tls13, Some(NamedGroup::X25519MLKEM768), false);
        kinds.count(TlsVersion::Tls13, Some(NamedGroup::X25519), true);
        kinds.count(TlsVersion::Tls12, None, true);
        let mut counted = Vec::new();
        kinds.for_each(|version, group, resumed, count| {
            if count > 0 {
                counted.push((version, group, resumed, count));
            }
        });
        let expected = [
            ("1.2", "other", "true", 1),
            ("1.3", "X25519MLKEM768", "false", 1),
            ("1.3", "X25519", "true", 1),
        ];
        assert_eq!(counted, expected);
    }

    #[test]
    fn tokens_differ() {
        let tokens: std::collections::BTreeSet<_> = HandshakeFailure::ALL.map(HandshakeFailure::token).into();
        assert_eq!(tokens.len(), HandshakeFailure::ALL.len());
    }
}
