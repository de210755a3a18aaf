//! What the operator hears of plain files: that the directory is absent, fails, is another, or does not remember what was
//! invalidated; a purged directory that cannot be removed; a file that cannot be read. Also where such a thing is over.
//!
//! In: events, as the store decides on them. Out: a line for each.

use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use larder_tier::tier::TierEvent;

use super::{FileStore, FilesAbsence};

/// The oldest event of each kind that was not taken yet, one kind after the other.
pub(super) fn take(files: &FileStore, store: &str) -> Option<TierEvent> {
    let warning = |kind, text| TierEvent { kind, subject: None, is_warning: true, text };
    if let Some(event) = files.take_event() {
        return Some(warning("files", format!("store {store}: {event}")));
    }
    if let Some(event) = files.take_journal_event() {
        // Of kinds of their own: that it is over is said however soon that is.
        let kind = if files.is_behind() { "files-journal" } else { "files-journal-again" };
        return Some(warning(kind, format!("store {store}: {event}")));
    }
    if let Some(event) = files.take_absence() {
        return Some(of_absence(files, store, &event));
    }
    if let Some(event) = files.take_left_aside() {
        let path = files.directory().join(event.path);
        let text = format!(
            "store {store}: {} was purged and cannot be removed: {}; it takes room until it is, by hand or at the next start",
            path.display(),
            event.why
        );
        return Some(warning("files-aside", text));
    }
    let event = files.take_unreadable()?;
    let path = files.directory().join(OsStr::from_bytes(&event.path));
    let text = format!(
        "store {store}: {} cannot be read: {}; requests for it are answered by the origin",
        path.display(),
        event.why
    );
    Some(warning("file-unreadable", text))
}

fn of_absence(files: &FileStore, store: &str, event: &FilesAbsence) -> TierEvent {
    let path = files.directory().display();
    let (kind, is_warning, text) = match event {
        FilesAbsence::Absent(error) => (
            "files-absent",
            true,
            format!("store {store} goes on without its files: {}; they are looked for", chain(error)),
        ),
        FilesAbsence::Back { is_anew } => {
            let content = match is_anew {
                true => {
                    "; what larder stored there before is not used, since it has not heard of what was invalidated meanwhile"
                }
                false => "",
            };
            ("files-back", false, format!("store {store} uses {path} again{content}"))
        }
        FilesAbsence::Replaced => (
            "files-replaced",
            false,
            format!("store {store}: {path} is another directory now, which is used from now on"),
        ),
    };
    TierEvent { kind, subject: None, is_warning, text }
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
