//! Predicates of the caller's, as they are kept for the time after a restart.
//!
//! In: notes in the order in which they were made. Out: those that are still needed: of equal ones the latest, of these the ones
//! that the caller still has in its own table ([`Needed`]), and of all of them the latest that have room. One without content
//! stands for those that had none, so that nothing that was noted is ever forgotten without a trace. What a note says is the caller's own.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;

/// The longest note, in bytes.
pub const NOTE_BYTES_MAX: usize = 16 * 1024;

/// Notes that are kept: as many as predicates may be in force at once, and URLs.
const NOTES_MAX: usize = 393_216;
/// What they may take together, in bytes.
const BYTES_MAX: usize = 64 << 20;
/// What one takes beside its content.
const NOTE_BYTES: usize = 32;

/// A numbered predicate.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The number of the invalidation.
    pub number: u64,
    /// When it happened, in milliseconds since 1970; zero where that does not matter.
    pub moment: u64,
    /// What it names. Empty for a note that stands for all that a journal has forgotten: everything with a smaller number.
    pub what: Vec<u8>,
}

impl Note {
    /// What it counts with where there is a bound on many of them, in bytes.
    pub fn kept_bytes(&self) -> usize {
        NOTE_BYTES + self.what.len()
    }

    /// The same, where it is short enough to be kept.
    pub fn bounded(self) -> Self {
        match self.what.len() <= NOTE_BYTES_MAX {
            true => self,
            false => Self { what: Vec::new(), ..self },
        }
    }
}

/// Whoever makes notes is asked when stock of a journal is taken: which of these have a meaning still, as its own tables are at that moment.
/// The second is the highest number of notes that this journal has lost, or zero: a note without content among the first stands
/// for those, and what it stands for is in the tables only.
pub struct Needed(Box<dyn Fn(Vec<Note>, u64) -> Vec<Note> + Send + Sync>);

impl Needed {
    /// By this function.
    pub fn new(needed: impl Fn(Vec<Note>, u64) -> Vec<Note> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self(Box::new(needed)))
    }
}

impl fmt::Debug for Needed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Needed")
    }
}

/// Where a journal has what it asks when stock is taken: nothing before its notes were taken over.
#[derive(Debug, Default)]
pub struct StockTaker {
    needed: OnceLock<Arc<Needed>>,
    is_stopped: AtomicBool,
}

impl StockTaker {
    /// From now on this is asked. Only the first call counts.
    pub fn ask(&self, needed: &Arc<Needed>) {
        self.needed.get_or_init(|| Arc::clone(needed));
    }

    /// From now on nobody is asked, and every note is kept: the tables may forget what concerns this journal's responses alone.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
    }

    /// Those of `notes` that are to be kept within so many bytes, in the order of their numbers. `lost` is the highest number of
    /// notes that are missing among them, or zero.
    pub fn needed(&self, notes: Vec<Note>, lost: u64, bytes_max: usize) -> Vec<Note> {
        let stands_for_lost = (lost > 0).then(|| Note { number: lost, ..Note::default() });
        let notes = latest_of_equal(notes.into_iter().chain(stands_for_lost));
        let needed =
            self.needed.get().map(|needed| &**needed).filter(|_| !self.is_stopped.load(Ordering::SeqCst));
        let notes = match needed {
            Some(Needed(needed)) => needed(notes, lost),
            None => notes,
        };
        within(notes, bytes_max)
    }
}

/// Those of `notes` that are still needed, as far as they tell themselves, in the order of their numbers.
pub fn needed(notes: impl IntoIterator<Item = Note>) -> Vec<Note> {
    needed_within(notes, BYTES_MAX)
}

/// The same where they may take so many bytes together.
pub fn needed_within(notes: impl IntoIterator<Item = Note>, bytes_max: usize) -> Vec<Note> {
    within(latest_of_equal(notes), bytes_max)
}

fn latest_of_equal(notes: impl IntoIterator<Item = Note>) -> Vec<Note> {
    let mut latest: HashMap<Vec<u8>, (u64, u64), RandomState> = HashMap::default();
    for Note { number, moment, what } in notes {
        let last = latest.entry(what).or_default();
        *last = (number, moment).max(*last);
    }
    latest.into_iter().map(|(what, (number, moment))| Note { number, moment, what }).collect()
}

/// The latest that have room, and one for all others.
fn within(mut notes: Vec<Note>, bytes_max: usize) -> Vec<Note> {
    let bytes_max = bytes_max.min(BYTES_MAX);
    notes.sort_unstable_by(|one, other| other.cmp(one));
    let mut bytes = 0;
    let mut fits = |note: &Note| {
        bytes += note.kept_bytes();
        bytes <= bytes_max
    };
    let kept = notes.iter().take(NOTES_MAX).take_while(|note| fits(note)).count();
    let forgotten = notes.split_off(kept).first().map(|note| note.number);
    if let Some(number) = forgotten {
        // What the latest of these stands for, an earlier one need not say.
        notes.retain(|note| !note.what.is_empty());
        notes.push(Note { number, ..Note::default() });
    }
    notes.reverse();
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(number: u64, what: &str) -> Note {
        Note { number, moment: number * 10, what: what.into() }
    }

    #[test]
    fn of_equal_notes_the_latest_remains() {
        let kept = needed([note(1, "a"), note(4, "b"), note(3, "a"), note(2, "a")]);
        assert_eq!(kept, [note(3, "a"), note(4, "b")]);
        assert!(needed([]).is_empty());
    }

    #[test]
    fn what_is_forgotten_leaves_one_note_for_all_of_it() {
        let one = [note(1, "old")];
        let many = (2..900_000_u64).map(|number| note(number, &format!("b{}", number % 400_000)));
        let kept = needed(one.into_iter().chain(many));
        assert!(kept.len() <= NOTES_MAX + 1);
        let floor = kept.iter().find(|note| note.what.is_empty()).expect("a note for what is forgotten");
        let lowest = kept.iter().filter(|note| !note.what.is_empty()).map(|note| note.number).min();
        assert!(floor.number > 1 && Some(floor.number) < lowest, "{floor:?} {lowest:?}");
        // Once more: nothing is lost by it.
        assert_eq!(needed(kept.clone()), kept);
    }

    #[test]
    fn what_the_caller_has_dropped_is_dropped_and_what_a_journal_has_lost_leaves_a_note() {
        let stock = StockTaker::default();
        let notes = || vec![note(1, "a"), note(2, "b"), note(3, "a")];
        assert_eq!(stock.needed(notes(), 0, BYTES_MAX), [note(2, "b"), note(3, "a")], "nobody to ask");
        let is_needed = |note: &Note| note.what != b"b";
        stock.ask(&Needed::new(move |notes, _| notes.into_iter().filter(is_needed).collect()));
        assert_eq!(stock.needed(notes(), 0, BYTES_MAX), [note(3, "a")]);
        let lost = Note { number: 2, ..Note::default() };
        assert_eq!(stock.needed(notes(), 2, BYTES_MAX), [lost, note(3, "a")]);
        stock.stop();
        assert_eq!(stock.needed(notes(), 0, BYTES_MAX), [note(2, "b"), note(3, "a")]);
    }

    #[test]
    fn a_note_that_is_too_long_stands_for_everything_before_it() {
        let long = note(7, &"x".repeat(NOTE_BYTES_MAX + 1)).bounded();
        assert_eq!((long.number, long.what.len()), (7, 0));
        assert_eq!(note(7, "x").bounded(), note(7, "x"));
    }
}
