//! Orders that succeed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use larder_acme::{ChallengeKind, Event, ExternalAccount, FailureKind, Why};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::business::Business;

#[test]
fn an_order_by_http() {
    let Some(business) = Business::open(|options| options.retry_after = 1) else { return };
    let larder = business.larder(&["a.example"]);
    assert!(larder.acme.is_leading());
    assert!(!larder.issued("a.example"), "it replaces nothing");
    let stored = CertificateDer::pem_file_iter(business.file("certs/a.example/chain.pem")).unwrap();
    let stored: Vec<_> = stored.collect::<Result<_, _>>().unwrap();
    assert_eq!(larder.served.of("a.example"), Some(stored[0].to_vec()));
    assert!(stored.len() > 1, "those that vouch for it are there too");
    for file in ["certs/a.example/chain.pem", "certs/a.example/key.pem", "certs/a.example/state.json"] {
        let mode = fs::metadata(business.file(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    for gone in ["certs/a.example/next.pem", "certs/a.example/order.json"] {
        assert!(!business.file(gone).exists(), "{gone}");
    }
    assert_eq!(fs::read_dir(business.file("account")).unwrap().count(), 1);
    assert!(business.proofs.challenges.is_empty());
    let status = larder.status("a.example");
    assert_eq!(status.key.unwrap().to_string(), "ECDSA P-256");
    assert_eq!(status.directory_url, Some(business.pebble.directory_url()));
    assert!(status.failing().is_none() && status.lifetime.is_some());
    assert_eq!((larder.count("issued"), larder.count("proof")), (1, 0));
    // The authority is asked at once when it wants the next one.
    let next = larder.until(|event| match event {
        Event::Suggested { next, .. } => Some(*next),
        _ => None,
    });
    assert_eq!(next.why, Why::Suggested);
    let days = next.at.since(business.clock.now().wall).as_secs() / 86_400;
    assert!((58..=61).contains(&days), "{days}");
}

#[test]
fn an_order_by_tls() {
    let Some(business) = Business::open(|_| ()) else { return };
    let larder = business.start(business.settings(&["a.example"], &[ChallengeKind::TlsAlpn01]));
    larder.issued("a.example");
    assert!(larder.served.of("a.example").is_some() && business.proofs.challenges.is_empty());
    assert!(!business.pebble.log().contains("http-01 is now valid"), "{}", business.pebble.log());
}

#[test]
fn half_of_the_nonces_are_rejected() {
    let Some(business) = Business::open(|options| options.nonces_rejected = 50) else { return };
    let names = ["a.example", "b.example", "c.example", "d.example", "e.example", "f.example"];
    let larder = business.start(business.settings(&names, &[]));
    for _ in names {
        larder.until(|event| matches!(event, Event::Issued { .. }).then_some(()));
    }
    assert!(names.iter().all(|name| larder.served.of(name).is_some()));
    assert_eq!(larder.count("issued"), 6);
    assert_eq!(fs::read_dir(business.file("account")).unwrap().count(), 1);
    assert_eq!(business.pebble.log().matches("accounts in memory").count(), 1, "one account for all");
}

#[test]
fn a_profile_is_asked_for() {
    let Some(business) = Business::open(|options| options.has_short_profile = true) else { return };
    let mut settings = business.settings(&["a.example"], &[]);
    settings.profile = Some("shortlived".to_owned());
    let larder = business.start(settings.clone());
    larder.issued("a.example");
    let lifetime = larder.status("a.example").lifetime.unwrap();
    assert_eq!(lifetime.not_after.since(lifetime.not_before).as_secs().div_ceil(86_400), 6);
    // One that the authority does not have is its refusal, and costs nothing of what is served.
    settings.profile = Some("eternal".to_owned());
    larder.acme.reload(settings).unwrap();
    assert!(larder.acme.renew_now("a.example") && !larder.acme.renew_now("b.example"));
    let (failure, _) = larder.failed("a.example");
    assert_eq!(failure.kind, FailureKind::Refused);
    assert!(failure.text.contains("eternal"), "{failure}");
    assert_eq!(larder.status("a.example").failing(), Some(FailureKind::Refused));
    assert_eq!(larder.status("a.example").lifetime, Some(lifetime));
}

#[test]
fn contacts_that_have_changed_are_changed_at_the_authority() {
    let Some(business) = Business::open(|_| ()) else { return };
    let mut settings = business.settings(&["a.example"], &[ChallengeKind::Http01]);
    let larder = business.start(settings.clone());
    larder.issued("a.example");
    settings.contact = vec!["mailto:ops@example.com".to_owned()];
    larder.acme.reload(settings.clone()).unwrap();
    larder.acme.renew_now("a.example");
    larder.issued("a.example");
    let account = fs::read_dir(business.file("account")).unwrap().next().unwrap().unwrap().path();
    assert!(fs::read_to_string(account).unwrap().contains("mailto:ops@example.com"));
    // One that the authority does not take is its refusal.
    settings.contact = vec!["gopher:hole".to_owned()];
    larder.acme.reload(settings).unwrap();
    larder.acme.renew_now("a.example");
    assert_eq!(larder.failed("a.example").0.kind, FailureKind::Account);
    assert_eq!(business.pebble.log().matches("accounts in memory").count(), 1);
}

#[test]
fn an_external_account_is_shown() {
    // The key of RFC 7515's example, in both forms.
    let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
    let bytes = [
        3, 35, 53, 75, 43, 15, 165, 188, 131, 126, 6, 101, 119, 123, 166, 143, 90, 179, 40, 230, 240, 84,
        201, 40, 169, 15, 132, 178, 210, 80, 46, 191, 211, 251, 90, 146, 210, 6, 71, 239, 150, 138, 180, 195,
        119, 98, 61, 34, 61, 46, 33, 114, 5, 46, 79, 8, 192, 205, 154, 245, 103, 208, 128, 163,
    ];
    let Some(business) =
        Business::open(|options| options.external_account = Some(("shop-1".to_owned(), key.to_owned())))
    else {
        return;
    };
    let mut settings = business.settings(&["a.example"], &[]);
    let larder = business.start(settings.clone());
    let (failure, _) = larder.failed("a.example");
    assert_eq!(failure.kind, FailureKind::Account, "{failure}");
    settings.external_account = Some(ExternalAccount { id: "shop-1".to_owned(), key: bytes.to_vec() });
    larder.acme.reload(settings).unwrap();
    assert!(larder.acme.renew_now("a.example"));
    larder.issued("a.example");
    assert!(business.pebble.log().contains("Successful newAccount Binding"));
}
