//! Which certificate is shown, which protocol is spoken, and who gets an alert.

use larder_http::message::TlsVersion;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use super::*;

const H2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

#[test]
fn the_name_that_is_asked_for_chooses_the_certificate_and_no_other_sites_is_shown() {
    let authority = Authority::new();
    let exact = authority.ecdsa("exact", &["a.example.com"]);
    let wild = authority.ecdsa("wild", &["*.example.com"]);
    let rest = authority.ecdsa("rest", &["other.example", "x.y.example.com"]);
    let sites = |last: Option<&Identity>| {
        let mut sites = vec![
            site(&["a.example.com"], fixed([&exact])),
            site(&["*.example.com"], fixed([&wild])),
            site(&["plain.org"], None),
        ];
        sites.extend(last.map(|last| site(&[], fixed([last]))));
        built(sites)
    };
    let client = Arc::new(authority.client(&[]));
    let shown = |server: &ServerTls, name: &str| meet(&client, name, server).map(|met| met.shown());
    let own = |identity: &Identity| Ok(identity.chain()[0].clone());
    let server = sites(Some(&rest));
    assert_eq!(shown(&server, "a.example.com"), own(&exact));
    assert_eq!(shown(&server, "b.example.com"), own(&wild));
    assert_eq!(shown(&server, "other.example"), own(&rest));
    let unknown = Err(AlertDescription::UnrecognisedName);
    assert_eq!(shown(&server, "plain.org"), unknown, "a site without TLS");
    let server = sites(None);
    assert_eq!(shown(&server, "other.example"), unknown);
    assert_eq!(shown(&server, "192.0.2.1"), unknown, "no name is asked for");
}

#[test]
fn a_client_that_asks_for_no_name_gets_the_site_without_hosts() {
    let authority = Authority::new();
    let rest = authority.ecdsa("rest", &["192.0.2.1"]);
    let server = built(vec![site(&["a.example"], None), site(&[], fixed([&rest]))]);
    let met = meet(&Arc::new(authority.client(&[])), "192.0.2.1", &server).unwrap();
    assert_eq!(met.shown(), rest.chain()[0]);
}

/// A client that can verify RSA alone.
#[derive(Debug)]
struct OldClient(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for OldClient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.0.verify_server_cert(end_entity, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::RSA_PSS_SHA256]
    }
}

#[test]
fn of_several_the_first_that_fits_is_shown_ecdsa_before_rsa() {
    let authority = Authority::new();
    let (rsa, ecdsa) = (authority.rsa("rsa", &["a.example"]), authority.ecdsa("ecdsa", &["a.example"]));
    let other = authority.ecdsa("other", &["b.example"]);
    let hosts = ["a.example", "b.example"];
    let server = built(vec![site(&hosts, fixed([&other, &rsa, &ecdsa]))]);
    let client = Arc::new(authority.client(&[]));
    assert_eq!(meet(&client, "a.example", &server).unwrap().shown(), ecdsa.chain()[0]);
    assert_eq!(meet(&client, "b.example", &server).unwrap().shown(), other.chain()[0]);
    // Of before ECDSA.
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
    let old = Arc::new(OldClient(
        rustls::client::WebPkiServerVerifier::builder_with_provider(roots.into(), provider())
            .build()
            .unwrap(),
    ));
    let builder =
        ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let old = Arc::new(builder.dangerous().with_custom_certificate_verifier(old).with_no_client_auth());
    assert_eq!(meet(&old, "a.example", &server).unwrap().shown(), rsa.chain()[0]);
    let newer = built(vec![site(&hosts, fixed([&ecdsa]))]);
    assert_eq!(meet(&old, "a.example", &newer).err(), Some(AlertDescription::HandshakeFailure));
    let store = Arc::new(CertificateStore::default());
    store.install("a.example", Arc::clone(&ecdsa.key));
    let ordered = built(vec![site(&hosts, SiteCertificates::Store(store))]);
    assert_eq!(meet(&old, "a.example", &ordered).err(), Some(AlertDescription::HandshakeFailure));
    assert_eq!(meet(&old, "b.example", &ordered).err(), Some(AlertDescription::UnrecognisedName));
}

#[test]
fn a_protocol_is_agreed_on_or_refused() {
    let authority = Authority::new();
    let server = built(vec![site(&["a.example"], fixed([&authority.ecdsa("a", &["a.example"])]))]);
    let spoken = |offered: &[&[u8]]| {
        let met = meet(&Arc::new(authority.client(offered)), "a.example", &server)?;
        Ok(met.server.alpn_protocol().map(<[u8]>::to_vec))
    };
    assert_eq!(spoken(&[HTTP1, H2]), Ok(Some(H2.to_vec())));
    assert_eq!(spoken(&[HTTP1]), Ok(Some(HTTP1.to_vec())));
    assert_eq!(spoken(&[b"h3", H2]), Ok(Some(H2.to_vec())));
    assert_eq!(spoken(&[]), Ok(None));
    assert_eq!(spoken(&[b"spdy/3"]), Err(AlertDescription::NoApplicationProtocol));
    // An authority's proof is nothing that anybody else gets.
    assert_eq!(spoken(&[b"acme-tls/1"]), Err(AlertDescription::NoApplicationProtocol));
    assert_eq!(spoken(&[b"acme-tls/1", H2]), Ok(Some(H2.to_vec())));
}

#[derive(Debug)]
struct Proof(&'static str, Arc<rustls::sign::CertifiedKey>);

impl ChallengeCertificates for Proof {
    fn proof(&self, host: &str) -> Option<Arc<rustls::sign::CertifiedKey>> {
        (host == self.0).then(|| Arc::clone(&self.1))
    }
}

#[test]
fn an_authority_that_looks_for_a_proof_gets_that_alone() {
    let authority = Authority::new();
    let (own, proof) = (authority.ecdsa("own", &["a.example"]), authority.ecdsa("proof", &["a.example"]));
    let settings = ServerTlsSettings {
        sites: vec![site(&["a.example", "b.example"], fixed([&own]))],
        min_version: TlsVersion::Tls12,
        tickets: None,
        challenges: Some(Arc::new(Proof("a.example", Arc::clone(&proof.key)))),
    };
    let server = ServerTls::new(settings, &provider()).unwrap();
    let shown = |name: &str, offered: &[&[u8]]| {
        meet(&Arc::new(authority.client(offered)), name, &server).map(|met| met.shown())
    };
    assert_eq!(shown("a.example", &[b"acme-tls/1"]), Ok(proof.chain()[0].clone()));
    assert_eq!(shown("b.example", &[b"acme-tls/1"]), Err(AlertDescription::UnrecognisedName));
    assert_eq!(shown("a.example", &[H2]), Ok(own.chain()[0].clone()));
    assert_eq!(shown("a.example", &[b"acme-tls/1", H2]), Ok(own.chain()[0].clone()));
}

#[test]
fn a_certificate_that_comes_while_larder_runs_is_shown_from_then_on() {
    let authority = Authority::new();
    let store = Arc::new(CertificateStore::default());
    let server = built(vec![site(&["a.example", "b.example"], SiteCertificates::Store(Arc::clone(&store)))]);
    // Each has its own sessions: who resumes one is shown nothing.
    let shown = |name: &str| meet(&Arc::new(authority.client(&[])), name, &server).map(|met| met.shown());
    let pending = Err(AlertDescription::UnrecognisedName);
    assert_eq!(shown("a.example"), pending);
    for name in ["first", "renewed"] {
        let identity = authority.ecdsa(name, &["a.example"]);
        store.install("a.example", Arc::clone(&identity.key));
        assert_eq!(shown("a.example"), Ok(identity.chain()[0].clone()));
    }
    assert_eq!(shown("b.example"), pending);
}

#[test]
fn the_oldest_version_is_kept_to() {
    let authority = Authority::new();
    let own = authority.ecdsa("a", &["a.example"]);
    let met = |min_version| {
        let sites = vec![site(&["a.example"], fixed([&own]))];
        let settings = ServerTlsSettings { sites, min_version, tickets: None, challenges: None };
        let server = ServerTls::new(settings, &provider()).unwrap();
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS12]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
        let client = builder.with_root_certificates(roots).with_no_client_auth();
        meet(&Arc::new(client), "a.example", &server).map(|met| met.server.protocol_version())
    };
    assert_eq!(met(TlsVersion::Tls12), Ok(Some(rustls::ProtocolVersion::TLSv1_2)));
    assert!(met(TlsVersion::Tls13).is_err());
}

/// RFC 8879.
#[test]
fn a_chain_goes_compressed_to_a_client_that_takes_it_so() {
    let authority = Authority::new();
    let hosts: Vec<String> =
        (0..40).map(|number| format!("host-{number:02}.a-rather-long-name.example")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let own = authority.ecdsa("a", &hosts);
    let server = built(vec![site(&[], fixed([&own]))]);
    let sent = |offered: &[&'static dyn rustls::compress::CertDecompressor]| {
        let mut client = authority.client(&[]);
        client.cert_decompressors = offered.to_vec();
        let met = meet(&Arc::new(client), hosts[0], &server).unwrap();
        assert_eq!(met.shown(), own.chain()[0]);
        met.sent_bytes
    };
    let whole = sent(&[]);
    for algorithm in [rustls::compress::BROTLI_DECOMPRESSOR, rustls::compress::ZLIB_DECOMPRESSOR] {
        let compressed = sent(&[algorithm]);
        assert!(compressed + 1000 < whole, "{algorithm:?}: {compressed} bytes, {whole} without");
    }
}
