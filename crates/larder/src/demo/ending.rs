//! How a demo is ended from outside: SIGINT (Ctrl-C) and SIGTERM.
//!
//! In: signals, from the moment that an [`EndWish`] listens. Out: the first of them. A demo ends in the same way whenever that is: its
//! load is dropped, and app and larder stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM, taken over from their default action.
pub(super) struct EndWish {
    interrupt: Signal,
    terminate: Signal,
}

impl EndWish {
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Resolves at the first of them.
    ///
    /// # Cancel safety
    /// A signal that came is not lost.
    pub(super) async fn wished(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// What `work` comes to; `None` where a signal came first, and `work` was dropped.
    pub(super) async fn or_ended<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.wished() => None,
        }
    }
}
