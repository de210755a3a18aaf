//! The owner's side of values: little of it, since nothing lies here.
//!
//! In: the end of the process, a new cap, and the looks of who tends stores. Out: what is queued is carried out, within a bound; and
//! one line for the operator where nothing is believed any more.
//! A store that no config has named for a while may have missed invalidations. It is believed all the same: nobody could tell its
//! values from others, and most of them are the application's own affair.

use std::sync::atomic::Ordering;
use std::time::Duration;

use larder_tier::Run;
use larder_tier::tier::{TierCaps, TierEvent};

use crate::Values;

/// How long the end waits for the servers.
const CLOSE_MAX: Duration = Duration::from_secs(10);

impl Run for Values {
    fn resize(&self, caps: &TierCaps) {
        self.max_object.store(caps.max_object, Ordering::Relaxed);
        self.servers.resize(usize::try_from(caps.max_object).unwrap_or(usize::MAX));
    }

    fn close(&self) {
        self.servers.drained(CLOSE_MAX);
    }

    fn take_event(&self, store: &str) -> Option<TierEvent> {
        if !self.notes.is_everything() || self.is_told.swap(true, Ordering::Relaxed) {
            return None;
        }
        let text = format!(
            "store {store}: more deletions wait for its server than can be noted; its values are not used until larder \
             starts again"
        );
        Some(TierEvent { kind: "values-unknown", subject: None, is_warning: true, text })
    }
}
