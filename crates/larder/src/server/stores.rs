//! What a running larder does for its stores every second, and what the operator hears of their disks.
//!
//! In: what the stores have noticed since. Out: lines of the log, one when a disk or a directory fails and one when it works
//! again, never one per request.

use std::path::Path;

use larder_observe::Diagnostics;
use larder_store::disk::DiskEvent;

use super::Server;

impl Server {
    /// Looks after the stores; to be called every second. Says what has happened to disks since it was asked last: that one
    /// fails, or works again.
    pub fn tend_stores(&self) {
        for (name, store) in &self.config.stores {
            if let Some(known) = self.wiring.store_named(name.as_str()) {
                known.tend(store.idle, self.clock.now());
            }
        }
        self.tell_of_disks();
    }

    pub(super) fn tell_of_disks(&self) {
        for (name, store) in self.wiring.stores() {
            while let Some(event) = store.files().and_then(|files| files.take_event()) {
                self.diagnostics.warn("files", &name, format_args!("store {name}: {event}"));
            }
            for disk in store.disks().map(|disks| disks.disks()).unwrap_or_default() {
                while let Some(event) = disk.take_event() {
                    tell_of_disk(&self.diagnostics, &name, disk.path(), &event);
                }
            }
        }
    }
}

fn tell_of_disk(diagnostics: &Diagnostics, store: &str, path: &Path, event: &DiskEvent) {
    let (subject, path) = (path.to_string_lossy(), path.display());
    match event {
        DiskEvent::Failing { what, why, pause } => diagnostics.warn(
            "disk-failing",
            &subject,
            format_args!(
                "store {store} goes on without {path}: {what}: {why}; it is tried again in {} s",
                pause.as_secs()
            ),
        ),
        DiskEvent::Recovered => {
            diagnostics.info("disk-recovered", &subject, format_args!("store {store} uses {path} again"));
        }
        DiskEvent::NoRoom => diagnostics.warn(
            "disk-no-room",
            &subject,
            format_args!(
                "the file system of {path} is full before store {store} has its size there: others fill it"
            ),
        ),
    }
}
