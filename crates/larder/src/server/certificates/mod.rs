//! The certificates of a running larder: read at start and at reloads, and looked at each minute, since they are renewed in place.
//!
//! In: a checked config, and time. Out: what listeners speak with. A pair that has changed and is good is taken for all connections from then on; where something is wrong with it,
//! what was read before stays, and that is said once. Open connections are left alone in any case.
//! Warns of certificates that expire soon, at start and once a day.

mod expiry;
mod told;

use std::sync::Arc;
use std::time::Duration;

use larder_config::{Checked, Config, Errors, Places};
use larder_http::time::WallTime;
use larder_observe::Diagnostics;
use larder_proxy::settings::SiteTlsSettings;
use larder_tls::server::{ServerTls, TicketKeys};

use super::ServerError;
use crate::wire::acme::OrderedCertificates;
use crate::wire::tls::{self, KnownCertificate, TlsDraft};
pub(super) use expiry::expiry_warnings;
use expiry::seconds;
pub(crate) use told::{CertificateList, CertificateTold};
pub(super) use told::{CertificatesTold, ShownCertificates};

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How often it is said that a certificate expires soon.
const WARN_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// What was read, and when it was looked at.
pub(super) struct CertificateWatch {
    draft: TlsDraft,
    /// Where certificates come that are ordered.
    ordered: OrderedCertificates,
    places: Places,
    looked: WallTime,
    warned: Option<WallTime>,
    /// Files that were found wrong, as they were then.
    refused: Option<u64>,
}

impl CertificateWatch {
    /// Reads everything.
    ///
    /// # Errors
    /// What is wrong with the files.
    pub(super) fn start(
        checked: &Checked,
        ordered: OrderedCertificates,
        now: WallTime,
    ) -> Result<(Self, Vec<Option<SiteTlsSettings>>), ServerError> {
        Self::read(checked, None, ordered, now)
    }

    /// The same for a new config, with the keys of tickets that are in use.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(super) fn next(
        &self,
        checked: &Checked,
        now: WallTime,
    ) -> Result<(Self, Vec<Option<SiteTlsSettings>>), ServerError> {
        Self::read(checked, Some(&self.draft), self.ordered.clone(), now)
    }

    fn read(
        checked: &Checked,
        before: Option<&TlsDraft>,
        ordered: OrderedCertificates,
        now: WallTime,
    ) -> Result<(Self, Vec<Option<SiteTlsSettings>>), ServerError> {
        let places = checked.places.clone();
        let mut draft = tls::draft(&checked.config, &places, before, false, &ordered, seconds(now))
            .map_err(ServerError::Certificates)?;
        let sites = std::mem::take(&mut draft.sites);
        Ok((Self { draft, ordered, places, looked: now, warned: None, refused: None }, sites))
    }

    /// What listeners speak with.
    pub(super) fn server(&self) -> Option<Arc<ServerTls>> {
        self.draft.server.clone()
    }

    /// What seals the tickets of clients.
    pub(super) fn tickets(&self) -> Option<Arc<TicketKeys>> {
        self.draft.tickets.as_ref().map(|tickets| Arc::clone(&tickets.keys))
    }

    /// What clients are shown.
    pub(super) fn certificates(&self) -> &[KnownCertificate] {
        &self.draft.certificates
    }

    /// Whether something else was read than before.
    pub(super) fn look(&mut self, config: &Config, now: WallTime, diagnostics: &Diagnostics) -> bool {
        if now.since(self.looked) < LOOK_EVERY && self.looked <= now || self.draft.server.is_none() {
            return false;
        }
        self.looked = now;
        let files = tls::files(config);
        if files == self.draft.files {
            return false;
        }
        // Tried each minute, since what was wrong may be right without a change of the files; but said once.
        let is_said = self.refused == Some(files);
        let (problems, is_new) =
            match tls::draft(config, &self.places, Some(&self.draft), true, &self.ordered, seconds(now)) {
                Ok(mut next) => {
                    let problems = std::mem::take(&mut next.problems);
                    let is_new = next.has_news(&self.draft);
                    let is_whole = problems.is_empty();
                    if is_new || is_whole {
                        // What is wrong is looked at again.
                        let files = if is_whole { next.files } else { self.draft.files };
                        (self.draft, self.warned) = (TlsDraft { files, ..next }, None);
                    }
                    (problems, is_new || is_whole)
                }
                Err(Errors(problems)) => (problems, false),
            };
        self.refused = (!problems.is_empty()).then_some(files);
        if !is_said {
            for problem in problems {
                diagnostics.warn(
                    "certificate",
                    &problem.key,
                    format_args!("{problem}; what was read before stays"),
                );
            }
        }
        is_new
    }

    pub(super) fn warn(&mut self, warning: Duration, now: WallTime, diagnostics: &Diagnostics) {
        if self.warned.is_some_and(|warned| warned <= now && now.since(warned) < WARN_EVERY) {
            return;
        }
        self.warned = Some(now);
        for (path, sentence) in expiry_warnings(self.certificates(), warning, now) {
            diagnostics.warn("certificate-expiry", &path, sentence);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
