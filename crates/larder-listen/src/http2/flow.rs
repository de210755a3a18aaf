//! Flow control: how much content each side may send (RFC 9113 5.2, 6.9).
//!
//! In: frames sent and received, and content that its reader has taken. Out: how much may be sent, and when the client is to be told
//! of more room. A window is opened for content that was taken, and for content that nothing will ever take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Content of one stream that may wait here for its reader: a few round trips of an ordinary line.
pub(super) const STREAM_WINDOW: u32 = 256 * 1024;
/// The same for all streams of a connection together.
pub(super) const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What windows begin with (RFC 9113 6.9.2).
pub(super) const WINDOW_DEFAULT: u32 = 65_535;
/// The largest window (RFC 9113 6.9.1).
pub(super) const WINDOW_MAX: u32 = 0x7fff_ffff;

/// A window went beyond its largest size, or was overrun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowError;

/// What may be sent. It may fall below zero where a client makes the windows of its streams smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SendWindow(i64);

impl SendWindow {
    pub(super) fn new(size: u32) -> Self {
        Self(size.into())
    }

    /// How much may be sent now.
    pub(super) fn room(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        self.0 -= i64::try_from(bytes).unwrap_or(i64::MAX);
    }

    /// Opens it by `by`, which is negative where a setting has fallen.
    ///
    /// # Errors
    /// It would be larger than the largest.
    pub(super) fn open(&mut self, by: i64) -> Result<(), WindowError> {
        self.0 = self.0.saturating_add(by);
        if self.0 > WINDOW_MAX.into() { Err(WindowError) } else { Ok(()) }
    }
}

/// What a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceiveWindow {
    /// What it may still send, as far as it was told.
    left: u32,
    /// What was taken since, and it was not told of.
    owed: u32,
}

impl ReceiveWindow {
    pub(super) fn new(size: u32) -> Self {
        Self { left: size, owed: 0 }
    }

    /// Content came.
    ///
    /// # Errors
    /// More than it may send.
    pub(super) fn received(&mut self, bytes: usize) -> Result<(), WindowError> {
        let bytes = u32::try_from(bytes).map_err(|_| WindowError)?;
        self.left = self.left.checked_sub(bytes).ok_or(WindowError)?;
        Ok(())
    }

    /// That much of it lies here no more.
    pub(super) fn taken(&mut self, bytes: usize) {
        self.owed = self.owed.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Whether the client may send nothing, and will not be told of more yet.
    pub(super) fn is_shut(&self) -> bool {
        self.left == 0 && self.owed == 0
    }

    /// By how much to open it now. Each update doubles what the client has left at least, so there are few of them, and a client that waits
    /// is always told.
    pub(super) fn update(&mut self) -> Option<u32> {
        if self.owed == 0 || self.owed < self.left {
            return None;
        }
        let by = std::mem::take(&mut self.owed);
        self.left = self.left.saturating_add(by);
        Some(by)
    }
}

/// How often the window of a connection was shut and opened again, for those who wait for content of its streams: a client that may send
/// nothing is not slow.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowTurns(Arc<AtomicU32>);

impl WindowTurns {
    /// Notes whether the client may send nothing more. Only to be called by the connection.
    pub(super) fn note(&self, is_shut: bool) {
        if is_shut != is_odd(self.0.load(Ordering::Relaxed)) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the window is shut, or was since it was asked with the same `seen`.
    pub(super) fn was_shut(&self, seen: &mut u32) -> bool {
        let turns = self.0.load(Ordering::Relaxed);
        std::mem::replace(seen, turns) != turns || is_odd(turns)
    }
}

fn is_odd(turns: u32) -> bool {
    !turns.is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_window_may_be_overdrawn_by_a_setting_and_never_grows_too_large() {
        let mut window = SendWindow::new(10);
        window.sent(8);
        assert_eq!(window.open(-5), Ok(()));
        assert_eq!(window.room(), 0);
        assert_eq!(window.open(4), Ok(()));
        assert_eq!(window.room(), 1);
        assert_eq!(window.open(i64::from(WINDOW_MAX) - 1), Ok(()));
        assert_eq!(window.open(1), Err(WindowError));
    }

    #[test]
    fn a_client_that_has_nothing_left_is_told_of_anything_taken() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.received(60), Ok(()));
        window.taken(30);
        assert_eq!(window.update(), None, "it has 40 left");
        window.taken(10);
        assert_eq!(window.update(), Some(40));
        assert_eq!(window.received(81), Err(WindowError));
        assert_eq!(window.received(80), Ok(()));
        assert_eq!(window.update(), None);
        window.taken(1);
        assert_eq!(window.update(), Some(1));
    }
}
