//! What a view needs to know before all figures: which larder this is, what it remembers, and what its words mean.
//!
//! In: what is known of the running larder, and whether the client may change something. Out: JSON.

use bytes::Bytes;
use larder_admin::Health;
use larder_http::time::WallTime;
use larder_observe::watch::Watch;
use serde_json::json;

use super::config::{RunningConfig, seconds};

/// What is told of a larder.
pub(super) struct About<'a> {
    pub(super) running: &'a RunningConfig,
    pub(super) watch: Option<&'a Watch>,
    pub(super) health: Health,
    pub(super) workers: usize,
    pub(super) started: WallTime,
    pub(super) now: WallTime,
    /// Whether the client that asks may purge.
    pub(super) may_change: bool,
}

impl About<'_> {
    /// All of it as JSON.
    pub(super) fn json(&self) -> Bytes {
        let remembered = self.watch.map(Watch::remembered).unwrap_or_default();
        let history = self.watch.map(Watch::history).unwrap_or_default();
        let about = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "started": seconds(self.started),
            "now": seconds(self.now),
            "instance": &*crate::wire::member::host_name(),
            "workers": self.workers,
            "health": self.health.as_str(),
            "config": { "file": self.running.text.file, "loaded": seconds(self.running.loaded) },
            "memory": {
                "series": remembered.series,
                "series_folded": remembered.series_folded,
                "bytes": remembered.bytes,
                "bytes_max": remembered.bytes_max,
            },
            "history": history.as_secs(),
            "may_change": self.may_change,
            "words": larder_proxy::words(),
        });
        about.to_string().into()
    }
}
