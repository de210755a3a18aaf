//! Crashes at each step of an order: a child process that aborts itself there, without a destructor, and what the next start makes of it.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use larder_acme::{Acme, AcmeSettings, Certificates, ChallengeKind, Event, Step, Surroundings};
use larder_http::time::Clock;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::business::Business;
use crate::serving::Proofs;

/// Tells this program that it is such a child, at which step it ends, and of what.
const CHILD: &str = "LARDER_ACME_CHILD";

struct Nowhere;

impl Certificates for Nowhere {
    fn install(&self, _: &str, _: Vec<CertificateDer<'static>>, _: PrivateKeyDer<'static>) {}
}

fn is_pair(chain: &[u8], key: &[u8]) -> bool {
    let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(key).unwrap();
    CertifiedKey::from_der(chain, key, &larder_tls::provider()).is_ok()
}

/// The child, when it is started as one: it renews the one certificate.
#[test]
fn child() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let [step, directory_url, ca_file, dir] = told.split('|').collect::<Vec<_>>().try_into().unwrap();
    let step = Step::ALL[step.parse::<usize>().unwrap()];
    // The authority accepts proofs without a look: it would look at the parent's ports.
    let proofs = Proofs::start();
    let around = Surroundings {
        certificates: Arc::new(Nowhere),
        challenges: Arc::clone(&proofs.challenges),
        clock: Clock::default(),
        report: Arc::new(move |event| match event {
            Event::Progress { step: now, .. } if now == step => std::process::abort(),
            _ => {}
        }),
    };
    let settings = AcmeSettings {
        directory_url: directory_url.to_owned(),
        ca_file: Some(PathBuf::from(ca_file)),
        contact: Vec::new(),
        dir: PathBuf::from(dir),
        names: vec!["a.example".to_owned()],
        challenges: vec![ChallengeKind::Http01],
        profile: None,
        external_account: None,
    };
    let acme = Acme::start(settings, around).unwrap();
    assert!(acme.renew_now("a.example"));
    std::thread::park_timeout(std::time::Duration::from_secs(30));
    panic!("it has not come to {step:?}");
}

#[test]
fn a_crash_at_any_step_leaves_what_can_be_served_and_orders_no_more_than_needed() {
    let Some(business) = Business::open(|options| options.always_valid = true) else { return };
    let larder = business.larder(&["a.example"]);
    larder.issued("a.example");
    let mut served = larder.served.of("a.example").unwrap();
    drop(larder);
    for (number, step) in Step::ALL.into_iter().enumerate() {
        let before = business.pebble.issued();
        let told = format!(
            "{number}|{}|{}|{}",
            business.pebble.directory_url(),
            business.pebble.ca_file().display(),
            business.file("").display()
        );
        let mut child = Command::new(std::env::current_exe().unwrap());
        let output =
            child.args(["--exact", "kills::child", "--nocapture"]).env(CHILD, told).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.signal().is_some(), "{step:?}: {said}");
        // The lock went with the process, and what lies there is served at once: the old pair, or the whole new one.
        let larder = business.larder(&["a.example"]);
        assert!(larder.acme.is_leading(), "{step:?}");
        let found = larder.served.of("a.example");
        let found = found.unwrap_or_else(|| panic!("{step:?}: nothing is served"));
        assert_eq!(found != served, step >= Step::ChainStored, "{step:?}");
        // Other programs that read the files find a pair as well.
        let chain = std::fs::read(business.file("certs/a.example/chain.pem")).unwrap();
        let key = std::fs::read(business.file("certs/a.example/key.pem")).unwrap();
        assert!(is_pair(&chain, &key), "{step:?}");
        larder.acme.renew_now("a.example");
        larder.issued("a.example");
        served = larder.served.of("a.example").unwrap();
        assert_ne!(found, served);
        // An order that the authority had begun to sign was gone on with, so that none is wasted.
        let issued = business.pebble.issued() - before;
        let expected = if step >= Step::ChainStored { 2 } else { 1 };
        assert_eq!(issued, expected, "{step:?}");
        assert!(!business.file("certs/a.example/next.pem").exists(), "{step:?}");
        assert!(!business.file("certs/a.example/order.json").exists(), "{step:?}");
    }
}
