//! What a client says first over TLS (RFC 8446 4.1.2): whose certificate it gets follows from the name that it asks for, however the bytes are cut.
//!
//! In: an octet that says how large the pieces are, and what a client sends. Out: nothing, or a panic that says what does not hold.

use std::sync::{Arc, OnceLock};

use larder_http::message::{ClientPolicyId, TlsVersion};
use larder_tls::provider;
use larder_tls::server::{
    ChallengeCertificates, ClientPolicy, Identity, IdentityFiles, ServerTls, ServerTlsSettings,
    SiteCertificates, SiteTls, TlsChoice,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::{Accepted, Acceptor};
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, SignatureScheme};

/// The sites: one of a name, one of a wildcard. The third name is waiting for a proof, and no site has it.
const NAME: &str = "a.test";
const WILDCARD: &str = "*.b.test";
const PENDING: &str = "pending.test";

/// More is no hello: rustls gives up before that.
const INPUT_MAX: usize = 1 << 17;

#[derive(Debug)]
struct Pending(Arc<CertifiedKey>);

impl ChallengeCertificates for Pending {
    fn proof(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        (host == PENDING).then(|| Arc::clone(&self.0))
    }
}

fn tls() -> &'static ServerTls {
    static TLS: OnceLock<ServerTls> = OnceLock::new();
    TLS.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed([NAME, WILDCARD, PENDING].map(str::to_owned));
        let made = made.expect("a certificate");
        let folder = tempfile::tempdir().expect("a folder");
        let files =
            IdentityFiles { chain: folder.path().join("chain.pem"), key: folder.path().join("key.pem") };
        std::fs::write(&files.chain, made.cert.pem()).expect("a file");
        std::fs::write(&files.key, made.signing_key.serialize_pem()).expect("a file");
        // rcgen's certificates are good from 1975 to 4096.
        let identity = Identity::read(&files, &provider(), 1_800_000_000).expect("a good pair");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
        let key = provider().key_provider.load_private_key(key).expect("a good key");
        let proof = CertifiedKey::new(vec![made.cert.der().clone()], key);
        let site = |host: &str| SiteTls {
            hosts: vec![host.to_owned()],
            certificates: Some(SiteCertificates::Fixed(vec![identity.clone()])),
            policy: ClientPolicy::none(),
        };
        let settings = ServerTlsSettings {
            sites: vec![site(NAME), site(WILDCARD)],
            min_version: TlsVersion::Tls12,
            tickets: None,
            challenges: Some(Arc::new(Pending(Arc::new(proof)))),
        };
        ServerTls::new(settings, &provider()).expect("good settings")
    })
}

/// What came of it.
#[derive(PartialEq, Eq, Debug)]
enum Came {
    /// The hello is not whole.
    NotYet,
    /// It is none.
    Malformed,
    Served,
    Proven,
    Refused(AlertDescription),
}

/// Reads the bytes in pieces.
fn came(bytes: &[u8], piece: usize) -> (Came, Option<Accepted>) {
    let mut acceptor = Acceptor::default();
    for mut piece in bytes.chunks(piece) {
        while !piece.is_empty() {
            if acceptor.read_tls(&mut piece).is_err() {
                return (Came::Malformed, None);
            }
            match acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    let choice = match tls().choose(&accepted.client_hello()) {
                        TlsChoice::Serve { policy, .. } => {
                            assert_eq!(policy, ClientPolicyId::default(), "no site asks for certificates");
                            Came::Served
                        }
                        TlsChoice::Prove(_) => Came::Proven,
                        TlsChoice::Refuse(alert) => Came::Refused(alert),
                    };
                    return (choice, Some(accepted));
                }
                Err(_) => return (Came::Malformed, None),
            }
        }
    }
    (Came::NotYet, None)
}

/// What has to come of a whole hello.
fn due(accepted: &Accepted) -> Came {
    let hello = accepted.client_hello();
    let name = hello.server_name();
    let offered: Vec<&[u8]> = hello.alpn().into_iter().flatten().collect();
    if offered == [b"acme-tls/1"] {
        return match name {
            Some(PENDING) => Came::Proven,
            _ => Came::Refused(AlertDescription::UnrecognisedName),
        };
    }
    let suffix = WILDCARD.trim_start_matches('*');
    match name.map(str::to_ascii_lowercase) {
        Some(name) if name == NAME || (name.ends_with(suffix) && name.len() > suffix.len()) => {
            match hello.signature_schemes().contains(&SignatureScheme::ECDSA_NISTP256_SHA256) {
                true => Came::Served,
                false => Came::Refused(AlertDescription::HandshakeFailure),
            }
        }
        _ => Came::Refused(AlertDescription::UnrecognisedName),
    }
}

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let Some((piece, bytes)) = input.split_first() else { return };
    let bytes = bytes.get(..INPUT_MAX).unwrap_or(bytes);
    let (whole, accepted) = came(bytes, INPUT_MAX);
    let (cut, _) = came(bytes, usize::from(*piece).max(1));
    assert_eq!(whole, cut, "in pieces of {piece}");
    let Some(accepted) = accepted else { return };
    assert_eq!(whole, due(&accepted), "for {:?}", accepted.client_hello().server_name());
    // Whatever else it offers, an answer is found or refused.
    if let TlsChoice::Serve { config, .. } | TlsChoice::Prove(config) = tls().choose(&accepted.client_hello())
    {
        let _ = accepted.into_connection(config);
    }
}
