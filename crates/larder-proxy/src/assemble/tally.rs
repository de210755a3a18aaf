//! What became of the fragments of a page, for its line in the log and for `Cache-Control`.

use std::time::Duration;

/// Counts of one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Fragments that the page asked for; one that it has several times counts once.
    pub(crate) fragments: u32,
    /// Those that were not in memory.
    pub(crate) asked: u32,
    /// Those that failed, whatever stood in for them.
    pub(crate) failed: u32,
    /// Fields with cookies that fragments came with.
    pub(crate) cookies: u32,
    /// How long the page waited with nothing to send.
    pub(crate) waited: Duration,
}
