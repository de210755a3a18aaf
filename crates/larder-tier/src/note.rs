//! Predicates of the caller's, as they are kept for the time after a restart.
//!
//! In: notes in the order in which they were made. Out: those that are still needed: of equal ones the latest, and of
//! all of them the latest that have room. One without content stands for those that had none, so that nothing that was
//! noted is ever forgotten without a trace. What a note says is the caller's own.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// The longest note, in bytes.
pub const NOTE_BYTES_MAX: usize = 16 * 1024;

/// Notes that are kept.
const NOTES_MAX: usize = 131_072;
/// What they may take together, in bytes.
const BYTES_MAX: usize = 8 << 20;
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

/// Those of `notes` that are still needed, in the order of their numbers.
pub fn needed(notes: impl IntoIterator<Item = Note>) -> Vec<Note> {
    needed_within(notes, BYTES_MAX)
}

/// The same where they may take so many bytes together.
pub fn needed_within(notes: impl IntoIterator<Item = Note>, bytes_max: usize) -> Vec<Note> {
    let mut latest: HashMap<Vec<u8>, (u64, u64), RandomState> = HashMap::default();
    for Note { number, moment, what } in notes {
        let last = latest.entry(what).or_default();
        *last = (number, moment).max(*last);
    }
    let notes = latest.into_iter();
    let mut notes: Vec<Note> = notes.map(|(what, (number, moment))| Note { number, moment, what }).collect();
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
        let many = (2..300_000_u64).map(|number| note(number, &format!("b{}", number % 140_000)));
        let kept = needed(one.into_iter().chain(many));
        assert!(kept.len() <= NOTES_MAX + 1);
        let floor = kept.iter().find(|note| note.what.is_empty()).expect("a note for what is forgotten");
        let lowest = kept.iter().filter(|note| !note.what.is_empty()).map(|note| note.number).min();
        assert!(floor.number > 1 && Some(floor.number) < lowest, "{floor:?} {lowest:?}");
        // Once more: nothing is lost by it.
        assert_eq!(needed(kept.clone()), kept);
    }

    #[test]
    fn a_note_that_is_too_long_stands_for_everything_before_it() {
        let long = note(7, &"x".repeat(NOTE_BYTES_MAX + 1)).bounded();
        assert_eq!((long.number, long.what.len()), (7, 0));
        assert_eq!(note(7, "x").bounded(), note(7, "x"));
    }
}
