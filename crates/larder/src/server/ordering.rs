//! The orders of certificates of a running larder: begun, changed and ended with the config.
//!
//! In: what a config wants ordered. Out: a thread that orders, or none. A reload that cannot have its orders changes nothing.

use std::sync::Arc;

use larder_acme::{Acme, AcmeSettings, Event, Surroundings};
use larder_http::time::Clock;
use larder_observe::{Diagnostics, Level};
use parking_lot::Mutex;

use super::ServerError;
use crate::wire::acme::{Installing, OrderedCertificates};

/// See the head of the file.
pub(super) struct Ordering {
    ordered: OrderedCertificates,
    around: Surroundings,
    running: RunningOrders,
}

/// The thread that orders, where there is one; those who look on see it as well.
pub(super) type RunningOrders = Arc<Mutex<Option<Acme>>>;

impl Ordering {
    /// Without orders yet.
    pub(super) fn new(ordered: OrderedCertificates, clock: Clock, diagnostics: &Diagnostics) -> Self {
        let (store, said) = (Arc::clone(&ordered.store), diagnostics.clone());
        let around = Surroundings {
            certificates: Arc::new(Installing { store, diagnostics: diagnostics.clone() }),
            challenges: Arc::clone(&ordered.challenges),
            clock,
            report: Arc::new(move |event| report(&said, &event)),
        };
        Self { ordered, around, running: RunningOrders::default() }
    }

    /// Where certificates and proofs lie.
    pub(super) fn ordered(&self) -> &OrderedCertificates {
        &self.ordered
    }

    /// Orders these from now on. Stored certificates are installed before this returns, and before the authority is asked anything.
    ///
    /// # Errors
    /// The directory or another file cannot be used. Then nothing has changed.
    pub(super) fn order(&self, wanted: Option<AcmeSettings>) -> Result<(), ServerError> {
        let mut running = self.running.lock();
        match (wanted, running.as_ref()) {
            (Some(wanted), Some(running)) => running.reload(wanted)?,
            (Some(wanted), None) => *running = Some(Acme::start(wanted, self.around.clone())?),
            (None, _) => drop(running.take()),
        }
        Ok(())
    }

    /// The orders, where there are any.
    pub(super) fn running(&self) -> RunningOrders {
        Arc::clone(&self.running)
    }
}

fn report(diagnostics: &Diagnostics, event: &Event) {
    match event {
        // The same failure comes again and again: it is said at its first time, and when it is another.
        Event::Failed { name, failure, .. } => {
            diagnostics.warn("acme", &format!("{name} {}", failure.kind.token()), event);
        }
        event if event.is_warning() => diagnostics.warn("acme", "", event),
        event if event.is_detail() => {}
        event => diagnostics.tell(Level::Info, event),
    }
}
