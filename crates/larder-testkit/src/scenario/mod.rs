//! Scenarios: data files that state a rule, script the origin, and walk a client through larder.
//!
//! In: the files of `tests/scenarios` and a [`Larder`]. Out: what did not happen as stated, with the expected beside
//! the received and everything that the origin saw. Sockets are real; lifetimes pass by moving the clock that
//! larder and the scripted origin share with the scenario, never by waiting.
//!
//! `format` holds the words of a file, `load` reads and refuses, `run` goes through a file, `steps` does what a
//! step says, `send` is its clients, `expect` compares (`multipart` reads what several ranges bring), `report` tells.
//!
//! Deliberately absent: larder. Who tests it implements [`Larder`], in one process or around the binary.

pub mod cache_status;
mod expect;
pub mod format;
mod load;

mod report;
mod run;
mod send;
mod steps;

use std::net::SocketAddr;
use std::time::Duration;

pub use load::{find, load};
pub use report::{Failure, Mismatch, Report};
pub use run::{run_all, run_file};

/// Where a larder listens once it has started.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    /// For clients.
    pub addr: SocketAddr,
    /// For operators.
    pub admin: SocketAddr,
}

/// What the runner needs from a larder under test. All calls come from one thread, outside of any async runtime, so
/// an implementation may block. It is dropped after [`Larder::stop`].
pub trait Larder {
    /// Starts with this config, whose listeners say port 0.
    ///
    /// # Errors
    /// Why it does not start, as a person would be told.
    fn start(&mut self, config: &str) -> Result<Started, String>;

    /// Moves its clocks forward.
    fn advance(&mut self, by: Duration);

    /// Changes to this config and returns when it is in force.
    ///
    /// # Errors
    /// Why the config is refused; the old one stays.
    fn reload(&mut self, config: &str) -> Result<(), String>;

    /// Stops and gives back everything it held.
    ///
    /// # Errors
    /// What did not end.
    fn stop(&mut self) -> Result<(), String>;

    /// The value of a series such as `larder_requests_total{method="GET"}` as `/metrics` would show it, summed over
    /// all series that have these labels and perhaps more.
    fn metric(&self, series: &str) -> Option<f64>;
}

#[cfg(test)]
mod tests;
