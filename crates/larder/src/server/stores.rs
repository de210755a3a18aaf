//! Looking after stores while larder runs: what is due every second, and what the operator hears of disks.
//!
//! In: the stores in force. Out: a line in the log for each change: a disk that fails or is absent, is full before its time,
//! and each time that this is over. What is said, and in which words, is decided by what is behind the stores.

use larder_store::store::TierEvent;

use super::Server;

impl Server {
    /// Looks after the stores; to be called every second. Has disks tried again that are absent, and says what has happened to
    /// disks since it was asked last.
    pub fn tend_stores(&self) {
        for (name, store) in &self.config.stores {
            if let Some(known) = self.wiring.store_named(name.as_str()) {
                known.tend(store.idle, self.clock.now());
            }
        }
        let stores = self.wiring.stores();
        self.proxy.try_absent_disks(stores.iter().map(|(_, store)| store));
        self.insight.sweep_purged();
        self.insight.tell_of_origins();
        self.tell_of_stores();
    }

    pub(super) fn tell_of_stores(&self) {
        for (name, store) in self.wiring.stores() {
            while let Some(TierEvent { kind, subject, is_warning, text }) = store.take_event(&name) {
                let subject = subject.as_deref().unwrap_or(&name);
                match is_warning {
                    true => self.diagnostics.warn(kind, subject, format_args!("{text}")),
                    false => self.diagnostics.info(kind, subject, format_args!("{text}")),
                }
            }
        }
    }
}
