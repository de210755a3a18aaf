//! What is known of versions, and for how long.
//!
//! In: what was read and told (into the table), and signs of life of the server. Out: a version, as long as both count. What is known ends with
//! the connection by which it was read, and is not known again through the next.

use std::time::Duration;

use super::name::VersionName;
use super::table::Table;
use super::version::Version;
use crate::until::Until;

/// The longest that a server which cannot be heard any more is believed.
pub const TRACKING: Duration = Duration::from_secs(2);

/// See the head of the file.
pub(super) struct Known {
    pub(super) table: Table,
    until: Until,
}

impl Known {
    pub(super) fn new() -> Self {
        Self { table: Table::new(), until: Until::new() }
    }

    /// Hands a version to `use_it`, where it is known at this moment.
    #[inline]
    pub(super) fn get<T>(
        &self,
        name: &VersionName,
        now: Duration,
        use_it: impl FnOnce(&Version) -> T,
    ) -> Option<T> {
        if !self.until.is_after(now) {
            return None;
        }
        self.table.known(name, seconds(now), use_it)
    }

    /// What is known counts, since a sign of life was asked for at `asked` and has come.
    pub(super) fn alive(&self, asked: Duration) {
        self.until.set(asked + TRACKING);
    }

    /// Nothing is known any more.
    pub(super) fn forget(&self) {
        self.until.end();
        self.table.changed(None);
    }
}

/// The clock in whole seconds, by which uses are noted.
pub(super) fn seconds(now: Duration) -> u32 {
    u32::try_from(now.as_secs()).unwrap_or(u32::MAX)
}
