//! What is wrong with a chain or a key is said, all of it at once.

use super::*;

/// What is told of `files`, without the folder's name.
fn told(authority: &Authority, files: &IdentityFiles) -> Vec<String> {
    let folder = format!("{}/", authority.files.path().display());
    let faults = read(files).err().unwrap_or_default();
    faults.iter().map(|fault| fault.to_string().replace(&folder, "")).collect()
}

#[test]
fn a_good_one_is_read_with_what_stands_in_it() {
    let authority = Authority::new();
    let ecdsa = authority.ecdsa("a", &["a.example", "*.b.example", "192.0.2.1"]);
    assert_eq!(ecdsa.facts.key.to_string(), "ECDSA P-256");
    assert_eq!(crate::date(ecdsa.facts.not_after), "2028-01-01");
    assert_eq!(authority.rsa("r", &["a.example"]).facts.key.to_string(), "RSA 2048");
    for (host, is_covered) in [
        ("a.example", true),
        ("b.example", false),
        ("x.b.example", true),
        ("x.y.b.example", false),
        ("*.b.example", true),
        ("*.x.b.example", false),
        ("192.0.2.1", true),
        ("192.0.2.2", false),
        ("x.a.example", false),
    ] {
        assert_eq!(ecdsa.facts.covers(host), is_covered, "{host}");
    }
    let hosts = ["a.example", "c.example", "x.b.example"].map(str::to_owned);
    assert_eq!(uncovered(&hosts, &[ecdsa]), ["c.example"]);
}

#[test]
fn what_clients_would_refuse_is_refused() {
    let authority = Authority::new();
    let ecdsa = |name: &str, wish: fn(&mut CertificateParams)| {
        authority.sign(name, &["a.example"], &PKCS_ECDSA_P256_SHA256, wish)
    };
    let old = ecdsa("old", |params| params.not_after = rcgen::date_time_ymd(2026, 6, 1));
    assert_eq!(told(&authority, &old), ["old.pem: expired on 2026-06-01"]);
    let early = ecdsa("early", |params| params.not_before = rcgen::date_time_ymd(2027, 12, 1));
    assert_eq!(told(&authority, &early), ["early.pem: not valid before 2027-12-01"]);
    let staple = ecdsa("staple", |params| {
        let feature =
            rcgen::CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 24], vec![0x30, 3, 2, 1, 5]);
        params.custom_extensions.push(feature);
    });
    assert_eq!(told(&authority, &staple), ["staple.pem: it asks for a stapled OCSP answer"]);

    let (one, two) = (ecdsa("one", |_| ()), ecdsa("two", |_| ()));
    let mixed = IdentityFiles { chain: one.chain.clone(), key: two.key.clone() };
    let expected = format!("two.key: the key of another certificate than {}", one.chain.display());
    let folder = format!("{}/", authority.files.path().display());
    assert_eq!(told(&authority, &mixed), [expected.replace(&folder, "")]);
    let both = IdentityFiles { chain: old.chain.clone(), key: two.key.clone() };
    assert_eq!(told(&authority, &both).len(), 2, "all at once");
}

#[test]
fn a_chain_has_to_hold_in_its_order() {
    let authority = Authority::new();
    let other = Authority::new();
    let files = authority.sign("a", &["a.example"], &PKCS_ECDSA_P256_SHA256, |_| ());
    let own = std::fs::read_to_string(&files.chain).unwrap();
    let check = |chain: &[&str], expected: &[&str]| {
        std::fs::write(&files.chain, chain.concat()).unwrap();
        let told: Vec<_> = told(&authority, &files);
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.contains(expected), "{told}");
        }
    };
    check(&[&own], &[]);
    check(&[&own, &authority.pem], &[]);
    check(
        &[&authority.pem, &own],
        &["certificate 2 is not the one that has signed certificate 1", "the key of another"],
    );
    // It has the same name, and another key.
    check(&[&own, &other.pem], &["the chain does not hold"]);
    check(&[&own, &own], &["certificate 2 is not the one that has signed certificate 1"]);
    check(&[&own.repeat(17)], &["17 certificates, which is no chain"]);
}

#[test]
fn what_cannot_be_read_is_told() {
    let authority = Authority::new();
    let good = authority.sign("a", &["a.example"], &PKCS_ECDSA_P256_SHA256, |_| ());
    let missing = IdentityFiles { chain: authority.file("no.pem"), key: authority.file("no.key") };
    let told_missing = told(&authority, &missing);
    assert_eq!(told_missing.len(), 2);
    assert!(
        told_missing.iter().all(|told| told.contains("cannot be read: No such file")),
        "{told_missing:?}"
    );
    let write = |text: &str| {
        let path = authority.file("x");
        std::fs::write(&path, text).unwrap();
        path
    };
    for (text, expected) in [
        ("", "no private key in it"),
        (
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "a key with a passphrase",
        ),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "a key that cannot be used"),
        ("-----BEGIN PRIVATE KEY-----\n!!\n-----END PRIVATE KEY-----\n", "no PEM"),
    ] {
        let files = IdentityFiles { chain: good.chain.clone(), key: write(text) };
        let told = told(&authority, &files);
        assert!(matches!(&told[..], [one] if one.contains(expected)), "{text}: {told:?}");
    }
    for (text, expected) in [
        ("", "no certificate in it"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "a certificate that cannot be read",
        ),
    ] {
        let files = IdentityFiles { chain: write(text), key: good.key.clone() };
        let told = told(&authority, &files);
        assert!(matches!(&told[..], [one] if one.contains(expected)), "{text}: {told:?}");
    }
    // A pair of which the half is written is refused wherever it is cut.
    let whole = std::fs::read_to_string(&good.chain).unwrap();
    for cut in (0..whole.trim_end().len()).step_by(7) {
        let files = IdentityFiles { chain: write(&whole[..cut]), key: good.key.clone() };
        assert!(read(&files).is_err(), "{cut}");
    }
}
