//! Looking after stores while larder runs: what is due every second, and what the operator hears of disks.
//!
//! In: the stores in force. Out: a line in the log for each change: a disk that fails or is absent, is full before its time,
//! and each time that this is over. What is said is decided by the disks; here it gets its words.

use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use larder_observe::Diagnostics;
use larder_store::Disks;
use larder_store::disk::DiskEvent;
use larder_store::disks::AbsenceEvent;
use larder_store::files::FilesAbsence;

use super::Server;

impl Server {
    /// Looks after the stores; to be called every second. Has disks tried again that are absent, and says what has happened to
    /// disks since it was asked last.
    pub fn tend_stores(&self) {
        for (name, store) in &self.config.stores {
            if let Some(known) = self.wiring.store_named(name.as_str()) {
                known.tend(store.idle, self.clock.now());
            }
        }
        let stores = self.wiring.stores();
        self.proxy.try_absent_disks(stores.iter().map(|(_, store)| store));
        self.tell_of_stores();
    }

    pub(super) fn tell_of_stores(&self) {
        for (name, store) in self.wiring.stores() {
            while let Some(event) = store.files().and_then(|files| files.take_event()) {
                self.diagnostics.warn("files", &name, format_args!("store {name}: {event}"));
            }
            while let Some((files, event)) =
                store.files().and_then(|files| Some((files, files.take_journal_event()?)))
            {
                // Of kinds of their own: that it is over is said however soon that is.
                let kind = if files.is_behind() { "files-journal" } else { "files-journal-again" };
                self.diagnostics.warn(kind, &name, format_args!("store {name}: {event}"));
            }
            while let Some(event) = store.files().and_then(|files| files.take_absence()) {
                tell_of_files(&self.diagnostics, &name, store.files().map(|files| files.directory()), &event);
            }
            while let Some((files, event)) =
                store.files().and_then(|files| Some((files, files.take_unreadable()?)))
            {
                let path = files.directory().join(OsStr::from_bytes(&event.path));
                self.diagnostics.warn(
                    "file-unreadable",
                    &name,
                    format_args!(
                        "store {name}: {} cannot be read: {}; requests for it are answered by the origin",
                        path.display(),
                        event.why
                    ),
                );
            }
            let Some(disks) = store.disks() else { continue };
            while let Some((path, event)) = disks.take_absence() {
                tell_of_absence(&self.diagnostics, &name, disks, &path, &event);
            }
            for disk in disks.disks() {
                while let Some(event) = disk.take_event() {
                    tell_of_disk(&self.diagnostics, &name, disk.path(), &event);
                }
            }
        }
    }
}

fn tell_of_absence(
    diagnostics: &Diagnostics,
    store: &str,
    disks: &Disks,
    folder: &Path,
    event: &AbsenceEvent,
) {
    let (subject, path) = (folder.to_string_lossy(), folder.display());
    match event {
        AbsenceEvent::Absent(error) => diagnostics.warn(
            "disk-absent",
            &subject,
            format_args!("store {store} goes on without {path}: {}; it is tried again", chain(error)),
        ),
        AbsenceEvent::Back { is_anew } => {
            let content = match is_anew {
                true => {
                    "; what it held was given up, since it has not heard of what was invalidated meanwhile"
                }
                false => "",
            };
            diagnostics.info("disk-back", &subject, format_args!("store {store} uses {path} again{content}"));
            let back = disks.disks().filter(|disk| disk.path() == folder);
            for finding in back.flat_map(|disk| disk.findings()) {
                diagnostics.warn("disk-finding", &subject, format_args!("store {store}: {finding}"));
            }
        }
    }
}

fn tell_of_files(diagnostics: &Diagnostics, store: &str, path: Option<&Path>, event: &FilesAbsence) {
    let path = path.unwrap_or(Path::new("")).display();
    match event {
        FilesAbsence::Absent(error) => diagnostics.warn(
            "files-absent",
            store,
            format_args!("store {store} goes on without its files: {}; they are looked for", chain(error)),
        ),
        FilesAbsence::Back { is_anew } => {
            let content = match is_anew {
                true => {
                    "; what larder stored there before is not used, since it has not heard of what was invalidated meanwhile"
                }
                false => "",
            };
            diagnostics.info("files-back", store, format_args!("store {store} uses {path} again{content}"));
        }
        FilesAbsence::Replaced => diagnostics.info(
            "files-replaced",
            store,
            format_args!("store {store}: {path} is another directory now, which is used from now on"),
        ),
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
        DiskEvent::RoomAgain => diagnostics.info(
            "disk-room",
            &subject,
            format_args!("store {store} has had room on the file system of {path} again for a minute"),
        ),
    }
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
