//! How long what failed is left alone.
//!
//! In: how long it was left alone before. Out: twice that, from a second to a minute.

use std::time::Duration;

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How long a disk is left alone that was left alone for so long, and failed again.
pub fn next_pause(before: Duration) -> Duration {
    (before * 2).clamp(PAUSE_MIN, PAUSE_MAX)
}
