//! What orders need beside settings: where certificates and proofs go, the time, and where events go. It stays the same over reloads.
//!
//! In: values of the binary. Out: the same, for the thread and for those that start it.

use std::sync::Arc;

use larder_http::time::Clock;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::challenges::Challenges;
use crate::event::Report;

/// Where certificates go.
pub trait Certificates: Send + Sync {
    /// Serves `chain`, its own certificate first, and `key` for `name` from now on, in place of what was served. Called for each
    /// certificate that is found at a start, and for each new one; on the thread that orders, or on the one that starts or reloads.
    fn install(&self, name: &str, chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>);
}

/// See the head of the file.
#[derive(Clone)]
pub struct Surroundings {
    /// Where certificates go.
    pub certificates: Arc<dyn Certificates>,
    /// Where proofs are shown.
    pub challenges: Arc<Challenges>,
    /// What the time is. Timers run in real time: see [`Acme::look`](crate::Acme::look).
    pub clock: Clock,
    /// Where events go.
    pub report: Report,
}
