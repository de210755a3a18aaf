//! A clock that stands still: what depends on the time is told it.

use std::time::Duration;

pub(crate) fn now() -> Duration {
    Duration::ZERO
}
