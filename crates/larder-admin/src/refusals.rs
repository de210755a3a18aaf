//! How often the admin address has refused, by reason.
//!
//! In: refusals, as they are made. Out: the samples of their metric families. What a client asked for by mistake (an unknown path
//! or method) is not counted.

use std::sync::atomic::{AtomicU64, Ordering};

use larder_observe::{Exposition, family};

use crate::answer::Refused;

/// The reasons that are counted.
const REASONS: [&str; 8] =
    ["host", "no-token", "wrong-token", "wrong-tokens", "view-token", "page", "change", "busy"];

/// Counts since the start.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    by_reason: [AtomicU64; REASONS.len()],
    forgotten: AtomicU64,
}

impl Refusals {
    pub(crate) fn count(&self, refused: Refused) {
        let Some(reason) = reason(refused) else { return };
        let place = REASONS.iter().zip(&self.by_reason).find(|(known, _)| **known == reason);
        if let Some((_, count)) = place {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an address whose wrong tokens are no longer known, because there were too many addresses.
    pub(crate) fn forgot(&self) {
        self.forgotten.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn expose(&self, out: &mut Exposition) {
        let mut samples = out.family(&family::ADMIN_REFUSED);
        for (reason, count) in REASONS.iter().zip(&self.by_reason) {
            samples.value(&[("reason", reason)], count.load(Ordering::Relaxed));
        }
        out.family(&family::ADMIN_FORGOTTEN).value(&[], self.forgotten.load(Ordering::Relaxed));
    }
}

fn reason(refused: Refused) -> Option<&'static str> {
    match refused {
        Refused::Host => Some("host"),
        Refused::NoToken => Some("no-token"),
        Refused::WrongToken => Some("wrong-token"),
        Refused::WrongTokens(_) => Some("wrong-tokens"),
        Refused::ViewToken => Some("view-token"),
        Refused::Page => Some("page"),
        Refused::Change => Some("change"),
        Refused::Busy | Refused::Streams => Some("busy"),
        Refused::Path
        | Refused::NoFleet
        | Refused::Method(_)
        | Refused::Content
        | Refused::Query
        | Refused::ListQuery
        | Refused::ObjectQuery
        | Refused::RenewQuery
        | Refused::NotOrdered
        | Refused::LiveQuery
        | Refused::HistoryQuery
        | Refused::FiguresQuery
        | Refused::NoWatch
        | Refused::Broken => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_count() {
        let refusals = Refusals::default();
        let wait = std::time::Duration::from_secs(1);
        let all = [
            Refused::Host,
            Refused::NoToken,
            Refused::WrongToken,
            Refused::WrongTokens(wait),
            Refused::ViewToken,
            Refused::Page,
            Refused::Change,
            Refused::Busy,
        ];
        all.into_iter().for_each(|refused| refusals.count(refused));
        refusals.count(Refused::Path);
        assert!(refusals.by_reason.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{refusals:?}");
    }
}
