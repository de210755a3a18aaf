//! What is told of the certificates that clients are shown: as JSON, and as metrics.
//!
//! In: what was read last. Out: each certificate with its names and its time, and what became of tickets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use larder_acme::{Acme, CertificateStatus};
use larder_http::time::WallTime;
use larder_observe::{Exposition, family};
use larder_tls::server::TicketKeys;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use super::expiry::{days_left, is_expiring, is_near};
use crate::server::ordering::RunningOrders;
use crate::wire::tls::KnownCertificate;

/// What is shown now.
#[derive(Default)]
pub(in crate::server) struct ShownCertificates {
    pub(in crate::server) certificates: Vec<KnownCertificate>,
    pub(in crate::server) tickets: Option<Arc<TicketKeys>>,
    /// How long before its end a certificate is warned of.
    pub(in crate::server) warning: Duration,
}

/// The same, to be replaced as a whole, and what is ordered.
#[derive(Default)]
pub(in crate::server) struct CertificatesTold {
    shown: RwLock<ShownCertificates>,
    orders: OnceLock<RunningOrders>,
}

/// The answer of `/api/v1/certificates`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CertificateList {
    pub(crate) certificates: Vec<CertificateTold>,
}

/// One of them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CertificateTold {
    pub(crate) site: String,
    pub(crate) source: String,
    pub(crate) file: Option<String>,
    pub(crate) key: String,
    pub(crate) names: Vec<String>,
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
    pub(crate) days_left: i64,
    pub(crate) expires_soon: bool,
    /// When it is ordered next, in seconds since 1970.
    pub(crate) next: Option<u64>,
    /// Why the last order has failed, where none has succeeded since.
    pub(crate) failure: Option<String>,
    /// How many have failed since the last that succeeded.
    #[serde(default)]
    pub(crate) failures: u32,
}

impl CertificatesTold {
    pub(in crate::server) fn set(&self, shown: ShownCertificates) {
        *self.shown.write() = shown;
    }

    pub(in crate::server) fn see_orders(&self, orders: RunningOrders) {
        let _ = self.orders.set(orders);
    }

    /// Each name whose certificate is ordered.
    fn ordered(&self) -> Vec<Arc<CertificateStatus>> {
        let running = self.orders.get().map(|orders| orders.lock());
        running.and_then(|running| running.as_ref().map(Acme::status)).unwrap_or_default()
    }

    /// Has a certificate ordered now. False where none is ordered under this name.
    pub(in crate::server) fn renew(&self, name: &str) -> bool {
        let running = self.orders.get().map(|orders| orders.lock());
        running.is_some_and(|running| running.as_ref().is_some_and(|acme| acme.renew_now(name)))
    }

    pub(in crate::server) fn json(&self, now: WallTime) -> Bytes {
        let shown = self.shown.read();
        let told = |known: &KnownCertificate| CertificateTold {
            site: known.site.clone(),
            source: "file".to_owned(),
            file: Some(known.path.display().to_string()),
            key: known.facts.key.to_string(),
            names: names(known),
            not_before: known.facts.not_before,
            not_after: known.facts.not_after,
            days_left: days_left(known, now),
            expires_soon: is_expiring(known, shown.warning, now),
            next: None,
            failure: None,
            failures: 0,
        };
        let ordered = self.ordered();
        let ordered = ordered.iter().map(|status| ordered_told(status, shown.warning, now));
        let certificates = shown.certificates.iter().map(told).chain(ordered).collect();
        let list = CertificateList { certificates };
        serde_json::to_vec(&list).unwrap_or_default().into()
    }

    pub(in crate::server) fn expose(&self, out: &mut Exposition) {
        let ordered = self.ordered();
        let shown = self.shown.read();
        let mut family = out.family(&family::CERTIFICATE_NOT_AFTER);
        for (path, not_after) in ends(&shown.certificates) {
            family.value(&[("certificate", &path)], u64::try_from(not_after).unwrap_or_default());
        }
        for status in &ordered {
            if let Some(lifetime) = status.lifetime {
                family.value(&[("certificate", &status.name)], lifetime.not_after.secs());
            }
        }
        if let Some(running) = self.orders.get().and_then(|orders| orders.lock().as_ref().map(Acme::orders)) {
            let mut family = out.family(&family::ACME_ORDERS);
            for (result, count) in running {
                family.value(&[("result", result)], count);
            }
            let mut family = out.family(&family::ACME_NEXT_RENEWAL);
            for status in &ordered {
                if let Some(next) = status.next {
                    family.value(&[("certificate", &status.name)], next.at.secs());
                }
            }
            let mut family = out.family(&family::ACME_FAILING);
            for status in &ordered {
                let kind = status.failing().map_or("none", |kind| kind.token());
                family
                    .value(&[("certificate", &status.name), ("type", kind)], u64::from(status.failures > 0));
            }
        }
        let Some(keys) = &shown.tickets else { return };
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut family = out.family(&family::TLS_TICKETS);
        for (result, count) in [
            ("issued", &keys.counts.issued),
            ("opened", &keys.counts.opened),
            ("refused", &keys.counts.refused),
        ] {
            family.value(&[("result", result)], read(count));
        }
    }
}

/// When the certificate of each file ends, in seconds since 1970: the earliest, where sites that share a file read it at different times.
fn ends(certificates: &[KnownCertificate]) -> BTreeMap<String, i64> {
    let mut ends = BTreeMap::new();
    for known in certificates {
        let not_after = known.facts.not_after;
        let end = ends.entry(known.path.display().to_string()).or_insert(not_after);
        *end = not_after.min(*end);
    }
    ends
}

fn ordered_told(status: &CertificateStatus, warning: Duration, now: WallTime) -> CertificateTold {
    let seconds = |time: WallTime| i64::try_from(time.secs()).unwrap_or(i64::MAX);
    let (not_before, not_after) =
        status.lifetime.map_or((0, 0), |life| (seconds(life.not_before), seconds(life.not_after)));
    let left = not_after.saturating_sub(seconds(now));
    CertificateTold {
        site: status.name.clone(),
        source: "acme".to_owned(),
        file: None,
        key: status.key.map(|key| key.to_string()).unwrap_or_default(),
        names: vec![status.name.clone()],
        not_before,
        not_after,
        days_left: left.div_euclid(24 * 60 * 60),
        expires_soon: is_near(not_before, not_after, warning, now),
        next: status.next.map(|next| next.at.secs()),
        failure: status
            .last_failure
            .as_ref()
            .filter(|_| status.failures > 0)
            .map(|last| last.failure.text.clone()),
        failures: status.failures,
    }
}

/// The names and addresses that it is for.
fn names(known: &KnownCertificate) -> Vec<String> {
    let addresses = known.facts.addresses.iter().map(ToString::to_string);
    known.facts.names.iter().cloned().chain(addresses).collect()
}
