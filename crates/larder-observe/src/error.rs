//! What can fail here: opening a log file and starting a thread. Both happen at start or on a reload and are the
//! configuration's or the machine's fault; nothing that a worker calls can fail.

use std::io;
use std::path::PathBuf;

/// Why the access log or the message writer could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The log file cannot be opened for appending.
    #[error("cannot open the log file {}", path.display())]
    OpenLog {
        /// As configured.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No thread to write with.
    #[error("cannot start the {name} thread")]
    Thread {
        /// Which one.
        name: &'static str,
        /// What the system said.
        source: io::Error,
    },
}
