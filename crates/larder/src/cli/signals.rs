//! Signals as events: TERM, INT and QUIT end a larder, HUP reloads it, USR1 reopens its logs; INT alone ends other commands.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    End,
    Reload,
    ReopenLogs,
}

/// The signals that are listened for.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hangup: Signal,
    user: Signal,
    /// Of nobody's interest, and deadly where nobody listens: a write beyond a limit on the size of files fails instead.
    _file_size: Signal,
}

impl Signals {
    /// Takes over the signals from their default action. Needs a runtime.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hangup: signal(SignalKind::hangup())?,
            user: signal(SignalKind::user_defined1())?,
            _file_size: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// The next wish.
    ///
    /// # Cancel safety
    /// No signal is lost.
    pub(super) async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.terminate.recv() => Wish::End,
            _ = self.interrupt.recv() => Wish::End,
            _ = self.quit.recv() => Wish::End,
            _ = self.hangup.recv() => Wish::Reload,
            _ = self.user.recv() => Wish::ReopenLogs,
        }
    }
}

/// Waits for Ctrl-C. Where there is no handler to be had, the signal ends the process.
pub(super) async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
