//! Waiting for the disk behind the writer's back: the next megabytes are put together and written meanwhile.
//!
//! In: the file that some megabytes were written to. Out: how that went, when the next are handed in or the file is full. So there
//! are at most two such portions that are not on the disk, and a disk that does not keep up still makes the writer wait. The thread is
//! its own: those of the pool serve readers. It ends with the writer.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::engine::sys;

/// The writer's side of it.
pub(super) struct Syncing {
    ask: SyncSender<Arc<File>>,
    answers: Receiver<io::Result<()>>,
    is_under_way: bool,
}

impl Syncing {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (ask, asked) = sync_channel::<Arc<File>>(1);
        let (answer, answers) = sync_channel(1);
        thread::Builder::new().name("larder-sync".to_owned()).spawn(move || {
            while let Ok(file) = asked.recv() {
                let synced = sys::sync(&file);
                // Whoever asks again finds it closed meanwhile.
                drop(file);
                if answer.send(synced).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { ask, answers, is_under_way: false })
    }

    /// Has what was written to `file` brought to the disk, once that is done which was asked for before; says how that went.
    pub(super) fn begin(&mut self, file: Arc<File>) -> io::Result<()> {
        let before = self.wait();
        match self.ask.send(file) {
            Ok(()) => self.is_under_way = true,
            // The thread has gone.
            Err(unsent) => return before.and(sys::sync(&unsent.0)),
        }
        before
    }

    /// Waits for what was asked for, if anything was; says how it went.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.is_under_way) {
            true => self.answers.recv().unwrap_or_else(|gone| Err(io::Error::other(gone))),
            false => Ok(()),
        }
    }
}
