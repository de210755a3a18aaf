//! One name with its certificate and what is noted of it.
//!
//! In: files, results of attempts, the time. Out: what is due next, and what an operator sees. The thread has one of these for each name,
//! and nothing else changes it. Deliberately absent: the authority, and the moments themselves (`schedule.rs`).

use std::sync::Arc;
use std::time::Duration;

use instant_acme::CertificateIdentifier;
use larder_http::time::WallTime;
use larder_tls::KeyKind;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::task::AbortHandle;

use crate::error::{Failure, FailureKind};
use crate::event::{Event, Report};
use crate::facts::OrderedFacts;
use crate::order::Issued;
use crate::record::{FailureRecord, OrderRecord, Record, SuggestionRecord};
use crate::schedule::{self, Known, Lifetime, Next, RenewalWindow};
use crate::settings::{AcmeSettings, ChallengeKind};
use crate::status::{CertificateStatus, LastFailure};
use crate::storage::{Found, Stamp, Storage, StorageError};

/// The certificate that is served.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    lifetime: Lifetime,
    key: KeyKind,
    pub(crate) identifier: Option<CertificateIdentifier<'static>>,
}

impl Held {
    fn of(facts: &OrderedFacts) -> Self {
        Self { lifetime: facts.lifetime, key: facts.key, identifier: facts.identifier.clone() }
    }

    fn name_at_authority(&self) -> Option<String> {
        self.identifier.as_ref().map(ToString::to_string)
    }
}

/// A certificate that is to be served from now on.
pub(crate) type Served = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// See the head of the file.
pub(crate) struct Managed {
    pub(crate) name: String,
    pub(crate) held: Option<Held>,
    pub(crate) record: Record,
    /// An operator wants a new certificate.
    pub(crate) asked: bool,
    /// What lies there is damaged, and is moved aside before an order.
    pub(crate) damaged: Option<String>,
    /// The files could not be read. They may be good, and are not replaced.
    pub(crate) unreadable: bool,
    /// The order or question under way.
    pub(crate) job: Option<AbortHandle>,
    /// The job is an order.
    pub(crate) orders: bool,
    stamp: Stamp,
}

impl Managed {
    /// Reads what lies under `name`; the second value is what is to be served. Where this process `leads`, what a
    /// crash has left is completed, and notes that are damaged are moved aside.
    pub(crate) fn load(
        storage: &Storage,
        settings: &AcmeSettings,
        name: &str,
        leads: bool,
        report: &Report,
    ) -> (Self, Option<Served>) {
        if leads && let Err(error) = storage.complete(name) {
            report(Event::Storage { failure: error.into() });
        }
        let stamp = storage.stamp(name);
        let noted = noted(storage, name, leads, report);
        let unreadable = noted.is_err();
        let mut record = noted.unwrap_or_else(|error| {
            report(Event::Storage { failure: error.into() });
            Record::default()
        });
        if record.directory.is_empty() {
            record.directory.clone_from(&settings.directory_url);
        }
        let mut managed = Self {
            name: name.to_owned(),
            held: None,
            record,
            asked: false,
            damaged: None,
            unreadable,
            job: None,
            orders: false,
            stamp,
        };
        let mut served = None;
        match storage.certificate(name) {
            Ok(Found::Pair(pair)) => {
                managed.held = Some(Held::of(&pair.facts));
                served = Some((pair.chain, pair.key));
            }
            Ok(Found::Nothing) => {}
            Ok(Found::Damaged(reason)) => managed.damaged = Some(reason),
            Err(error) => {
                managed.unreadable = true;
                report(Event::Storage { failure: error.into() });
            }
        }
        (managed, served)
    }

    /// Whether another process has replaced the files since they were read.
    pub(crate) fn has_changed(&self, storage: &Storage) -> bool {
        storage.stamp(&self.name) != self.stamp
    }

    /// When a certificate is asked for next.
    pub(crate) fn next(&self, settings: &AcmeSettings, now: WallTime) -> Next {
        schedule::next(&self.known(settings), now)
    }

    fn known(&self, settings: &AcmeSettings) -> Known {
        let certificate = self.held.as_ref().and_then(Held::name_at_authority);
        Known {
            lifetime: self.held.as_ref().map(|held| held.lifetime),
            other_authority: self.record.directory != settings.directory_url,
            suggestion: self.record.suggestion.as_ref().and_then(|noted| noted.about(certificate.as_deref())),
            issued: self.record.issued_ms.map(WallTime),
            failure: self.record.failure.as_ref().and_then(|failure| failure.wait(&settings.directory_url)),
            asked: self.asked,
            asked_before: self.record.was_asked,
        }
    }

    /// When the authority is asked for its window; `None` where it cannot be.
    pub(crate) fn ask_at(&self, settings: &AcmeSettings) -> Option<WallTime> {
        let can_ask = self.record.directory == settings.directory_url
            && self.held.as_ref().is_some_and(|held| held.identifier.is_some());
        can_ask.then_some(WallTime(self.record.ask_ms))
    }

    /// The proof of the next attempt: the one that succeeded last, and after each failed proof the next in the list.
    pub(crate) fn proof(&self, settings: &AcmeSettings) -> ChallengeKind {
        let proofs = settings.proofs();
        let first = proofs.iter().position(|proof| Some(*proof) == self.record.proof).unwrap_or(0);
        let failed = usize::try_from(self.record.failed_proofs).unwrap_or(0);
        let place = first.wrapping_add(failed) % proofs.len().max(1);
        proofs.get(place).copied().unwrap_or(ChallengeKind::Http01)
    }

    /// What an order replaces: not a certificate of another authority.
    pub(crate) fn replaces(&self, settings: &AcmeSettings) -> Option<CertificateIdentifier<'static>> {
        let is_same = self.record.directory == settings.directory_url;
        self.held.as_ref().filter(|_| is_same)?.identifier.clone()
    }

    /// There is a new certificate.
    pub(crate) fn issued(
        &mut self,
        issued: Issued,
        storage: &Storage,
        settings: &AcmeSettings,
        now: WallTime,
    ) -> Served {
        self.held = Some(Held::of(&issued.pair.facts));
        self.stamp = storage.stamp(&self.name);
        self.asked = false;
        self.record = Record {
            directory: settings.directory_url.clone(),
            issued_ms: Some(now.0),
            proof: issued.proof.or(self.record.proof),
            ..Record::default()
        };
        (issued.pair.chain, issued.pair.key)
    }

    /// An attempt has failed; how long nothing is tried.
    pub(crate) fn failed(
        &mut self,
        failure: &Failure,
        settings: &AcmeSettings,
        now: WallTime,
        random: u64,
    ) -> Duration {
        self.record.was_asked |= std::mem::take(&mut self.asked);
        self.record.failures = self.record.failures.saturating_add(1);
        if failure.kind == FailureKind::Proof {
            self.record.failed_proofs = self.record.failed_proofs.saturating_add(1);
        }
        let wait = schedule::wait(self.record.failures, failure.retry_after, random);
        self.record.failure = Some(FailureRecord::new(&settings.directory_url, failure, now, wait));
        wait
    }

    /// The authority has answered when it wants a renewal: a window, or `None` where it has none.
    pub(crate) fn suggested(
        &mut self,
        window: Option<RenewalWindow>,
        retry_after: Option<Duration>,
        now: WallTime,
        random: u64,
    ) {
        self.record.ask_ms = schedule::later(now, schedule::ask_again(retry_after)).0;
        let Some(certificate) = self.held.as_ref().and_then(Held::name_at_authority) else { return };
        let before = self.record.suggestion.as_ref().and_then(|noted| noted.about(Some(&certificate)));
        let chosen = window.and_then(|window| schedule::choose(window, before, random));
        self.record.suggestion = chosen.map(|chosen| SuggestionRecord::new(certificate, chosen));
    }

    /// Notes from before the clock went back count from now. They would last until that time comes again otherwise.
    pub(crate) fn settle(&mut self, now: WallTime) {
        if let Some(failure) = &mut self.record.failure {
            failure.settle(now);
        }
        let latest = schedule::later(now, schedule::ask_again(Some(Duration::MAX)));
        self.record.ask_ms = self.record.ask_ms.min(latest.0);
    }

    /// What an operator sees. `leads` says whether this process orders.
    pub(crate) fn status(
        &self,
        settings: &AcmeSettings,
        now: WallTime,
        leads: bool,
    ) -> Arc<CertificateStatus> {
        let waits = leads && !self.unreadable && !self.orders;
        Arc::new(CertificateStatus {
            name: self.name.clone(),
            lifetime: self.held.as_ref().map(|held| held.lifetime),
            key: self.held.as_ref().map(|held| held.key),
            directory_url: self.held.as_ref().map(|_| self.record.directory.clone()),
            next: waits.then(|| self.next(settings, now)),
            is_ordering: self.orders,
            failures: self.record.failures,
            last_failure: self
                .record
                .failure
                .as_ref()
                .map(|noted| LastFailure { at: noted.at(), failure: noted.failure() }),
        })
    }
}

/// What is noted of a name. Notes that are damaged count for nothing.
///
/// # Errors
/// A note is there and cannot be read.
fn noted(storage: &Storage, name: &str, leads: bool, report: &Report) -> Result<Record, StorageError> {
    let (record, aside) = storage.state::<Record>(name, leads)?;
    if let Some(aside) = aside {
        report(aside.into());
    }
    match if leads { landed(storage, name)? } else { None } {
        // The state from before the crash is that of the certificate before.
        Some(order) => Ok(Record { directory: order.directory, ..Record::default() }),
        None => Ok(record),
    }
}

/// The order whose certificate is stored, where a crash came before that was noted.
///
/// # Errors
/// The note of it is there and cannot be read.
fn landed(storage: &Storage, name: &str) -> Result<Option<OrderRecord>, StorageError> {
    let order = storage.order::<OrderRecord>(name)?;
    let is_landed = !order.directory.is_empty() && storage.next_key(name).is_ok_and(|key| key.is_none());
    Ok(is_landed.then_some(order))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Why;

    const NOW: WallTime = WallTime::from_secs(1_800_000_000);
    const HOUR: Duration = Duration::from_secs(3600);

    /// A name without a certificate.
    fn managed(challenges: &[ChallengeKind]) -> (Managed, AcmeSettings) {
        let dir = tempfile::tempdir().unwrap();
        let settings = AcmeSettings {
            directory_url: "https://ca.example/dir".to_owned(),
            ca_file: None,
            contact: Vec::new(),
            dir: dir.path().to_owned(),
            names: vec!["a.example".to_owned()],
            challenges: challenges.to_vec(),
            profile: None,
            external_account: None,
        };
        let report: Report = Arc::new(|event| panic!("{event}"));
        let (managed, served) =
            Managed::load(&Storage::open(dir.path()).unwrap(), &settings, "a.example", true, &report);
        assert!(served.is_none());
        (managed, settings)
    }

    #[test]
    fn each_failed_proof_leads_to_the_next_kind_and_other_failures_do_not() {
        use ChallengeKind::{Http01, TlsAlpn01};
        let (mut managed, settings) = managed(&[]);
        let mut tried = Vec::new();
        for kind in [FailureKind::Unreachable, FailureKind::Proof, FailureKind::Refused, FailureKind::Proof] {
            tried.push(managed.proof(&settings));
            managed.failed(&Failure::new(kind, "x"), &settings, NOW, 0);
        }
        assert_eq!(tried, [TlsAlpn01, TlsAlpn01, Http01, Http01]);
        assert_eq!(managed.proof(&settings), TlsAlpn01);
        // The one that has succeeded is first, where it is still wanted.
        managed.record.failed_proofs = 0;
        managed.record.proof = Some(Http01);
        assert_eq!(managed.proof(&settings), Http01);
        let (mut managed, settings) = self::managed(&[TlsAlpn01]);
        managed.record.proof = Some(Http01);
        assert_eq!(managed.proof(&settings), TlsAlpn01);
    }

    #[test]
    fn what_was_noted_while_the_clock_was_ahead_lasts_no_longer_than_otherwise() {
        let (mut managed, settings) = managed(&[]);
        let ahead = schedule::later(NOW, HOUR * 24 * 365);
        managed.failed(&Failure::new(FailureKind::Proof, "x"), &settings, ahead, 0);
        managed.suggested(None, Some(HOUR), ahead, 0);
        managed.settle(NOW);
        let next = managed.next(&settings, NOW);
        assert_eq!((next.why, next.at), (Why::Retry, schedule::later(NOW, Duration::from_secs(60))));
        assert_eq!(managed.record.ask_ms, schedule::later(NOW, HOUR * 24).0);
        // Time goes on, and both come.
        let soon = schedule::later(NOW, HOUR * 24);
        managed.settle(soon);
        assert!(managed.next(&settings, soon).at <= soon && managed.record.ask_ms <= soon.0);
    }

    #[test]
    fn a_certificate_whose_state_was_lost_in_a_crash_is_of_the_authority_of_its_order() {
        let (dir, report): (_, Report) = (tempfile::tempdir().unwrap(), Arc::new(|event| panic!("{event}")));
        let (_, settings) = managed(&[]);
        let storage = Storage::open(dir.path()).unwrap();
        let load = || Managed::load(&storage, &settings, "a.example", true, &report).0.record.directory;
        let of = |directory: &str| OrderRecord { directory: directory.to_owned(), ..OrderRecord::default() };
        let before = Record { directory: "https://before.example/".to_owned(), ..Record::default() };
        storage.save_state("a.example", &before).unwrap();
        storage.save_next_key("a.example", "x").unwrap();
        storage.save_order("a.example", &of("https://after.example/")).unwrap();
        assert_eq!(load(), "https://before.example/", "the order has not landed");
        storage.take_next_key("a.example").unwrap();
        assert_eq!(load(), "https://after.example/");
        storage.forget_order("a.example").unwrap();
        assert_eq!(load(), "https://before.example/");
    }

    #[test]
    fn a_note_that_cannot_be_read_is_left_alone_and_nothing_is_ordered_until_it_can() {
        let dir = tempfile::tempdir().unwrap();
        let (_, settings) = managed(&[]);
        let (sender, events) = std::sync::mpsc::channel();
        let report: Report = Arc::new(move |event| sender.send(event).unwrap());
        let storage = Storage::open(dir.path()).unwrap();
        for file in ["state.json", "order.json"] {
            let path = dir.path().join("certs/a.example").join(file);
            // Root may open every file, but no directory can be read as one.
            std::fs::create_dir_all(&path).unwrap();
            let (managed, _) = Managed::load(&storage, &settings, "a.example", true, &report);
            assert!(managed.unreadable && !storage.is_readable("a.example"), "{file}");
            assert_eq!(managed.status(&settings, NOW, true).next, None);
            let told: Vec<_> = events.try_iter().collect();
            assert!(matches!(told[..], [Event::Storage { .. }]), "{file}: {told:?}");
            assert!(path.is_dir());
            std::fs::remove_dir(&path).unwrap();
            assert!(storage.is_readable("a.example"));
            assert!(!Managed::load(&storage, &settings, "a.example", true, &report).0.unreadable);
            assert_eq!(events.try_iter().count(), 0);
        }
    }

    #[test]
    fn a_failure_at_another_authority_delays_nothing() {
        let (mut managed, mut settings) = managed(&[]);
        managed.failed(&Failure::new(FailureKind::Proof, "x"), &settings, NOW, 0);
        assert_eq!(managed.next(&settings, NOW).why, Why::Retry);
        settings.directory_url = "https://other.example/dir".to_owned();
        assert_eq!(managed.next(&settings, NOW), Next { at: NOW, why: Why::Missing });
    }
}
