//! Client certificates, revocation, and tickets that cross no policy.

use rcgen::{CertificateRevocationListParams, KeyIdMethod, RevokedCertParams, SerialNumber};

use super::*;

fn policy(authority: &Authority, is_required: bool, revoked: Vec<PathBuf>) -> ClientPolicy {
    let files = ClientPolicyFiles { authorities: authority.file("ca.pem"), revoked, is_required };
    ClientPolicy::read(&files, &provider()).unwrap()
}

fn with(policy: &ClientPolicy, identity: &Identity) -> SiteTls {
    SiteTls { policy: policy.clone(), ..site(&["a.example"], fixed([identity])) }
}

#[test]
fn a_site_may_ask_for_certificates_of_clients() {
    let (authority, other) = (Authority::new(), Authority::new());
    let own = authority.ecdsa("own", &["a.example"]);
    let staff = authority.sign("staff", &["staff"], &PKCS_ECDSA_P256_SHA256, |_| ());
    let stranger = other.sign("stranger", &["stranger"], &PKCS_ECDSA_P256_SHA256, |_| ());
    let (without, staff) = (Arc::new(authority.client(&[])), Arc::new(authority.client_with(&staff)));
    let stranger = Arc::new(authority.client_with(&stranger));
    let required = built(vec![with(&policy(&authority, true, Vec::new()), &own)]);
    let optional = built(vec![with(&policy(&authority, false, Vec::new()), &own)]);
    let met = |client: &Arc<ClientConfig>, server: &ServerTls| {
        meet(client, "a.example", server).map(|met| met.server.peer_certificates().is_some())
    };
    assert_eq!(met(&staff, &required), Ok(true));
    assert_eq!(met(&staff, &optional), Ok(true));
    assert_eq!(met(&without, &optional), Ok(false));
    assert_eq!(met(&without, &required), Err(AlertDescription::CertificateRequired));
    for server in [&required, &optional] {
        // Of an authority with the same name and another key.
        assert_eq!(met(&stranger, server), Err(AlertDescription::DecryptError));
    }
}

#[test]
fn a_revoked_certificate_is_refused() {
    let authority = Authority::new();
    let own = authority.ecdsa("own", &["a.example"]);
    let client = |name: &str, serial: u64| {
        let files = authority.sign(name, &["staff"], &PKCS_ECDSA_P256_SHA256, |params| {
            params.serial_number = Some(SerialNumber::from(serial));
        });
        Arc::new(authority.client_with(&files))
    };
    let (good, bad) = (client("good", 7), client("bad", 8));
    let revoked = RevokedCertParams {
        serial_number: SerialNumber::from(8_u64),
        revocation_time: rcgen::date_time_ymd(2026, 2, 2),
        reason_code: None,
        invalidity_date: None,
    };
    let list = CertificateRevocationListParams {
        this_update: rcgen::date_time_ymd(2026, 2, 2),
        next_update: rcgen::date_time_ymd(2036, 2, 2),
        crl_number: SerialNumber::from(1_u64),
        issuing_distribution_point: None,
        revoked_certs: vec![revoked],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let list = list.signed_by(&authority.issuer()).unwrap();
    let (pem, der) = (authority.file("list.pem"), authority.file("list.der"));
    std::fs::write(&pem, list.pem().unwrap()).unwrap();
    std::fs::write(&der, list.der()).unwrap();
    for path in [pem, der] {
        let server = built(vec![with(&policy(&authority, true, vec![path]), &own)]);
        assert!(meet(&good, "a.example", &server).is_ok());
        assert_eq!(meet(&bad, "a.example", &server).err(), Some(AlertDescription::CertificateRevoked));
    }
}

#[test]
fn a_session_is_resumed_under_its_policy_alone() {
    let authority = Authority::new();
    let own = authority.ecdsa("own", &["a.example"]);
    let staff = authority.sign("staff", &["staff"], &PKCS_ECDSA_P256_SHA256, |_| ());
    let keys = Arc::new(TicketKeys::random(std::time::Duration::from_secs(3600)).unwrap());
    let server = |policy: &ClientPolicy, tickets: Option<&Arc<TicketKeys>>| {
        let settings = ServerTlsSettings {
            sites: vec![with(policy, &own)],
            min_version: larder_http::message::TlsVersion::Tls12,
            tickets: tickets.cloned(),
            challenges: None,
        };
        ServerTls::new(settings, &provider()).unwrap()
    };
    let (none, optional, required) =
        (ClientPolicy::none(), policy(&authority, false, Vec::new()), policy(&authority, true, Vec::new()));
    for versions in [&[&rustls::version::TLS13][..], &[&rustls::version::TLS12]] {
        let client = || {
            let builder =
                ClientConfig::builder_with_provider(provider()).with_protocol_versions(versions).unwrap();
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
            let chain =
                CertificateDer::pem_file_iter(&staff.chain).unwrap().collect::<Result<_, _>>().unwrap();
            let key = PrivateKeyDer::from_pem_file(&staff.key).unwrap();
            Arc::new(builder.with_root_certificates(roots).with_client_auth_cert(chain, key).unwrap())
        };
        let is_resumed = |first: &ServerTls, second: &ServerTls| {
            let client = client();
            assert!(!meet(&client, "a.example", first).unwrap().is_resumed());
            meet(&client, "a.example", second).unwrap().is_resumed()
        };
        for policy in [&none, &optional, &required] {
            // Another worker, another larder, or the same after a reload. Whoever shows a certificate shows it each time.
            let is_open = policy.id == ClientPolicy::none().id;
            assert_eq!(is_resumed(&server(policy, Some(&keys)), &server(policy, Some(&keys))), is_open);
            assert!(!is_resumed(&server(policy, None), &server(policy, None)));
        }
        for (before, after) in [(&none, &required), (&none, &optional), (&optional, &required)] {
            assert!(!is_resumed(&server(before, Some(&keys)), &server(after, Some(&keys))));
        }
    }
    assert_ne!(optional.id, required.id);
    assert_eq!(required.id, policy(&authority, true, Vec::new()).id);
}

#[test]
fn what_is_wrong_with_the_files_of_a_policy_is_told() {
    let authority = Authority::new();
    let leaf = authority.sign("leaf", &["a"], &PKCS_ECDSA_P256_SHA256, |_| ());
    let told = |authorities: PathBuf, revoked: Vec<PathBuf>| {
        let files = ClientPolicyFiles { authorities, revoked, is_required: true };
        let faults = ClientPolicy::read(&files, &provider()).err().unwrap_or_default();
        faults.into_iter().map(|fault| (fault.file, fault.found)).collect::<Vec<_>>()
    };
    let (ca, missing) = (authority.file("ca.pem"), authority.file("missing"));
    assert_eq!(told(ca.clone(), Vec::new()), []);
    let [(ServerFile::ClientAuthorities, found), (ServerFile::Revoked, other)] =
        &told(missing.clone(), vec![missing])[..]
    else {
        panic!("all at once")
    };
    assert!(found.starts_with("cannot be read") && other.starts_with("cannot be read"), "{found} {other}");
    assert_eq!(told(leaf.key, Vec::new())[0].1, "no certificate in it");
    assert_eq!(told(ca.clone(), vec![ca])[0].1, "no list of revoked certificates in it");
}
