//! The thread that writes the journal of a directory.
//!
//! In: what the journal was told. Out: the same in its file. Where that cannot be written, a witness is left elsewhere, and it is
//! tried again.

use std::sync::atomic::Ordering;

use super::Work;
use super::file::{JOURNAL, JournalFile};
use crate::directory::Directory;
use crate::room::Claim;
use crate::sys::Status;

/// The thread: writes until the journal is closed and nothing waits.
pub(crate) fn run(shared: &Directory) {
    let journal = &shared.journal;
    let mut file = JournalFile { length: u64::MAX, needed: 0, inode: None, claim: Claim::default() };
    // What it was opened with, and not known yet to be as it was.
    if let Ok(status) = Status::at(shared.tree.root(), JOURNAL.as_bytes()) {
        (file.length, file.inode) = (status.size, Some(status.inode));
    }
    loop {
        let (asked, appended) = match journal.next(file.length, file.needed) {
            Work::End => return,
            Work::Append(bytes, asked, reached) => {
                (asked, file.append(&shared.tree, &bytes).ok().map(|()| reached))
            }
            Work::Anew(asked) => (asked, None),
        };
        // Asked after what is written was taken: what came later is owed by the next try.
        let is_owed = journal.owes();
        let tried = match appended {
            Some(reached) => Ok(reached),
            None => {
                let (bytes, reached) = journal.whole(&shared.noted, &shared.base.stock);
                file.write(&shared.tree, &bytes, is_owed).map(|()| reached)
            }
        };
        file.count(&shared.room);
        if let Ok(reached) = tried {
            journal.reached.fetch_max(reached, Ordering::AcqRel);
        }
        match &tried {
            Ok(_) => {
                shared.witness.take_back();
                shared.base.remembered.works();
            }
            Err(error) if is_owed => {
                let is_witnessed = shared.witness.leave();
                shared.base.remembered.failed(error, is_witnessed);
            }
            // Whoever asked for it hears of that.
            Err(_) => {}
        }
        let works_again = journal.tried(asked, tried.is_ok(), is_owed);
        if works_again {
            shared.remove_left();
        }
    }
}
