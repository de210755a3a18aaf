//! Versions that applications keep in Redis: numbers that say which of the stored responses are current.
//!
//! In: names of versions, as requests need them. Out: their texts. What was read once is known without asking for as long as the server
//! would have told of a change. It tells on the connection by which larder has read (`CLIENT TRACKING`). larder asks for a sign of life
//! whenever that is silent. So a request asks the server only for what is new, or was changed.
//!
//! ```text
//!   any thread: Versions::known -> Table                              (no wait)
//!               Versions::read  -> the thread's queue -> one reply    (within the time limit)
//!   the versions' thread: names that wait, as one -> server -> Table -> replies;  changes told -> Table;  PING, TOUCH
//! ```
//!
//! **Invariant**: a text counts as known only while the last sign of life was asked for less than [`TRACKING`] ago, and no change was
//! told since before it was read. So a server that is cut off is believed for that long, and no longer.
//! Deliberately absent: how names are made of requests, and what a version decides.

mod bounds;
mod command;
mod counters;
#[cfg(test)]
mod delayed;
mod known;
mod links;
mod name;
mod reader_state;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod thread;
mod version;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use larder_observe::Diagnostics;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::address::Resolve;
use crate::clock;
use crate::error::RemoteError;
use crate::redis::Dial;
pub use counters::VersionsReport;
pub use known::TRACKING;
pub use name::VersionName;
use reader_state::{SharedVersions, VersionAsk};
pub use settings::VersionsSettings;
pub use version::{Version, VersionReading};

/// Requests that may wait to be read for.
const WAITING_MAX: usize = 1024;

/// The versions at one server. Its thread ends with it.
pub struct Versions {
    shared: Arc<SharedVersions>,
    asks: mpsc::Sender<VersionAsk>,
    settings: VersionsSettings,
}

impl Versions {
    /// Starts the thread, which connects at once.
    ///
    /// # Errors
    /// [`RemoteError::Thread`], [`RemoteError::Tls`].
    pub fn start(
        settings: VersionsSettings,
        names: Arc<dyn Resolve>,
        diagnostics: Diagnostics,
    ) -> Result<Self, RemoteError> {
        let shared = Arc::new(SharedVersions::new());
        let (asks, asked) = mpsc::channel(WAITING_MAX);
        let dial = Arc::new(Dial::new(&settings.server, b"", names, &diagnostics)?);
        thread::start(settings.clone(), dial, diagnostics, Arc::clone(&shared), asked)?;
        Ok(Self { shared, asks, settings })
    }

    /// Hands a version to `use_it`, where it is known without asking.
    #[inline]
    pub fn known<T>(&self, name: &VersionName, use_it: impl FnOnce(&Version) -> T) -> Option<T> {
        self.shared.known.get(name, clock::now(), use_it)
    }

    /// The versions of a server that is not asked: none is known, and none can be had.
    pub fn unread(settings: VersionsSettings) -> Self {
        let shared = Arc::new(SharedVersions::new());
        shared.is_down.store(true, Ordering::Release);
        // The receiving end is gone at once.
        let (asks, _) = mpsc::channel(1);
        Self { shared, asks, settings }
    }

    /// Asks the server, for as long as the settings say at most. One reading for each name.
    ///
    /// # Cancel safety
    /// What comes is for nobody, and is known from then on.
    pub async fn read(&self, names: Vec<VersionName>) -> Vec<VersionReading> {
        let count = names.len();
        let counters = &self.shared.counters;
        let readings = self.ask(names).await.unwrap_or_else(|| vec![VersionReading::Unknown; count]);
        readings.iter().for_each(|reading| counters.count(reading));
        readings
    }

    async fn ask(&self, names: Vec<VersionName>) -> Option<Vec<VersionReading>> {
        if self.shared.is_down.load(Ordering::Acquire) {
            return None;
        }
        let (reply, answer) = oneshot::channel();
        self.asks.try_send(VersionAsk::Read { names, reply }).ok()?;
        match timeout(self.settings.server.timeout, answer).await {
            Ok(readings) => readings.ok(),
            Err(_) => {
                // Those that come until it has answered do not wait as well.
                self.shared.is_down.store(true, Ordering::Release);
                None
            }
        }
    }

    /// What a version was last here, known or not.
    pub fn last(&self, name: &VersionName) -> Option<Version> {
        self.shared.known.table.last(name)
    }

    /// Gives a version that has none the server's time as its first, at some moment soon. Where the queue is full, another request will.
    pub fn begin(&self, name: VersionName) {
        let _ = self.asks.try_send(VersionAsk::Begin(name));
    }

    /// What it was started with.
    pub fn settings(&self) -> &VersionsSettings {
        &self.settings
    }

    /// How it is doing.
    pub fn report(&self) -> VersionsReport {
        let failure = self.shared.failure.lock().clone();
        self.shared.counters.report(
            self.settings.server.place.to_string(),
            failure,
            self.shared.known.table.count(),
        )
    }
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report().fmt(f)
    }
}
