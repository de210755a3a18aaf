//! A business with names, an authority, and a larder that is to be seen from outside.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use larder_acme::{
    Acme, AcmeSettings, CertificateStatus, Certificates, ChallengeKind, Challenges, Event, Failure, Step,
    Surroundings,
};
use larder_http::time::Clock;
use larder_testkit::pebble::{Pebble, PebbleOptions};
use parking_lot::{Condvar, Mutex};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tempfile::TempDir;

use crate::serving::Proofs;

/// Longest wait for an event.
const PATIENCE: Duration = Duration::from_secs(40);
/// As long as larder waits after a first failure.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// What is served: the newest chain of each name, in DER.
#[derive(Debug, Default)]
pub(crate) struct Served(Mutex<HashMap<String, Vec<u8>>>);

impl Certificates for Served {
    fn install(&self, name: &str, chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) {
        let leaf = chain[0].to_vec();
        CertifiedKey::from_der(chain, key, &larder_tls::provider()).expect("a pair");
        self.0.lock().insert(name.to_owned(), leaf);
    }
}

impl Served {
    pub(crate) fn of(&self, name: &str) -> Option<Vec<u8>> {
        self.0.lock().get(name).cloned()
    }
}

pub(crate) struct Business {
    pub(crate) pebble: Pebble,
    pub(crate) proofs: Proofs,
    pub(crate) clock: Clock,
    pub(crate) dir: TempDir,
}

/// A larder of it.
pub(crate) struct Larder {
    pub(crate) acme: Acme,
    pub(crate) served: Arc<Served>,
    events: Receiver<Event>,
    gate: Arc<Gate>,
}

/// Where orders stand still until they are released.
#[derive(Default)]
struct Gate {
    step: Mutex<Option<Step>>,
    released: Condvar,
}

impl Gate {
    fn pass(&self, now: Step) {
        let mut step = self.step.lock();
        while *step == Some(now) {
            assert!(!self.released.wait_for(&mut step, PATIENCE).timed_out(), "not released");
        }
    }
}

impl Business {
    /// `None` where there is no Pebble; it has said why.
    pub(crate) fn open(change: impl FnOnce(&mut PebbleOptions)) -> Option<Self> {
        static SAID: OnceLock<()> = OnceLock::new();
        let proofs = Proofs::start();
        let mut options = PebbleOptions {
            http_port: proofs.http_port,
            tls_port: proofs.tls_port,
            ..PebbleOptions::default()
        };
        change(&mut options);
        match Pebble::start(options) {
            Ok(pebble) => {
                Some(Self { pebble, proofs, clock: Clock::default(), dir: tempfile::tempdir().unwrap() })
            }
            Err(reason) => {
                SAID.get_or_init(|| println!("skipped: {reason}"));
                None
            }
        }
    }

    pub(crate) fn settings(&self, names: &[&str], challenges: &[ChallengeKind]) -> AcmeSettings {
        AcmeSettings {
            directory_url: self.pebble.directory_url(),
            ca_file: Some(self.pebble.ca_file()),
            contact: Vec::new(),
            dir: self.dir.path().join("acme"),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            challenges: challenges.to_vec(),
            profile: None,
            external_account: None,
        }
    }

    pub(crate) fn start(&self, settings: AcmeSettings) -> Larder {
        Larder::start(settings, &self.proofs.challenges, &self.clock)
    }

    /// A larder with these names, by HTTP-01.
    pub(crate) fn larder(&self, names: &[&str]) -> Larder {
        self.start(self.settings(names, &[ChallengeKind::Http01]))
    }

    /// A file below the directory.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.dir.path().join("acme").join(path)
    }

    pub(crate) fn show_proofs(&self, are_shown: bool) {
        self.proofs.are_shown.store(are_shown, Ordering::Relaxed);
    }
}

impl Larder {
    pub(crate) fn start(settings: AcmeSettings, challenges: &Arc<Challenges>, clock: &Clock) -> Self {
        let (sender, events): (Sender<Event>, _) = channel();
        let (served, gate) = (Arc::new(Served::default()), Arc::new(Gate::default()));
        let passed = Arc::clone(&gate);
        let around = Surroundings {
            certificates: Arc::clone(&served) as Arc<dyn Certificates>,
            challenges: Arc::clone(challenges),
            clock: clock.clone(),
            report: Arc::new(move |event| {
                let step = if let Event::Progress { step, .. } = &event { Some(*step) } else { None };
                drop(sender.send(event));
                if let Some(step) = step {
                    passed.pass(step);
                }
            }),
        };
        Self { acme: Acme::start(settings, around).unwrap(), served, events, gate }
    }

    /// The first event from here on that `choose` makes something of.
    #[track_caller]
    pub(crate) fn until<T>(&self, choose: impl Fn(&Event) -> Option<T>) -> T {
        let (begun, mut seen) = (Instant::now(), Vec::new());
        loop {
            let Ok(event) = self.events.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) else {
                panic!("it does not happen; what does: {seen:#?}; {:#?}", self.acme.status());
            };
            if let Some(chosen) = choose(&event) {
                return chosen;
            }
            seen.push(event);
        }
    }

    /// A new certificate; whether the authority knows that it replaces one.
    #[track_caller]
    pub(crate) fn issued(&self, wanted: &str) -> bool {
        self.until(|event| match event {
            Event::Issued { name, replaces, .. } if name == wanted => Some(*replaces),
            _ => None,
        })
    }

    /// A failed attempt.
    #[track_caller]
    pub(crate) fn failed(&self, wanted: &str) -> (Failure, Duration) {
        self.until(|event| match event {
            Event::Failed { name, failure, wait, .. } if name == wanted => Some((failure.clone(), *wait)),
            _ => None,
        })
    }

    pub(crate) fn status(&self, name: &str) -> Arc<CertificateStatus> {
        let all = self.acme.status();
        all.into_iter().find(|status| status.name == name).expect("a status")
    }

    /// Attempts with this result.
    pub(crate) fn count(&self, result: &str) -> u64 {
        self.acme.orders().into_iter().find(|(known, _)| *known == result).expect("a result").1
    }

    /// From now on orders stand still after `step`.
    pub(crate) fn hold_at(&self, step: Step) {
        *self.gate.step.lock() = Some(step);
    }

    /// They go on.
    pub(crate) fn release(&self) {
        *self.gate.step.lock() = None;
        self.gate.released.notify_all();
    }

    /// Has it look again and again until `is_so`.
    #[track_caller]
    pub(crate) fn look_until(&self, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < PATIENCE, "it does not happen");
            self.acme.look();
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Moves the clock and has it looked at.
    pub(crate) fn advance(&self, business: &Business, by: Duration) {
        business.clock.advance(by);
        self.acme.look();
    }
}
