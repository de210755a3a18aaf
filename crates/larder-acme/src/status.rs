//! What an operator sees of certificates, and what is counted.
//!
//! In: the thread's knowledge, one value for each name, replaced whole. Out: copies of it, for `larder certs`, the admin address and
//! metrics; nothing here waits for the thread. Deliberately absent: the registry of metrics, which the binary connects with these getters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use larder_http::time::WallTime;
use larder_tls::KeyKind;
use parking_lot::Mutex;

use crate::error::{Failure, FailureKind};
use crate::schedule::{Lifetime, Next};

/// One name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateStatus {
    /// The host name.
    pub name: String,
    /// Of the certificate that is served; `None` where there is none.
    pub lifetime: Option<Lifetime>,
    /// Its key.
    pub key: Option<KeyKind>,
    /// The authority that it is from, as far as known.
    pub directory_url: Option<String>,
    /// The next order and why it is due then; `None` while one is under way, and where another process orders. A moment that has passed
    /// means: as soon as its turn comes.
    pub next: Option<Next>,
    /// An order is under way.
    pub is_ordering: bool,
    /// Failed attempts since the last success.
    pub failures: u32,
    /// The last of them.
    pub last_failure: Option<LastFailure>,
}

impl CertificateStatus {
    /// Seconds until the next order; 0 where it is due.
    pub fn next_in(&self, now: WallTime) -> Option<Duration> {
        self.next.map(|next| next.at.since(now))
    }

    /// The kind of the last failure, where no success has followed it.
    pub fn failing(&self) -> Option<FailureKind> {
        self.last_failure.as_ref().filter(|_| self.failures > 0).map(|last| last.failure.kind)
    }
}

/// A failure and its moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastFailure {
    /// When.
    pub at: WallTime,
    /// Why.
    pub failure: Failure,
}

/// What the thread writes and others read.
#[derive(Debug, Default)]
pub(crate) struct Board {
    /// Held for moments: to replace one value, or to copy all pointers.
    names: Mutex<BTreeMap<String, Arc<CertificateStatus>>>,
    issued: AtomicU64,
    failed: [AtomicU64; FailureKind::ALL.len()],
}

impl Board {
    pub(crate) fn show(&self, status: Arc<CertificateStatus>) {
        self.names.lock().insert(status.name.clone(), status);
    }

    /// Keeps these names only.
    pub(crate) fn keep(&self, is_kept: impl Fn(&str) -> bool) {
        self.names.lock().retain(|name, _| is_kept(name));
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.lock().contains_key(name)
    }

    pub(crate) fn all(&self) -> Vec<Arc<CertificateStatus>> {
        self.names.lock().values().cloned().collect()
    }

    pub(crate) fn count_issued(&self) {
        self.issued.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_failed(&self, kind: FailureKind) {
        let of_kind = FailureKind::ALL.iter().zip(&self.failed).find(|(known, _)| **known == kind);
        if let Some((_, count)) = of_kind {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Orders since the start, by result: `issued`, or the kind of their failure.
    pub(crate) fn orders(&self) -> Vec<(&'static str, u64)> {
        let failed = FailureKind::ALL.iter().zip(&self.failed);
        let failed = failed.map(|(kind, count)| (kind.token(), count.load(Ordering::Relaxed)));
        std::iter::once(("issued", self.issued.load(Ordering::Relaxed))).chain(failed).collect()
    }
}
