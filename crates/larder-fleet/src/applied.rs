//! How far a log was applied, in the numbers that a larder counts its invalidations with.
//!
//! In: what a member has applied, and the number of the last invalidation then; purges of its own, before they get a number. Out: the
//! position of a fetch by the number that it began with ([`Applied::position_of`]), and the number of a shared response by its position
//! ([`Applied::number_of`]). A larder compares that number with what was invalidated here since, as with all that it has fetched itself.
//!
//! **Invariant**: whatever was invalidated here under a number above that of a shared response, and nothing else, may have been
//! missed by whoever fetched it. A purge of this member has a number long before it has a place in the log. Until the reading has
//! met it there, every shared response is older than it.

use std::collections::{BTreeMap, VecDeque};

use crate::call::{EntryId, Position};

/// Positions that are kept. Responses from before the oldest cannot be judged.
pub const STEPS_MAX: usize = 65_536;

/// An announced purge, until it has names in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Announced(u64);

/// A position that was reached.
#[derive(Clone, Copy, Debug)]
struct Step {
    sequence: u64,
    /// The last number when everything up to there was applied: what has this or a higher one knows it.
    reached: u64,
    /// What has this or a lower one may have been invalidated by what its fetcher did not know.
    known: u64,
}

/// A purge of this member that the reading has not met.
#[derive(Clone, Copy, Debug)]
struct Own {
    /// A number below its own.
    before: u64,
    /// Nobody asks for its receipt: it is lost with the log.
    is_told: bool,
    /// Where it stands, as far as is known.
    placed: Option<Position>,
    /// Nothing brings it into another log any more.
    is_complete: bool,
}

/// See the head of the file.
#[derive(Debug, Default)]
pub struct Applied {
    at: Option<Position>,
    steps: VecDeque<Step>,
    own: BTreeMap<EntryId, Own>,
    /// Those that were met and are not complete: another log may have to have them again.
    met: BTreeMap<EntryId, u64>,
    announced: BTreeMap<Announced, u64>,
    /// There was no room for a purge with a number above this. An entry for everything follows.
    owed: Option<u64>,
    last_announced: u64,
}

impl Applied {
    /// A purge is about to get a number above `number`, the last one at this moment. It concerns every shared response from now on.
    pub fn announce(&mut self, number: u64) -> Announced {
        self.last_announced += 1;
        let announced = Announced(self.last_announced);
        self.announced.insert(announced, number);
        announced
    }

    /// It has this name, as one of its entries. To be called before the member takes the entry in.
    pub fn name(&mut self, announced: Announced, id: EntryId, is_told: bool) {
        if let Some(before) = self.announced.get(&announced) {
            self.own.insert(id, Own { before: *before, is_told, placed: None, is_complete: false });
        }
    }

    /// The member had no room for the entry. One for everything follows, which this larder has no other name for.
    pub fn owe(&mut self, id: EntryId) {
        if let Some(own) = self.own.remove(&id) {
            self.owed = Some(self.owed.map_or(own.before, |before| before.min(own.before)));
        }
    }

    /// All its entries have names, or it came to nothing.
    pub fn end(&mut self, announced: Announced) {
        self.announced.remove(&announced);
    }

    /// Everything up to `position` is applied, and the last number is `number` now. `own` is the entry there, where it is one of this
    /// member.
    pub fn reach(&mut self, position: Position, number: u64, own: Option<EntryId>) {
        if let Some(id) = own {
            self.meet(id);
        }
        if self.at.is_none_or(|at| at.epoch != position.epoch) {
            self.begin(position);
        }
        self.step(position, number);
    }

    /// The same where entries before that may have been missed: everything with a lower number is unproven.
    pub fn restart(&mut self, position: Position, number: u64) {
        self.begin(position);
        self.step(position, number);
    }

    /// What was read of the log does not count any more.
    fn begin(&mut self, position: Position) {
        self.steps.clear();
        // What stands before there is not read any more, and what was told and stood in another log is nowhere.
        let is_passed = |own: &Own| match own.placed {
            Some(placed) if placed.epoch == position.epoch => placed.sequence <= position.sequence,
            Some(_) => own.is_told || own.is_complete,
            None => false,
        };
        let passed: Vec<EntryId> =
            self.own.iter().filter(|(_, own)| is_passed(own)).map(|(id, _)| *id).collect();
        passed.into_iter().for_each(|id| self.meet(id));
    }

    fn step(&mut self, position: Position, number: u64) {
        self.at = Some(position);
        if self.steps.len() == STEPS_MAX {
            self.steps.pop_front();
        }
        let known = self.oldest_own().map_or(number, |before| number.min(before));
        self.steps.push_back(Step { sequence: position.sequence, reached: number, known });
    }

    /// Nothing of the log has been applied since it was reached last, and the last number is `number` now. What was counted meanwhile was no
    /// purge of others, who need not know of it: such as that nothing was used for a while without asking the origin.
    pub fn keep_up(&mut self, number: u64) {
        let known = self.oldest_own().map_or(number, |before| number.min(before));
        if let Some(last) = self.steps.back_mut() {
            last.known = last.known.max(known);
        }
    }

    fn oldest_own(&self) -> Option<u64> {
        let own = self.own.values().map(|own| own.before);
        own.chain(self.announced.values().copied()).chain(self.owed).min()
    }

    /// The reading has passed it.
    fn meet(&mut self, id: EntryId) {
        match self.own.remove(&id) {
            Some(own) if own.is_told || own.is_complete => {}
            Some(own) => {
                self.met.insert(id, own.before);
            }
            // The one for everything has no name here.
            None => self.owed = None,
        }
    }

    /// It stands there, which may be known before the reading comes there, or after.
    pub fn place(&mut self, id: EntryId, position: Position) {
        let is_passed =
            self.at.is_some_and(|at| at.epoch == position.epoch && at.sequence >= position.sequence);
        match self.own.get_mut(&id) {
            Some(_) if is_passed => self.meet(id),
            Some(own) => own.placed = Some(position),
            None => {}
        }
    }

    /// It has no place any more, since the log began anew.
    pub fn displace(&mut self, id: EntryId) {
        if let Some(before) = self.met.remove(&id) {
            self.own.insert(id, Own { before, is_told: false, placed: None, is_complete: false });
        } else if let Some(own) = self.own.get_mut(&id) {
            own.placed = None;
        }
    }

    /// No other log has to have it.
    pub fn complete(&mut self, id: EntryId) {
        self.met.remove(&id);
        if let Some(own) = self.own.get_mut(&id) {
            own.is_complete = true;
        }
    }

    /// The position of a fetch that began when `number` was the last one: whoever reads the log knows by it what the fetch may have
    /// missed. `None` where it began before what is kept of this log.
    pub fn position_of(&self, number: u64) -> Option<Position> {
        let epoch = self.at?.epoch;
        let count = self.steps.partition_point(|step| step.reached <= number);
        let step = self.steps.get(count.checked_sub(1)?)?;
        Some(Position { epoch, sequence: step.sequence })
    }

    /// The number by which a shared response with this position is judged here. `None` where it is of another log, or entries behind it
    /// were never seen here.
    pub fn number_of(&self, position: Position) -> Option<u64> {
        if self.at?.epoch != position.epoch {
            return None;
        }
        let count = self.steps.partition_point(|step| step.sequence <= position.sequence);
        Some(self.steps.get(count.checked_sub(1)?)?.known)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::call::Epoch;

    fn at(sequence: u64) -> Position {
        Position { epoch: Epoch(7), sequence }
    }

    fn in_next(sequence: u64) -> Position {
        Position { epoch: Epoch(8), sequence }
    }

    #[test]
    fn numbers_and_positions_are_told_from_each_other_on_the_safe_side() {
        let mut applied = Applied::default();
        assert_eq!((applied.position_of(9), applied.number_of(at(0))), (None, None));
        applied.restart(at(4), 10);
        for (sequence, number) in [(5, 12), (6, 12), (8, 15)] {
            applied.reach(at(sequence), number, None);
        }
        let positions: Vec<_> = [9, 10, 11, 12, 14, 15, 99].map(|number| applied.position_of(number)).into();
        assert_eq!(
            positions,
            [None, Some(4), Some(4), Some(6), Some(6), Some(8), Some(8)].map(|s| s.map(at))
        );
        let numbers: Vec<_> = [3, 4, 5, 7, 8, 99].map(|sequence| applied.number_of(at(sequence))).into();
        assert_eq!(numbers, [None, Some(10), Some(12), Some(12), Some(15), Some(15)]);
        assert_eq!(applied.number_of(in_next(5)), None);
    }

    #[test]
    fn a_purge_of_its_own_concerns_everything_until_the_reading_has_met_it() {
        let mut applied = Applied::default();
        applied.restart(at(0), 10);
        let announced = applied.announce(10);
        // The purge has number 11 here, and others follow before it has a place.
        applied.reach(at(1), 12, None);
        applied.name(announced, EntryId(1), false);
        applied.end(announced);
        applied.reach(at(2), 13, None);
        applied.place(EntryId(1), at(4));
        applied.reach(at(3), 14, None);
        for sequence in 0..4 {
            assert_eq!(applied.number_of(at(sequence)), Some(10), "{sequence}");
        }
        applied.reach(at(4), 14, Some(EntryId(1)));
        assert_eq!((applied.number_of(at(3)), applied.number_of(at(4))), (Some(10), Some(14)));
        // A fetch from before it is told from one that came after it.
        assert_eq!((applied.position_of(10), applied.position_of(14)), (Some(at(0)), Some(at(4))));
    }

    #[test]
    fn what_only_this_larder_counts_ends_no_shared_response() {
        let mut applied = Applied::default();
        applied.restart(at(3), 10);
        applied.keep_up(20);
        assert_eq!((applied.number_of(at(3)), applied.number_of(at(2))), (Some(20), None));
        // A fetch from before that was no later.
        assert_eq!((applied.position_of(10), applied.position_of(9)), (Some(at(3)), None));
        let announced = applied.announce(20);
        applied.keep_up(30);
        assert_eq!(applied.number_of(at(3)), Some(20));
        applied.end(announced);
        applied.keep_up(31);
        assert_eq!(applied.number_of(at(3)), Some(31));
    }

    #[test]
    fn what_another_log_has_to_have_again_concerns_everything_again() {
        let mut applied = Applied::default();
        applied.restart(at(0), 10);
        for (id, is_told) in [(1, false), (2, true), (3, false)] {
            let announced = applied.announce(10);
            applied.name(announced, EntryId(id), is_told);
            applied.end(announced);
            applied.place(EntryId(id), at(id as u64));
            applied.reach(at(id as u64), 13, Some(EntryId(id)));
        }
        applied.complete(EntryId(3));
        applied.displace(EntryId(1));
        applied.displace(EntryId(3));
        applied.reach(in_next(0), 20, None);
        assert_eq!((applied.number_of(at(3)), applied.number_of(in_next(0))), (None, Some(10)));
        applied.reach(in_next(1), 20, Some(EntryId(1)));
        assert_eq!(applied.number_of(in_next(1)), Some(20));
        assert_eq!((applied.own.len(), applied.met.len()), (0, 1));
    }

    #[test]
    fn nothing_is_waited_for_that_the_reading_does_not_meet_any_more() {
        let mut applied = Applied::default();
        applied.restart(at(0), 10);
        let purge = |applied: &mut Applied, id, is_told| {
            let announced = applied.announce(10);
            applied.name(announced, EntryId(id), is_told);
            applied.end(announced);
        };
        // Told, and lost with its log.
        purge(&mut applied, 1, true);
        applied.place(EntryId(1), at(1));
        applied.reach(in_next(0), 20, None);
        assert_eq!(applied.number_of(in_next(0)), Some(20));
        // Cut off before it was read; its place is known before, or after.
        purge(&mut applied, 2, false);
        purge(&mut applied, 3, false);
        applied.place(EntryId(2), in_next(4));
        applied.restart(in_next(9), 30);
        assert_eq!(applied.number_of(in_next(9)), Some(10));
        applied.place(EntryId(3), in_next(5));
        applied.reach(in_next(10), 31, None);
        assert_eq!(applied.number_of(in_next(10)), Some(31));
        // No room: the entry for everything ends that.
        purge(&mut applied, 4, false);
        applied.owe(EntryId(4));
        applied.reach(in_next(11), 32, None);
        assert_eq!(applied.number_of(in_next(11)), Some(10));
        applied.reach(in_next(12), 32, Some(EntryId(99)));
        assert_eq!(applied.number_of(in_next(12)), Some(32));
    }

    #[test]
    fn positions_are_bounded() {
        let mut applied = Applied::default();
        applied.restart(at(0), 0);
        (1..=STEPS_MAX as u64).for_each(|sequence| applied.reach(at(sequence), sequence, None));
        assert_eq!((applied.number_of(at(0)), applied.number_of(at(1))), (None, Some(1)));
    }
}
