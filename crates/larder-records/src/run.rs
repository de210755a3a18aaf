//! The owner's side of records: little of it, since nothing lies here.
//!
//! In: the end of the process. Out: what is queued is written, within a bound.

use std::sync::Arc;
use std::time::Duration;

use larder_tier::Run;
use larder_tier::backlog::Backlog;
use larder_tier::tier::{Admit, DirectoryFigures, TierEvent};

use crate::Records;

/// How long the end waits for the server.
const CLOSE_MAX: Duration = Duration::from_secs(10);

impl Run for Records {
    fn open(&self, _admit: &Arc<Admit>, _is_believed: bool) {}

    /// A store that a reload has opened was not told what was removed before.
    fn hears_from(&self, number: u64) {
        self.removed.forget_up_to(number);
    }

    fn borrow_from(&self, _backlog: &Arc<Backlog>) {}

    fn limit_files(&self, _files: usize) {}

    fn close(&self) {
        self.servers.drained(CLOSE_MAX);
    }

    fn figures(&self) -> Vec<DirectoryFigures> {
        Vec::new()
    }

    fn take_event(&self, _store: &str) -> Option<TierEvent> {
        None
    }
}
