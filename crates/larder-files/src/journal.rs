//! What was invalidated, written down for the next start.
//!
//! In: names with the number of an invalidation, and predicates of the caller's. Out: the file `.larder/journal`, which the next
//! start reads: what it names is not used, if it is older, although its file may still be there. Workers put entries into
//! memory and never wait; a thread of its own writes them, a `write` for all that have come meanwhile, and whoever answers a
//! client afterwards waits for that ([`Written`]), within a bound of the caller's. What is written
//! where is [`mod@file`]'s.
//!
//! What cannot be written is not lost: all that is needed is in memory ([`PendingRemovals`](super::noted)), and the file is written anew
//! from there as soon as that is possible. Where somebody is answered as if it had been ([`Owed::Yes`]), the next start is warned
//! until then: the file is cut where that still can be done, and a [`Witness`](super::witness) is left elsewhere. It uses nothing then
//! that larder stored before.
//!
//! A file that has grown long is written anew from what is still needed: nearly nothing, since most of what is named is
//! removed a moment later. Lock: this alone, never while the file system is asked for anything.

mod file;
pub(super) mod thread;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use larder_http::time::WallTime;
use parking_lot::Condvar;
use tokio::sync::oneshot;

use super::name::Name;
use super::noted::PendingRemovals;
use super::tree::Tree;
pub(super) use file::OWN_BYTES;
use file::read_file;
pub(super) use file::sync_file;
use larder_tier::Note;
use larder_tier::format::log::{LogHead, read_log, write_note, write_reached};
use larder_tier::note::{StockTaker, needed_within};
use larder_tier::rank::{Rank, RankedMutex};
use larder_tier::tier::Written;

/// A file longer than this is written anew, unless half of it is needed.
const LONG_BYTES: u64 = 32 * 1024;
/// What predicates of the caller's may take. Beyond that stock is taken of them; and one stands for the earliest of those that
/// are needed still and have no room.
const NOTES_BYTES_MAX: usize = 16 << 20;
/// What they may take while stock cannot be taken.
const UNSORTED_BYTES_MAX: usize = 2 * NOTES_BYTES_MAX;
/// To how much they are brought down.
const NOTES_FIT_BYTES: usize = NOTES_BYTES_MAX / 4 * 3;
/// Numbers are promised to the next start in steps of this.
const REACH: u64 = 1 << 20;
/// How long it is left alone after a failure.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long the writing thread waits for what has to be there before a file gets its name.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Begins a note of a name. Without one it stands for all names.
const NAME: u8 = b'f';

/// What a journal said when it was opened.
#[derive(Debug, Default)]
pub(super) struct Restored {
    pub(super) names: Vec<(Name, u64)>,
    pub(super) notes: Vec<Note>,
}

/// Whether the next start has to know of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owed {
    /// Somebody is answered because of it.
    Yes,
    /// Whoever it is for hears where it cannot be written.
    No,
}

#[derive(Debug)]
struct State {
    head: LogHead,
    /// Predicates of the caller's.
    notes: Vec<Note>,
    notes_bytes: usize,
    /// Stock is to be taken of them.
    is_stock_due: bool,
    /// Encoded entries that wait.
    waiting: Vec<u8>,
    /// Entries asked for so far, and how many of them were written, or could not be.
    asked: u64,
    tried: u64,
    /// The last of them that is written, and the last that has to be.
    written: u64,
    owed: u64,
    /// The whole file has to be written from what is in memory.
    is_due_anew: bool,
    is_behind: bool,
    /// The next start has been warned of what is owed, as far as that is possible.
    is_warned: bool,
    pause: Duration,
    next: Option<Instant>,
    is_closed: bool,
    told: Vec<(u64, oneshot::Sender<()>)>,
}

/// The journal of one directory.
#[derive(Debug)]
pub(super) struct Journal {
    state: RankedMutex<State>,
    changed: Condvar,
    /// Numbers below this are promised to the next start.
    reached: AtomicU64,
    /// What larder stored with a smaller number is not used: it is from before a journal that could not be believed.
    floor: u64,
}

/// What the thread does next.
pub(super) enum Work {
    /// These bytes, which are all up to this entry and promise this number.
    Append(Vec<u8>, u64, u64),
    /// Everything, which has all up to this entry.
    Anew(u64),
    End,
}

impl Journal {
    /// Reads the journal of a directory. Where there is none, or it cannot be believed (`is_behind`: something is missing in it),
    /// it says that nothing stored before `now` is; a directory with nothing in it has nothing to be disbelieved. The clock may be behind
    /// of what was stored: so nothing is used either with a number that was promised before, as far as that can be read.
    pub(super) fn read(tree: &Tree, now: WallTime, is_behind: bool) -> io::Result<(Self, Restored)> {
        let bytes = read_file(tree)?;
        let log = bytes.as_deref().and_then(read_log);
        let promised = log.as_ref().map_or(0, |log| log.head.reached);
        let log = log.filter(|log| log.is_whole && log.head.begun <= now.0 && !is_behind);
        let is_sound = log.as_ref().is_some_and(|log| Some(log.end) == bytes.as_ref().map(Vec::len));
        let mut restored = Restored::default();
        let mut floor = 0;
        let head = match log {
            Some(log) => {
                let mut others = Vec::new();
                for note in log.notes {
                    match note.what.split_first() {
                        Some((&NAME, [])) => floor = floor.max(note.number),
                        Some((&NAME, name)) => restored.names.push((Name::found_at(name), note.number)),
                        _ => others.push(note),
                    }
                }
                restored.notes = needed_within(others, NOTES_BYTES_MAX);
                log.head
            }
            None if bytes.is_none() && tree.is_empty()? => LogHead::default(),
            None => {
                floor = promised;
                LogHead { begun: now.0, reached: promised }
            }
        };
        let notes_bytes = restored.notes.iter().map(Note::kept_bytes).sum();
        let state = State {
            head,
            notes: restored.notes.clone(),
            notes_bytes,
            is_stock_due: false,
            waiting: Vec::new(),
            asked: 0,
            tried: 0,
            written: 0,
            owed: 0,
            is_due_anew: !is_sound,
            is_behind: false,
            is_warned: false,
            pause: Duration::ZERO,
            next: None,
            is_closed: false,
            told: Vec::new(),
        };
        let reached = AtomicU64::new(head.reached);
        let state = RankedMutex::new(Rank::Leaf, state);
        Ok((Self { state, changed: Condvar::new(), reached, floor }, restored))
    }

    /// What larder stored before this is not used.
    pub(super) fn begun(&self) -> WallTime {
        WallTime(self.state.lock().head.begun)
    }

    /// What larder stored with a smaller number is not used.
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// Above every number that was ever given out here.
    pub(super) fn reached(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    /// Notes that what was stored under a name with a smaller number is not to be used.
    pub(super) fn note_name(&self, name: &Name, number: u64, owed: Owed) {
        let what = [&[NAME], name.bytes()].concat();
        self.push(owed, |_, bytes| write_note(&Note { number, moment: 0, what }, bytes));
    }

    /// Notes a predicate of the caller's.
    pub(super) fn note(&self, note: &Note) {
        self.take_in(note, Owed::Yes);
    }

    /// Notes what concerns nothing that is stored. Where it cannot be written, nobody has to be warned.
    pub(super) fn mark(&self, note: &Note) {
        self.take_in(note, Owed::No);
    }

    fn take_in(&self, note: &Note, owed: Owed) {
        self.push(owed, |state, bytes| {
            write_note(note, bytes);
            state.notes_bytes += note.kept_bytes();
            state.notes.push(note.clone());
            if state.notes_bytes > NOTES_BYTES_MAX {
                state.is_stock_due = true;
                state.is_due_anew = true;
            }
            if state.notes_bytes > UNSORTED_BYTES_MAX {
                state.notes = needed_within(std::mem::take(&mut state.notes), NOTES_FIT_BYTES);
                state.notes_bytes = state.notes.iter().map(Note::kept_bytes).sum();
            }
        });
    }

    /// Has stock taken of the notes.
    pub(super) fn take_stock(&self) {
        let mut state = self.state.lock();
        if !state.is_closed {
            (state.is_stock_due, state.is_due_anew) = (true, true);
            self.changed.notify_all();
        }
    }

    /// Takes it, where it is due. Those that come meanwhile are kept behind the others.
    fn sort_out(&self, stock: &StockTaker) {
        let notes = {
            let mut state = self.state.lock();
            if !std::mem::take(&mut state.is_stock_due) {
                return;
            }
            std::mem::take(&mut state.notes)
        };
        // To three quarters, so that this is not due again at once.
        let mut notes = stock.needed(notes, 0, NOTES_FIT_BYTES);
        let mut state = self.state.lock();
        notes.append(&mut state.notes);
        state.notes_bytes = notes.iter().map(Note::kept_bytes).sum();
        state.notes = notes;
    }

    /// From now on nothing counts that larder stored before `now`, also after a restart.
    pub(super) fn begin_anew(&self, now: WallTime) {
        self.push(Owed::Yes, |state, _| {
            state.head.begun = state.head.begun.max(now.0);
            state.is_due_anew = true;
        });
    }

    fn push(&self, owed: Owed, write: impl FnOnce(&mut State, &mut Vec<u8>)) -> u64 {
        let mut state = self.state.lock();
        let mut bytes = std::mem::take(&mut state.waiting);
        write(&mut state, &mut bytes);
        state.waiting = bytes;
        if state.is_behind || state.waiting.len() > LONG_BYTES as usize {
            // All of it is in memory, and the file is written from there.
            state.waiting = Vec::new();
            state.is_due_anew = true;
        }
        state.asked += 1;
        if owed == Owed::Yes {
            state.owed = state.asked;
            if !state.is_warned {
                // Whoever waits for it is answered once it was tried.
                state.next = None;
            }
        }
        self.changed.notify_all();
        state.asked
    }

    /// See [`Written`]. While nothing can be written, and the next start has been warned, nobody waits.
    pub(super) fn written(&self) -> Written {
        let mut state = self.state.lock();
        if state.tried >= state.owed || state.is_closed || state.is_warned {
            return Written::default();
        }
        let (tell, told) = oneshot::channel();
        let owed = state.owed;
        state.told.push((owed, tell));
        Written::when(told)
    }

    /// Sees to it that the next start gives out no number that a file has which is stored now. Waits for the file system; false where
    /// it cannot be written down.
    pub(super) fn reach(&self, number: u64) -> bool {
        if number < self.reached() {
            return true;
        }
        let reached = number.saturating_add(REACH);
        let asked = self.push(Owed::No, |state, bytes| {
            state.head.reached = state.head.reached.max(reached);
            write_reached(reached, bytes);
        });
        self.has_written(asked)
    }

    /// Waits until everything that was noted so far is written; false where that cannot be.
    pub(super) fn sync(&self) -> bool {
        let asked = self.state.lock().asked;
        self.has_written(asked)
    }

    fn has_written(&self, asked: u64) -> bool {
        let (mut state, until) = (self.state.lock(), Instant::now() + WAIT_MAX);
        while state.tried < asked && !state.is_behind && !state.is_closed && Instant::now() < until {
            state.wait_for(&self.changed, until.saturating_duration_since(Instant::now()));
        }
        state.tried >= asked && !state.is_behind
    }

    /// Whether something that was invalidated is not written down, and has to be.
    pub(super) fn is_behind(&self) -> bool {
        let state = self.state.lock();
        state.is_behind && state.owed > state.written
    }

    /// Whether something up to this entry has to be written that is not.
    pub(super) fn owes(&self) -> bool {
        let state = self.state.lock();
        state.owed > state.written
    }

    /// Takes nothing more in; what waits is still tried.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    pub(super) fn next(&self, length: u64, needed: u64) -> Work {
        let mut state = self.state.lock();
        loop {
            let is_paused = state.next.is_some_and(|next| Instant::now() < next) && !state.is_closed;
            let is_long = length > LONG_BYTES.max(needed * 2);
            if !is_paused && (state.is_due_anew || (is_long && !state.waiting.is_empty())) {
                state.waiting = Vec::new();
                state.is_due_anew = false;
                return Work::Anew(state.asked);
            }
            if !is_paused && !state.waiting.is_empty() {
                return Work::Append(std::mem::take(&mut state.waiting), state.asked, state.head.reached);
            }
            if state.is_closed {
                return Work::End;
            }
            match state.next.filter(|_| is_paused) {
                Some(next) => {
                    state.wait_for(&self.changed, next.saturating_duration_since(Instant::now()));
                }
                None => state.wait(&self.changed),
            }
        }
    }

    /// What a try has come to; says whether it works again. `was_owed`: the next start was warned where it failed.
    pub(super) fn tried(&self, asked: u64, is_written: bool, was_owed: bool) -> bool {
        let mut state = self.state.lock();
        state.tried = asked;
        state.is_warned = !is_written && was_owed;
        let was_behind = state.is_behind;
        state.is_behind = !is_written;
        if is_written {
            (state.pause, state.next) = (Duration::ZERO, None);
            state.written = asked;
        } else {
            // A journal that is being closed has had its last try.
            state.is_due_anew = !state.is_closed;
            state.pause = (state.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
            // What has to be written came meanwhile, and nobody was warned of it yet.
            let is_new = !was_owed && state.owed > state.written;
            state.next = (!is_new).then(|| Instant::now() + state.pause);
        }
        let is_warned = state.is_warned;
        let is_over = |until: u64| until <= asked || is_warned;
        let told = std::mem::take(&mut state.told);
        let (over, left) = told.into_iter().partition(|(until, _)| is_over(*until));
        state.told = left;
        self.changed.notify_all();
        drop(state);
        let over: Vec<(u64, oneshot::Sender<()>)> = over;
        // Whoever waited may have left.
        over.into_iter().for_each(|(_, tell)| {
            let _ = tell.send(());
        });
        was_behind && is_written
    }

    /// The whole file as it should be, and below which number it promises all numbers to be.
    pub(super) fn whole(&self, noted: &PendingRemovals, stock: &StockTaker) -> (Vec<u8>, u64) {
        self.sort_out(stock);
        let (head, notes) = {
            let state = self.state.lock();
            (state.head, state.notes.clone())
        };
        let mut bytes = head.write();
        notes.iter().for_each(|note| write_note(note, &mut bytes));
        if self.floor > 0 {
            write_note(&Note { number: self.floor, moment: 0, what: vec![NAME] }, &mut bytes);
        }
        for (name, number) in noted.written() {
            let what = [&[NAME], name.bytes()].concat();
            write_note(&Note { number, moment: 0, what }, &mut bytes);
        }
        (bytes, head.reached)
    }
}
