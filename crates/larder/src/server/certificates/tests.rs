//! Files that are renewed in place, and certificates that expire.

use std::path::Path;

use larder_observe::Exposition;
use larder_testkit::certificates::Certificates;

use super::*;

fn checked(folder: &Path) -> Checked {
    let text = "listen = { address = \"127.0.0.1:0\", tls = true }\n[origins.app]\nservers = \"http://127.0.0.1:1\"\n\
                [[site]]\nhosts = \"localhost\"\norigin = \"app\"\ntls = { cert = \"server.pem\", key = \"server.key\" }\n";
    larder_config::parse(text, "larder.toml", folder).unwrap()
}

fn at(seconds: u64) -> WallTime {
    WallTime::from_secs(1_800_000_000 + seconds)
}

#[test]
fn files_are_looked_at_each_minute_and_taken_where_they_are_good() {
    let certificates = Certificates::new();
    let checked = checked(certificates.folder());
    let diagnostics = Diagnostics::silent();
    let (mut watch, _) = CertificateWatch::start(&checked, OrderedCertificates::default(), at(0)).unwrap();
    let first = watch.server().unwrap();
    let is_first = |watch: &CertificateWatch| Arc::ptr_eq(&watch.server().unwrap(), &first);
    assert!(!watch.look(&checked.config, at(60), &diagnostics), "nothing has changed");
    let (pem, key) = certificates.another("localhost");
    std::fs::write(certificates.file("server.pem"), &pem).unwrap();
    assert!(!watch.look(&checked.config, at(119), &diagnostics), "it is no minute later");
    assert!(!watch.look(&checked.config, at(120), &diagnostics), "half of a pair");
    assert!(!watch.look(&checked.config, at(180), &diagnostics));
    assert!(is_first(&watch));
    std::fs::write(certificates.file("server.key"), &key).unwrap();
    assert!(watch.look(&checked.config, at(240), &diagnostics));
    assert!(!is_first(&watch));
    assert!(!watch.look(&checked.config, at(300), &diagnostics));
    // A clock that is set back does not keep it from looking.
    let (pem, key) = certificates.another("localhost");
    std::fs::write(certificates.file("server.pem"), pem).unwrap();
    std::fs::write(certificates.file("server.key"), key).unwrap();
    assert!(watch.look(&checked.config, at(0), &diagnostics));
    std::fs::remove_file(certificates.file("server.key")).unwrap();
    assert!(!watch.look(&checked.config, at(60), &diagnostics));
    assert!(watch.server().is_some(), "what was read stays");
}

#[test]
fn a_bad_pair_keeps_no_other_from_being_renewed() {
    let certificates = Certificates::new();
    let (pem, key) = certificates.another("other.example");
    std::fs::write(certificates.file("other.pem"), pem).unwrap();
    std::fs::write(certificates.file("other.key"), key).unwrap();
    let text = "listen = { address = \"127.0.0.1:0\", tls = true }\n[origins.app]\nservers = \"http://127.0.0.1:1\"\n\
                [[site]]\nhosts = \"localhost\"\norigin = \"app\"\ntls = { cert = \"server.pem\", key = \"server.key\" }\n\
                [[site]]\nhosts = \"other.example\"\norigin = \"app\"\ntls = { cert = \"other.pem\", key = \"other.key\" }\n";
    let checked = larder_config::parse(text, "larder.toml", certificates.folder()).unwrap();
    let diagnostics = Diagnostics::silent();
    let (mut watch, _) = CertificateWatch::start(&checked, OrderedCertificates::default(), at(0)).unwrap();
    let shown = |watch: &CertificateWatch, site: &str| {
        let pair = watch.draft.pairs.iter().find(|((_, pair), _)| pair.chain.ends_with(site));
        pair.unwrap().1.chain()[0].to_vec()
    };
    let (bad, good) = (shown(&watch, "server.pem"), shown(&watch, "other.pem"));
    std::fs::write(certificates.file("server.key"), "half of a k").unwrap();
    let (pem, key) = certificates.another("other.example");
    std::fs::write(certificates.file("other.pem"), pem).unwrap();
    std::fs::write(certificates.file("other.key"), key).unwrap();
    assert!(watch.look(&checked.config, at(60), &diagnostics));
    assert_eq!(shown(&watch, "server.pem"), bad);
    assert_ne!(shown(&watch, "other.pem"), good);
    assert!(!watch.look(&checked.config, at(120), &diagnostics));
    // One that is good by itself and not for the site is as bad.
    let write = |site: &str, host: &str| {
        let (pem, key) = certificates.another(host);
        std::fs::write(certificates.file(&format!("{site}.pem")), pem).unwrap();
        std::fs::write(certificates.file(&format!("{site}.key")), key).unwrap();
    };
    let good = shown(&watch, "other.pem");
    write("server", "elsewhere.example");
    write("other", "other.example");
    assert!(watch.look(&checked.config, at(180), &diagnostics));
    assert_eq!(shown(&watch, "server.pem"), bad);
    assert_ne!(shown(&watch, "other.pem"), good);
    assert!(!watch.look(&checked.config, at(240), &diagnostics));
    assert_eq!(shown(&watch, "server.pem"), bad);
    // Mended, it is taken.
    write("server", "localhost");
    assert!(watch.look(&checked.config, at(300), &diagnostics));
    assert_ne!(shown(&watch, "server.pem"), bad);
}

#[test]
fn bad_authorities_or_keys_of_tickets_keep_no_certificate_from_being_renewed_nor_the_other_way_about() {
    let certificates = Certificates::new();
    let authority = std::fs::read(certificates.file("ca.pem")).unwrap();
    let text = "listen = { address = \"127.0.0.1:0\", tls = true }\n[tls]\nticket_keys = \"tickets.key\"\n\
                [origins.app]\nservers = \"http://127.0.0.1:1\"\n\
                [[site]]\nhosts = \"localhost\"\norigin = \"app\"\ntls = { cert = \"server.pem\", key = \"server.key\" }\n\
                client_ca = \"staff.pem\"\n";
    let good = [("staff.pem", authority), ("tickets.key", "01".repeat(32).into_bytes())];
    for (name, bytes) in &good {
        std::fs::write(certificates.file(name), bytes).unwrap();
    }
    let checked = larder_config::parse(text, "larder.toml", certificates.folder()).unwrap();
    let diagnostics = Diagnostics::silent();
    let (mut watch, _) = CertificateWatch::start(&checked, OrderedCertificates::default(), at(0)).unwrap();
    let mut now = 0;
    let mut look = |watch: &mut CertificateWatch| {
        now += 60;
        watch.look(&checked.config, at(now), &diagnostics)
    };
    let renew = || {
        let (pem, key) = certificates.another("localhost");
        std::fs::write(certificates.file("server.pem"), pem).unwrap();
        std::fs::write(certificates.file("server.key"), key).unwrap();
    };
    let shown = |watch: &CertificateWatch| watch.draft.pairs.values().next().unwrap().chain()[0].to_vec();
    let policy = |watch: &CertificateWatch| watch.draft.policies.values().next().unwrap().clone();
    for (name, bytes) in &good {
        let (before, asked) = (shown(&watch), policy(&watch));
        std::fs::write(certificates.file(name), "half of a f").unwrap();
        assert!(!look(&mut watch), "{name}");
        renew();
        assert!(look(&mut watch), "{name}");
        assert_ne!(shown(&watch), before);
        assert!(policy(&watch).is_same(&asked), "clients are asked for what they were asked for");
        assert!(!look(&mut watch), "{name}");
        std::fs::write(certificates.file(name), bytes).unwrap();
        assert!(look(&mut watch), "all is well again");
    }
    // Authorities that have changed are in force, whatever else is wrong.
    let before = policy(&watch);
    std::fs::write(certificates.file("server.key"), "half of a k").unwrap();
    std::fs::copy(Certificates::new().file("ca.pem"), certificates.file("staff.pem")).unwrap();
    assert!(look(&mut watch));
    assert!(!policy(&watch).is_same(&before));
    // And so are keys of tickets.
    let before = watch.tickets().unwrap();
    std::fs::write(certificates.file("tickets.key"), "02".repeat(32)).unwrap();
    assert!(look(&mut watch));
    assert!(!watch.tickets().unwrap().is_same(&before));
    assert!(!look(&mut watch));
}

#[test]
fn the_end_of_a_certificate_is_near_by_the_setting_or_by_its_life() {
    const DAY: u64 = 24 * 60 * 60;
    let known = |life: u64, left: i64| {
        let path = Path::new("site.pem");
        let certificates = Certificates::new();
        let mut facts = larder_tls::CertificateFacts::read(&certificates.server).unwrap();
        let not_after = seconds(at(0)) + left * DAY as i64 + 10;
        let not_before = not_after - (life * DAY) as i64;
        (facts.not_before, facts.not_after) = (not_before, not_after);
        KnownCertificate { site: "a.example".to_owned(), path: path.to_owned(), facts }
    };
    let warning = Duration::from_secs(14 * DAY);
    for (life, left, is_near) in [
        (90, 14, false),
        (90, 13, true),
        (398, 13, true),
        (398, 14, false),
        (47, 8, false),
        (47, 7, true),
        (6, 1, false),
        (6, 0, true),
    ] {
        let told = expiry_warnings(&[known(life, left)], warning, at(0));
        assert_eq!(!told.is_empty(), is_near, "{left} of {life}");
    }
    let told = expiry_warnings(&[known(90, 3)], warning, at(0));
    assert_eq!(told[0].1, "the certificate site.pem of site a.example expires in 3 d, on 2027-01-18");
}

#[test]
fn a_file_that_several_sites_use_is_one_series_with_the_earliest_end() {
    let certificates = Certificates::new();
    let facts = larder_tls::CertificateFacts::read(&certificates.server).unwrap();
    let known = |site: &str, path: &str, not_after: i64| {
        let mut facts = facts.clone();
        facts.not_after = not_after;
        KnownCertificate { site: site.to_owned(), path: Path::new(path).to_owned(), facts }
    };
    let told = CertificatesTold::default();
    told.set(ShownCertificates {
        certificates: vec![
            known("a.example", "both.pem", 30),
            known("b.example", "both.pem", 20),
            known("b.example", "other.pem", 10),
            known("c.example", "both.pem", 40),
        ],
        ..ShownCertificates::default()
    });
    let mut out = Exposition::default();
    told.expose(&mut out);
    let text = out.finish();
    let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = [("both.pem", 20), ("other.pem", 10)].map(|(path, not_after)| {
        format!("larder_certificate_not_after_seconds{{certificate=\"{path}\"}} {not_after}")
    });
    assert_eq!(samples, expected);
}
