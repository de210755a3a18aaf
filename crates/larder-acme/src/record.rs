//! What is noted of a name beside its certificate, so that a restart neither forgets a wait nor asks twice (`state.json`, `order.json`).
//!
//! In: what happened. Out: the same after a restart, as far as it still fits: a note of another certificate, or of another authority, counts
//! for nothing. Moments are wall time in milliseconds since 1970.

use std::time::Duration;

use larder_http::time::WallTime;
use serde::{Deserialize, Serialize};

use crate::error::{Failure, FailureKind};
use crate::schedule::{FailureWait, RenewalWindow, Suggestion};
use crate::settings::ChallengeKind;

/// `state.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Record {
    /// Where the certificate is from.
    pub(crate) directory: String,
    /// When it was stored.
    pub(crate) issued_ms: Option<u64>,
    /// The proof that succeeded last.
    pub(crate) proof: Option<ChallengeKind>,
    /// Failures since then.
    pub(crate) failures: u32,
    /// Those of them that were failed proofs.
    pub(crate) failed_proofs: u32,
    pub(crate) failure: Option<FailureRecord>,
    /// An operator had asked for what has failed.
    pub(crate) was_asked: bool,
    pub(crate) suggestion: Option<SuggestionRecord>,
    /// When the authority is asked for its window again.
    pub(crate) ask_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FailureRecord {
    /// Of which authority.
    directory: String,
    at_ms: u64,
    wait_ms: u64,
    kind: String,
    text: String,
}

impl FailureRecord {
    pub(crate) fn new(directory: &str, failure: &Failure, at: WallTime, wait: Duration) -> Self {
        Self {
            directory: directory.to_owned(),
            at_ms: at.0,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            kind: failure.kind.token().to_owned(),
            text: failure.text.clone(),
        }
    }

    pub(crate) fn failure(&self) -> Failure {
        let kind = FailureKind::of_token(&self.kind).unwrap_or(FailureKind::Internal);
        Failure::new(kind, &self.text)
    }

    pub(crate) fn at(&self) -> WallTime {
        WallTime(self.at_ms)
    }

    /// What is waited for, where the authority is still the same.
    pub(crate) fn wait(&self, directory: &str) -> Option<FailureWait> {
        let wait = Duration::from_millis(self.wait_ms);
        (self.directory == directory).then_some(FailureWait { failed: self.at(), wait })
    }

    /// The clock says less than when this was noted: it counts from now.
    pub(crate) fn settle(&mut self, now: WallTime) {
        self.at_ms = self.at_ms.min(now.0);
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SuggestionRecord {
    /// Which certificate it is about.
    certificate: String,
    start_ms: u64,
    end_ms: u64,
    moment_ms: u64,
}

impl SuggestionRecord {
    pub(crate) fn new(certificate: String, suggestion: Suggestion) -> Self {
        Self {
            certificate,
            start_ms: suggestion.window.start.0,
            end_ms: suggestion.window.end.0,
            moment_ms: suggestion.moment.0,
        }
    }

    /// The suggestion, where it is about `certificate`.
    pub(crate) fn about(&self, certificate: Option<&str>) -> Option<Suggestion> {
        let window = RenewalWindow { start: WallTime(self.start_ms), end: WallTime(self.end_ms) };
        let is_about = certificate == Some(self.certificate.as_str());
        is_about.then_some(Suggestion { window, moment: WallTime(self.moment_ms) })
    }
}

/// `order.json`: an order that was proven, and is asked for its certificate. A crash here would cost one of the few certificates that authorities
/// issue for a name in a week, so the next start goes on with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OrderRecord {
    /// Whose.
    pub(crate) directory: String,
    /// Of which account.
    pub(crate) account: String,
    /// Where the order is.
    pub(crate) url: String,
    /// How often it was gone on with.
    pub(crate) resumed: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_others_count_for_nothing() {
        let failure = Failure::new(FailureKind::Proof, "x");
        let record =
            FailureRecord::new("https://a.example/dir", &failure, WallTime(5), Duration::from_secs(60));
        assert!(record.wait("https://a.example/dir").is_some());
        assert!(record.wait("https://b.example/dir").is_none());
        assert_eq!(record.failure(), failure);
        let window = RenewalWindow { start: WallTime(1), end: WallTime(3) };
        let suggestion = Suggestion { window, moment: WallTime(2) };
        let record = SuggestionRecord::new("a.b".to_owned(), suggestion);
        assert_eq!(record.about(Some("a.b")), Some(suggestion));
        assert!(record.about(Some("a.c")).is_none() && record.about(None).is_none());
    }

    #[test]
    fn what_an_older_or_newer_larder_wrote_is_read() {
        let read = |text: &str| serde_json::from_str::<Record>(text);
        assert_eq!(read("{}").unwrap(), Record::default());
        assert_eq!(read(r#"{"failures": 3, "later": [1]}"#).unwrap().failures, 3);
    }
}
