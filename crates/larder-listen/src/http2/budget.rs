//! What a client may cost beside its requests (docs/design/http2.md has the table and its lessons).
//!
//! In: frames that do nothing by themselves, resets, and what they are weighed against. Out: whether the connection goes on. A counter in
//! [`Metrics`](crate::metrics::Metrics) tells which bound has ended one.

use std::time::Duration;

use tokio::time::Instant;

/// Frames without a use of their own that each request pays for, and each [`CONTENT_BYTES`] of content in either direction.
const FRAMES_PER_USE: u32 = 64;
const CONTENT_BYTES: u64 = 16 * 1024;
/// As many may be saved up, and a connection begins with a tenth.
const FRAMES_SAVED_MAX: u32 = 10_000;
/// Frames that each DATA frame pays for: clients open two windows for it.
const FRAMES_PER_DATA: u32 = 2;
/// Frames that each second pays for: a client may ask now and then whether a connection that waits is still there.
const FRAMES_PER_SECOND: u64 = 1;
/// Streams that larder has to reset for errors of their client, beyond those that were finished.
const FORCED_RESETS_MAX: u64 = 20;

/// Which bound was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exhausted {
    /// Streams that were reset.
    Resets,
    /// Streams that had to be reset.
    ForcedResets,
    /// Frames that do nothing by themselves.
    Frames,
}

/// The account of one connection.
#[derive(Debug)]
pub(super) struct Budget {
    frames: u32,
    /// Up to when seconds have paid.
    paid_until: Instant,
    content: u64,
    finished: u64,
    reset: u64,
    forced: u64,
    resets_max: u64,
}

impl Budget {
    /// `resets_max` is the limit of the config.
    pub(super) fn new(resets_max: u64) -> Self {
        Self {
            frames: FRAMES_SAVED_MAX / 10,
            paid_until: Instant::now(),
            content: 0,
            finished: 0,
            reset: 0,
            forced: 0,
            resets_max,
        }
    }

    /// A request came.
    pub(super) fn request(&mut self) {
        self.save(FRAMES_PER_USE);
    }

    /// Content came, or was sent, in one frame.
    pub(super) fn content(&mut self, bytes: usize) {
        self.content += bytes as u64;
        let uses = self.content / CONTENT_BYTES;
        self.content %= CONTENT_BYTES;
        self.save(FRAMES_PER_DATA.saturating_add(FRAMES_PER_USE.saturating_mul(uses as u32)));
    }

    fn save(&mut self, frames: u32) {
        self.frames = self.frames.saturating_add(frames).min(FRAMES_SAVED_MAX);
    }

    /// A frame came that does nothing by itself.
    pub(super) fn frame(&mut self) -> Result<(), Exhausted> {
        if self.frames == 0 {
            self.save_seconds();
        }
        self.frames = self.frames.checked_sub(1).ok_or(Exhausted::Frames)?;
        Ok(())
    }

    /// Saves what the time since has paid for.
    fn save_seconds(&mut self) {
        let seconds = self.paid_until.elapsed().as_secs();
        self.paid_until += Duration::from_secs(seconds);
        self.save(u32::try_from(seconds * FRAMES_PER_SECOND).unwrap_or(u32::MAX));
    }

    /// A stream was answered whole.
    pub(super) fn finished(&mut self) {
        self.finished += 1;
    }

    /// A client gave a stream up.
    pub(super) fn reset(&mut self) -> Result<(), Exhausted> {
        self.reset += 1;
        if self.reset + self.forced > self.finished.saturating_add(self.resets_max) {
            return Err(Exhausted::Resets);
        }
        Ok(())
    }

    /// A stream had to be reset for an error of its client.
    pub(super) fn forced(&mut self) -> Result<(), Exhausted> {
        self.forced += 1;
        if self.forced > self.finished.saturating_add(FORCED_RESETS_MAX) {
            return Err(Exhausted::ForcedResets);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_are_weighed_against_what_was_finished() {
        let mut budget = Budget::new(3);
        for _ in 0..2 {
            budget.finished();
        }
        for _ in 0..5 {
            assert_eq!(budget.reset(), Ok(()));
        }
        assert_eq!(budget.reset(), Err(Exhausted::Resets));
        let mut budget = Budget::new(1000);
        budget.finished();
        assert!((0..=FORCED_RESETS_MAX).all(|_| budget.forced().is_ok()));
        assert_eq!(budget.forced(), Err(Exhausted::ForcedResets));
    }

    #[tokio::test(start_paused = true)]
    async fn frames_are_paid_for_by_time_where_nothing_else_happens() {
        let mut budget = Budget::new(0);
        for second in 0..5000 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(budget.frame(), Ok(()), "after {second} s");
        }
        let spend = |budget: &mut Budget| (0..).take_while(|_| budget.frame().is_ok()).count();
        while budget.frame().is_ok() {}
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(spend(&mut budget), 7);
        tokio::time::advance(Duration::from_secs(100_000)).await;
        assert_eq!(spend(&mut budget), 10_000);
    }

    #[test]
    fn frames_are_paid_for_by_requests_and_content() {
        let mut budget = Budget::new(0);
        let spend = |budget: &mut Budget| (0..).take_while(|_| budget.frame().is_ok()).count();
        assert_eq!(spend(&mut budget), 1000);
        budget.request();
        assert_eq!(spend(&mut budget), 64);
        for _ in 0..16 {
            budget.content(1024);
        }
        assert_eq!(spend(&mut budget), 64 + 32);
        (0..1000).for_each(|_| budget.request());
        assert_eq!(spend(&mut budget), 10_000);
    }
}
