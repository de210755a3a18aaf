//! What is known of a store whose directory is not there, and what is to be told of it.
//!
//! In: failures, and what could not be done meanwhile. Out: when to try again, what to make good for, and events for the log.
//! `watch` looks at the path, and takes the directory up when it is back.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::error::FilesError;
use super::sys::Identity;
use larder_tier::missed::Missed;
use larder_tier::pause::next_pause;

/// Events that nobody took; older ones go.
const EVENTS_MAX: usize = 8;

/// What the operator should hear of the directory.
#[derive(Debug)]
pub enum FilesAbsence {
    /// It cannot be used; told once for each reason in turn.
    Absent(FilesError),
    /// It is used again.
    Back {
        /// Whether what larder stored there before is not used.
        is_anew: bool,
    },
    /// Another directory has taken its place.
    Replaced,
}

/// What is known while there is no directory in use, and what is to be told.
#[derive(Debug, Default)]
pub(super) struct Absence {
    pub(super) missed: Missed,
    /// The last one that was in use.
    pub(super) last: Option<Identity>,
    /// Where the path led when it was tried last.
    pub(super) tried: Option<Identity>,
    pub(super) pause: Duration,
    pub(super) next: Option<Instant>,
    pub(super) is_closed: bool,
    /// Why it was absent when that was last told.
    pub(super) told: Option<String>,
    pub(super) events: VecDeque<FilesAbsence>,
}

impl Absence {
    /// It cannot be used: it is tried again, after twice the time, and at once where the path leads elsewhere than now.
    pub(super) fn failed(&mut self, error: FilesError, tried: Option<Identity>) {
        self.tried = tried;
        self.pause = next_pause(self.pause);
        self.next = Some(Instant::now() + self.pause);
        let why = match std::error::Error::source(&error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        if self.told.as_ref() != Some(&why) {
            self.told = Some(why);
            self.push(FilesAbsence::Absent(error));
        }
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(super) fn push(&mut self, event: FilesAbsence) {
        while self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub(super) fn is_due(&self, there: Option<Identity>) -> bool {
        !self.is_closed && (there != self.tried || self.next.is_none_or(|next| next <= Instant::now()))
    }
}
