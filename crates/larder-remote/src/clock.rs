//! The clock by which it counts how long ago a server was heard of: it goes on while the machine sleeps, and is never set.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since the machine was started (`CLOCK_BOOTTIME`).
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}
