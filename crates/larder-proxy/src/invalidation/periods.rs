//! Which stores have heard of every invalidation, over restarts as well.
//!
//! In: notes of journals. Out: whether what lies beside one may be used. A period begins with the first invalidation after a start, or after
//! a store has gone, and has a number drawn at random. Every journal that is there notes it, with those before it. A store that is
//! closed by a reload notes that as well. So a store that was away while something was invalidated lacks the period of that, and
//! another store that was there has it.
//! Compared are histories, since the numbers of invalidations tell nothing here: those of a run without a store begin anew.
//! Deliberately absent: what happened while none of the stores was there that are here now. Nothing tells of that.

use std::hash::{BuildHasher, RandomState};

use larder_store::Note;

use super::kind::Noted;

/// Begins a note of this kind.
const HEARD: u8 = b'h';
/// Periods that are noted. A store that was away for so many is as one of another larder.
const PERIODS_MAX: usize = 512;
/// Of the numbers in a note.
const NUMBER_BYTES: usize = 8;

/// The periods that a store was there for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Periods {
    /// Of several notes in one journal, that with the highest one counts.
    order: u64,
    /// A reload closed the store, and larder went on.
    has_left: bool,
    /// Oldest first.
    numbers: Vec<u64>,
}

/// Whether a note is of this kind, and can be read.
pub(super) fn is_note(what: &[u8]) -> bool {
    Periods::read(what).is_some()
}

/// What a note names, where it is of this kind.
pub(super) fn read(what: &[u8]) -> Option<Noted> {
    is_note(what).then_some(Noted::Periods)
}

impl Periods {
    /// What a journal says.
    pub(super) fn of(notes: &[Note]) -> Option<Self> {
        notes.iter().filter_map(|note| Self::read(&note.what)).max_by_key(|periods| periods.order)
    }

    fn read(what: &[u8]) -> Option<Self> {
        let (has_left, numbers) = match what.strip_prefix(&[HEARD])?.split_first()? {
            (0, numbers) => (false, numbers),
            (1, numbers) => (true, numbers),
            _ => return None,
        };
        let (numbers, []) = numbers.as_chunks::<NUMBER_BYTES>() else { return None };
        let mut numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
        let order = numbers.next()?;
        Some(Self { order, has_left, numbers: numbers.collect() })
    }

    fn write(&self) -> Vec<u8> {
        let numbers = [self.order].into_iter().chain(self.numbers.iter().copied());
        [HEARD, u8::from(self.has_left)].into_iter().chain(numbers.flat_map(u64::to_le_bytes)).collect()
    }

    fn last(&self) -> Option<u64> {
        self.numbers.last().copied()
    }

    fn has(&self, period: u64) -> bool {
        self.numbers.contains(&period)
    }

    /// Those of both. What one of them alone has counts as older than what the later one has.
    fn absorb(&mut self, mut other: Self) {
        if other.order > self.order {
            std::mem::swap(self, &mut other);
        }
        other.numbers.retain(|number| !self.has(*number));
        other.numbers.append(&mut self.numbers);
        self.numbers = other.numbers;
        self.has_left = false;
        self.cut();
    }

    fn cut(&mut self) {
        self.numbers.drain(..self.numbers.len().saturating_sub(PERIODS_MAX));
    }
}

/// The last period of a store, and whether a reload had closed that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    period: Option<u64>,
    has_left: bool,
}

impl Last {
    fn of(periods: &Periods) -> Self {
        Self { period: periods.last(), has_left: periods.has_left }
    }
}

/// What the process knows of periods.
#[derive(Debug, Default)]
pub(super) struct KnownPeriods {
    /// Those that its stores were there for.
    periods: Periods,
    /// The last ones of all stores that were found at the start: whoever has not heard of each has missed something.
    last: Vec<Last>,
    /// Something is in use that was stored before this process.
    holds_older: bool,
}

/// What is to be thought of what lies beside a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Belief {
    /// It has heard of everything that is known.
    pub(crate) is_believed: bool,
    /// It has heard of something that others have missed which are in use.
    pub(crate) is_ahead: bool,
}

impl KnownPeriods {
    /// At a start, before anything is used: what one of the journals says, of which `last` is the highest number.
    pub(super) fn look_at(&mut self, last: u64, notes: &[Note]) {
        // Where nothing was ever stored nothing was missed. What is in use already cannot be given up for another's sake.
        if last > 0 && !self.holds_older {
            self.last.push(Last::of(&Periods::of(notes).unwrap_or_default()));
        }
    }

    /// What is to be thought of a journal that is about to be used.
    pub(super) fn belief(&mut self, last: u64, notes: &[Note]) -> Belief {
        if last == 0 {
            return Belief { is_believed: true, is_ahead: false };
        }
        let own = Periods::of(notes).unwrap_or_default();
        let of_own = Last::of(&own);
        let has_heard = self.last.iter().filter_map(|other| other.period).all(|period| own.has(period));
        let stays = Last { has_left: false, ..of_own };
        let is_believed = has_heard && (!own.has_left || self.last.contains(&stays));
        let is_known =
            |period| self.periods.has(period) || self.last.iter().any(|last| last.period == Some(period));
        let is_ahead = self.holds_older && own.last().is_some_and(|period| !is_known(period));
        if is_ahead {
            self.last.push(of_own);
        }
        self.holds_older |= is_believed;
        self.periods.absorb(own);
        Belief { is_believed, is_ahead }
    }

    /// A period begins: what is to be noted by all that are there.
    pub(super) fn begin(&mut self, number: u64) -> Note {
        self.periods.numbers.push(RandomState::new().hash_one(number));
        self.periods.cut();
        self.periods.order += 1;
        self.note(number)
    }

    /// What a store is to note that joins the others, or one of which stock is taken; nothing where there was no period yet.
    pub(super) fn joining(&mut self, number: u64) -> Option<Note> {
        self.periods.order += 1;
        (!self.periods.numbers.is_empty()).then(|| self.note(number))
    }

    /// What a store is to note that is about to be closed while others go on.
    pub(super) fn leaving(&mut self, number: u64) -> Note {
        self.periods.order += 1;
        let left = Periods { has_left: true, ..self.periods.clone() };
        Note { number, moment: 0, what: left.write() }
    }

    fn note(&self, number: u64) -> Note {
        Note { number, moment: 0, what: self.periods.write() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A journal with these notes, and with something stored.
    fn belief(known: &mut KnownPeriods, notes: &[Note]) -> Belief {
        known.belief(1, notes)
    }

    fn started(journals: &[&[Note]]) -> KnownPeriods {
        let mut known = KnownPeriods::default();
        journals.iter().for_each(|notes| known.look_at(1, notes));
        known
    }

    const HEARD: Belief = Belief { is_believed: true, is_ahead: false };
    const MISSED: Belief = Belief { is_believed: false, is_ahead: false };

    #[test]
    fn who_lacks_the_last_period_of_another_has_missed_something() {
        let mut larder = KnownPeriods::default();
        let both = vec![larder.begin(1)];
        let one = vec![both[0].clone(), larder.begin(2)];
        let mut next = started(&[&one, &both]);
        assert_eq!(belief(&mut next, &both), MISSED);
        assert_eq!(belief(&mut next, &one), HEARD);
        let mut next = started(&[&one, &one]);
        assert_eq!([belief(&mut next, &one), belief(&mut next, &one)], [HEARD; 2]);
        // One of an earlier version has no such notes.
        assert_eq!(belief(&mut started(&[&one, &[]]), &[]), MISSED);
        assert_eq!(belief(&mut started(&[&[], &[]]), &[]), HEARD);
    }

    #[test]
    fn of_two_that_each_lack_one_both_have_missed_something() {
        let mut larder = KnownPeriods::default();
        let both = vec![larder.begin(1)];
        let alone = || {
            let mut larder = started(&[&both]);
            belief(&mut larder, &both);
            vec![larder.begin(2)]
        };
        let (one, other) = (alone(), alone());
        let mut next = started(&[&one, &other]);
        assert_eq!([belief(&mut next, &one), belief(&mut next, &other)], [MISSED; 2]);
        // From then on it is one history again.
        let joined = [next.joining(3).unwrap()];
        assert!(Periods::of(&joined).unwrap().has(Periods::of(&one).unwrap().last().unwrap()));
        assert!(Periods::of(&joined).unwrap().has(Periods::of(&other).unwrap().last().unwrap()));
    }

    #[test]
    fn one_that_was_closed_needs_another_that_was_not() {
        let mut larder = KnownPeriods::default();
        let stays = vec![larder.begin(1)];
        let left = vec![stays[0].clone(), larder.leaving(1)];
        assert_eq!(belief(&mut started(&[&left]), &left), MISSED);
        assert_eq!(belief(&mut started(&[&left, &left]), &left), MISSED);
        assert_eq!(belief(&mut started(&[&left, &stays]), &left), HEARD);
        let later = vec![larder.begin(2)];
        assert_eq!(belief(&mut started(&[&left, &later]), &left), MISSED);
        // It was taken up again.
        let again = [left.clone(), vec![larder.joining(3).unwrap()]].concat();
        assert_eq!(belief(&mut started(&[&again]), &again), HEARD);
        // Before anything was ever invalidated.
        let mut larder = KnownPeriods::default();
        let left = vec![larder.leaving(1)];
        assert_eq!(belief(&mut started(&[&left]), &left), MISSED);
        assert_eq!(belief(&mut started(&[&left, &[]]), &left), HEARD);
    }

    #[test]
    fn one_that_comes_late_may_have_heard_of_more_than_what_is_in_use() {
        let mut larder = KnownPeriods::default();
        let both = vec![larder.begin(1)];
        let more = vec![larder.begin(2)];
        let mut next = started(&[&both]);
        assert_eq!(belief(&mut next, &both), HEARD);
        assert_eq!(belief(&mut next, &more), Belief { is_ahead: true, ..HEARD });
        assert_eq!(belief(&mut next, &more), HEARD, "it is said once");
        assert_eq!(belief(&mut next, &both), MISSED);
        // Nothing is in use that could have missed it.
        assert_eq!(belief(&mut KnownPeriods::default(), &more), HEARD);
    }

    #[test]
    fn a_period_of_this_process_does_not_count_against_who_was_absent_at_its_start() {
        let mut larder = KnownPeriods::default();
        let both = vec![larder.begin(1)];
        let mut next = started(&[&both]);
        belief(&mut next, &both);
        next.begin(2);
        assert_eq!(belief(&mut next, &both), HEARD);
    }

    #[test]
    fn where_nothing_was_stored_nothing_was_missed() {
        let mut larder = KnownPeriods::default();
        let noted = vec![larder.begin(1)];
        let mut next = started(&[&noted]);
        next.look_at(0, &[]);
        assert_eq!(belief(&mut next, &noted), HEARD);
        assert_eq!(next.belief(0, &[]), HEARD);
    }

    #[test]
    fn as_many_are_noted_as_a_note_has_room_for() {
        let mut larder = KnownPeriods::default();
        let first = vec![larder.begin(0)];
        let last = (0..2 * PERIODS_MAX as u64).map(|number| larder.begin(number)).last().unwrap();
        assert!(
            last.clone().bounded() == last
                && Periods::of(std::slice::from_ref(&last)).unwrap().numbers.len() == PERIODS_MAX
        );
        assert_eq!(
            belief(&mut started(&[&first, std::slice::from_ref(&last)]), &[last]),
            MISSED,
            "nobody knows"
        );
    }

    proptest! {
        #[test]
        fn a_note_says_what_was_written_and_any_other_says_nothing(
            order: u64,
            has_left: bool,
            numbers in vec(any::<u64>(), 0..20),
            bytes in vec(any::<u8>(), 0..40),
        ) {
            let periods = Periods { order, has_left, numbers };
            let written = periods.write();
            prop_assert_eq!(Periods::read(&written), Some(periods));
            prop_assert!(!is_note(&written[..written.len() - 1]));
            let other = [&[super::HEARD], &bytes[..]].concat();
            prop_assert!(Periods::read(&other).is_none_or(|read| read.write() == other));
        }
    }
}
