//! Named gates: what a script holds back until the test lets it go.
//!
//! A gate is closed until it is released and open from then on. Clones share their gates. A wait at a gate is
//! bounded by who waits.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;

/// A set of gates.
#[derive(Clone, Debug)]
pub struct Gates {
    released: Arc<watch::Sender<Released>>,
}

#[derive(Debug, Default)]
struct Released {
    named: BTreeSet<String>,
    all: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self { released: Arc::new(watch::Sender::new(Released::default())) }
    }
}

impl Gates {
    /// Opens a gate for good.
    pub fn release(&self, gate: &str) {
        self.released.send_modify(|released| {
            released.named.insert(gate.to_owned());
        });
    }

    /// Opens every gate for good, also those that nobody has named yet.
    pub fn release_all(&self) {
        self.released.send_modify(|released| released.all = true);
    }

    /// Waits until `gate` is open.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn pass(&self, gate: &str) {
        let mut released = self.released.subscribe();
        // The sender lives as long as `self`, so this ends by the gate alone.
        let _ = released.wait_for(|released| released.all || released.named.contains(gate)).await;
    }
}
