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
    /// No caller waits for its receipt.
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
    /// How many purges of this member are pending, by a number below theirs.
    pending: BTreeMap<u64, usize>,
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
        self.begin_pending(number);
        announced
    }

    fn begin_pending(&mut self, before: u64) {
        *self.pending.entry(before).or_default() += 1;
    }

    fn end_pending(&mut self, before: u64) {
        if let Some(count) = self.pending.get_mut(&before) {
            *count -= 1;
            if *count == 0 {
                self.pending.remove(&before);
            }
        }
    }

    fn insert_own(&mut self, id: EntryId, own: Own) {
        self.begin_pending(own.before);
        if let Some(former) = self.own.insert(id, own) {
            self.end_pending(former.before);
        }
    }

    fn take_own(&mut self, id: EntryId) -> Option<Own> {
        let own = self.own.remove(&id)?;
        self.end_pending(own.before);
        Some(own)
    }

    /// It has this name, as one of its entries. To be called before the member takes the entry in.
    pub fn name(&mut self, announced: Announced, id: EntryId, is_told: bool) {
        if let Some(before) = self.announced.get(&announced) {
            self.insert_own(id, Own { before: *before, is_told, placed: None, is_complete: false });
        }
    }

    /// An announced purge is not shared. One of everything follows.
    pub fn owe(&mut self, announced: Announced) {
        if let Some(before) = self.announced.get(&announced).copied() {
            self.owe_after(before);
        }
    }

    /// The member had no room for this entry. One for everything follows.
    pub fn owe_for(&mut self, id: EntryId) {
        if let Some(own) = self.take_own(id) {
            self.owe_after(own.before);
        }
    }

    fn owe_after(&mut self, before: u64) {
        let owed = self.owed.map_or(before, |owed| owed.min(before));
        self.begin_pending(owed);
        if let Some(former) = self.owed.replace(owed) {
            self.end_pending(former);
        }
    }

    /// The entry for everything has this name. To be called before the member takes it in.
    pub fn pay(&mut self, id: EntryId) {
        if let Some(before) = self.owed.take() {
            self.insert_own(id, Own { before, is_told: false, placed: None, is_complete: false });
            self.end_pending(before);
        }
    }

    /// All its entries have names, or it came to nothing.
    pub fn end(&mut self, announced: Announced) {
        if let Some(before) = self.announced.remove(&announced) {
            self.end_pending(before);
        }
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
        // What stands before there is not read any more, and what was complete in another log is not there again.
        let is_passed = |own: &Own| match own.placed {
            Some(placed) if placed.epoch == position.epoch => placed.sequence <= position.sequence,
            Some(_) => own.is_complete,
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
        self.pending.keys().next().copied()
    }

    /// The reading has passed it.
    fn meet(&mut self, id: EntryId) {
        // One that was appended twice has been met before.
        if let Some(own) = self.take_own(id)
            && !own.is_told
            && !own.is_complete
        {
            self.met.insert(id, own.before);
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
            self.insert_own(id, Own { before, is_told: false, placed: None, is_complete: false });
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
        // Read by others, and lost with its log before it was read: the next log has it again.
        purge(&mut applied, 1, true);
        applied.place(EntryId(1), at(1));
        applied.displace(EntryId(1));
        applied.reach(in_next(0), 20, None);
        assert_eq!(applied.number_of(in_next(0)), Some(10));
        applied.place(EntryId(1), in_next(1));
        applied.reach(in_next(1), 20, Some(EntryId(1)));
        assert_eq!((applied.number_of(in_next(1)), applied.met.len()), (Some(20), 0));
        // Cut off before it was read; its place is known before, or after.
        purge(&mut applied, 2, false);
        purge(&mut applied, 3, false);
        applied.place(EntryId(2), in_next(4));
        applied.restart(in_next(9), 30);
        assert_eq!(applied.number_of(in_next(9)), Some(10));
        applied.place(EntryId(3), in_next(5));
        applied.reach(in_next(10), 31, None);
        assert_eq!(applied.number_of(in_next(10)), Some(31));
        // No room: the entry for everything ends that, and no other one.
        purge(&mut applied, 4, false);
        applied.owe_for(EntryId(4));
        applied.reach(in_next(11), 32, None);
        applied.pay(EntryId(5));
        let announced = applied.announce(11);
        applied.owe(announced);
        applied.end(announced);
        applied.reach(in_next(12), 33, Some(EntryId(99)));
        assert_eq!((applied.number_of(in_next(11)), applied.number_of(in_next(12))), (Some(10), Some(10)));
        applied.reach(in_next(13), 34, Some(EntryId(5)));
        assert_eq!(applied.number_of(in_next(13)), Some(11), "what was owed since");
        applied.pay(EntryId(6));
        applied.reach(in_next(14), 35, Some(EntryId(6)));
        assert_eq!((applied.number_of(in_next(14)), applied.pending.len()), (Some(35), 0));
    }

    #[test]
    fn positions_are_bounded() {
        let mut applied = Applied::default();
        applied.restart(at(0), 0);
        (1..=STEPS_MAX as u64).for_each(|sequence| applied.reach(at(sequence), sequence, None));
        assert_eq!((applied.number_of(at(0)), applied.number_of(at(1))), (None, Some(1)));
    }
}
