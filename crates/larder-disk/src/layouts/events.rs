//! What the operator hears of disks: that one fails or is absent, is full before its time, and each time that this is over.
//!
//! In: events, as the disks and their slots decide on them. Out: a line for each.

use std::error::Error;
use std::path::Path;

use larder_tier::tier::TierEvent;

use super::{AbsenceEvent, Disks};
use crate::engine::DiskEvent;

/// The oldest event that was not taken yet.
pub(super) fn take(disks: &Disks, store: &str) -> Option<TierEvent> {
    if let Some(finding) = disks.findings_to_tell.lock().pop_front() {
        let (subject, finding) = finding;
        let text = format!("store {store}: {finding}");
        return Some(TierEvent { kind: "disk-finding", subject: Some(subject), is_warning: true, text });
    }
    if let Some((path, event)) = disks.take_absence() {
        return Some(of_absence(disks, store, &path, &event));
    }
    disks.disks().find_map(|disk| Some(of_disk(store, disk.path(), &disk.take_event()?)))
}

fn of_absence(disks: &Disks, store: &str, folder: &Path, event: &AbsenceEvent) -> TierEvent {
    let (subject, path) = (folder.to_string_lossy(), folder.display());
    let (kind, is_warning, text) = match event {
        AbsenceEvent::Absent(error) => (
            "disk-absent",
            true,
            format!("store {store} goes on without {path}: {}; it is tried again", chain(error)),
        ),
        AbsenceEvent::Back { is_anew } => {
            let content = match is_anew {
                true => {
                    "; what it held was given up, since it has not heard of what was invalidated meanwhile"
                }
                false => "",
            };
            let back = disks.disks().filter(|disk| disk.path() == folder);
            let findings = back.flat_map(|disk| disk.findings());
            let findings = findings.map(|finding| (subject.clone().into_owned(), finding.to_string()));
            disks.findings_to_tell.lock().extend(findings);
            ("disk-back", false, format!("store {store} uses {path} again{content}"))
        }
    };
    TierEvent { kind, subject: Some(subject.into_owned()), is_warning, text }
}

fn of_disk(store: &str, path: &Path, event: &DiskEvent) -> TierEvent {
    let (subject, path) = (path.to_string_lossy(), path.display());
    let (kind, is_warning, text) = match event {
        DiskEvent::Failing { what, why, pause } => (
            "disk-failing",
            true,
            format!(
                "store {store} goes on without {path}: {what}: {why}; it is tried again in {} s",
                pause.as_secs()
            ),
        ),
        DiskEvent::Recovered => ("disk-recovered", false, format!("store {store} uses {path} again")),
        DiskEvent::NoRoom => (
            "disk-no-room",
            true,
            format!(
                "the file system of {path} is full before store {store} has its size there: others fill it"
            ),
        ),
        DiskEvent::RoomAgain => (
            "disk-room",
            false,
            format!("store {store} has had room on the file system of {path} again for a minute"),
        ),
    };
    TierEvent { kind, subject: Some(subject.into_owned()), is_warning, text }
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
