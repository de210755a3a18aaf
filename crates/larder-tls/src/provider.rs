//! The one implementation of cryptography: AWS-LC.
//!
//! In: nothing. Out: the suites, groups and signatures that TLS is spoken with, towards servers and by whatever else speaks it. The first group is
//! X25519MLKEM768, which keeps what is recorded today from who has a quantum computer later; then X25519, P-256 and P-384. TLS 1.2 has suites with
//! forward secrecy and authenticated encryption alone.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// The provider, with the defaults of rustls.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

#[cfg(test)]
mod tests {
    use larder_testkit::certificates::Certificates;
    use rustls::crypto::SupportedKxGroup;
    use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
    use rustls::{ClientConnection, NamedGroup, ServerConfig, ServerConnection};

    use super::*;
    use crate::{TlsSettings, client_config};

    /// The group of a connection to a server that has these alone.
    fn group(groups: &[&'static dyn SupportedKxGroup]) -> Option<NamedGroup> {
        let certificates = Certificates::new();
        let settings = TlsSettings { ca_file: Some(certificates.file("ca.pem")), ..TlsSettings::default() };
        let theirs = CryptoProvider { kx_groups: groups.to_vec(), ..aws_lc_rs::default_provider() };
        let chain = vec![CertificateDer::from(certificates.server.clone())];
        let key = PrivatePkcs8KeyDer::from(certificates.server_key.clone());
        let server = ServerConfig::builder_with_provider(Arc::new(theirs))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key.into())
            .unwrap();
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        let name = "localhost".try_into().unwrap();
        let mut client = ClientConnection::new(Arc::new(client_config(&settings).unwrap()), name).unwrap();
        for _ in 0..10 {
            let (mut there, mut back) = (Vec::new(), Vec::new());
            client.write_tls(&mut there).unwrap();
            while !there.is_empty() {
                let read = server.read_tls(&mut &*there).unwrap();
                there.drain(..read);
                server.process_new_packets().unwrap();
            }
            server.write_tls(&mut back).unwrap();
            while !back.is_empty() {
                let read = client.read_tls(&mut &*back).unwrap();
                back.drain(..read);
                client.process_new_packets().unwrap();
            }
        }
        assert!(!client.is_handshaking() && !server.is_handshaking());
        client.negotiated_key_exchange_group().map(|group| group.name())
    }

    #[test]
    fn the_group_against_quantum_computers_is_used_where_the_server_has_it() {
        use rustls::crypto::aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768};
        assert_eq!(group(&[X25519MLKEM768, X25519]), Some(NamedGroup::X25519MLKEM768));
        assert_eq!(group(&[X25519, X25519MLKEM768]), Some(NamedGroup::X25519MLKEM768));
        for old in [X25519, SECP256R1, SECP384R1] {
            assert_eq!(group(&[old]), Some(old.name()));
        }
    }
}
