//! One member of a fleet.
//!
//! In: the time, replies of the server, and purges of its own. Out: calls to the server, what larder has to do ([`Effect`]), whether
//! it may use what it has stored ([`Member::may_use`]), and receipts.
//! Two calls are under way at once at most, one in each [`Lane`]: the reading one may wait at the server for entries. A call that
//! is not answered in time has failed, and what is answered later counts for nothing: its [`Ticket`] is void.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::call::{Entry, EntryId, Epoch, Incarnation, LogCall, LogReply, Lost, Place, Position, Row};
use crate::known::{Known, over_at};
use crate::own::{OwnPurge, OwnPurges};
use crate::receipt::SharedPurge;

/// A purge that has waited for less is looked after without a pause: where all is well it is complete by then, and a pause would be
/// most of the time that it takes.
const LOOKED_AT_ONCE: Duration = Duration::from_millis(2);
/// Later looks wait for a part of the time that has gone by.
const PAUSE_PART: u32 = 4;

/// What a member is.
#[derive(Clone, Debug)]
pub struct MemberSettings {
    /// Its name, which no other member has.
    pub name: Arc<str>,
    /// How long it uses what it has without hearing from the server. `None`: for ever.
    pub lease: Option<Duration>,
    /// Between two renewals, and before the next try after a failure.
    pub renew_every: Duration,
    /// Between two looks at the others while a purge is not complete.
    pub look_every: Duration,
    /// Whether it reads the entries from before it came, too: shared responses are compared with them.
    pub reads_all: bool,
}

/// Which of its two connections a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Everything but reading.
    Control,
    /// [`LogCall::Read`].
    Reading,
}

/// Which call a reply belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket(u64);

/// What larder has to do, at once and in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<W> {
    /// To enter a purge of another member.
    Apply {
        /// Where it stands.
        position: Position,
        /// What it purges.
        what: W,
    },
    /// Everything up to there is applied, without a purge of others: it stands at the beginning of another log, or has read an entry of its
    /// own.
    Reached {
        /// Where it stands.
        position: Position,
        /// The entry.
        own: Option<EntryId>,
    },
    /// A purge of its own stands there. Until this is known, it concerns every shared response.
    Placed {
        /// The purge.
        id: EntryId,
        /// Where it stands.
        position: Position,
    },
    /// A purge of its own has no place any more, since the log began anew. It concerns every shared response until it has one.
    Displaced {
        /// The purge.
        id: EntryId,
    },
    /// To validate whatever is stored before it is used, and what is being fetched: purges may have been missed.
    Unproven {
        /// Where it stands: what is fetched from now on misses nothing up to there.
        position: Position,
    },
    /// A purge of its own is complete: nobody is silent in this receipt.
    Complete(SharedPurge),
}

/// The log that a member belongs to.
#[derive(Debug)]
struct Log {
    epoch: Epoch,
    /// The server has a row of this member, as far as is known.
    is_attached: bool,
    place: Place,
    /// Entries up to this number were never seen.
    floor: u64,
    /// The lease begins anew once this entry is applied, with the moment of that call.
    catching_up: Option<(u64, Duration)>,
    /// The number that the server was told last.
    told: u64,
}

#[derive(Debug)]
struct UnderWay {
    ticket: Ticket,
    sent: Duration,
    /// The number that the call tells.
    tells: Option<u64>,
    appended: Vec<EntryId>,
}

/// One member. `W` is what a purge says.
#[derive(Debug)]
pub struct Member<W> {
    settings: MemberSettings,
    incarnation: Incarnation,
    log: Option<Log>,
    /// It may use what it has until then.
    holds_until: Option<Duration>,
    known: Known,
    /// From when on every member is known that may hold a lease; `None`: not to be said.
    knows_all_from: Option<Duration>,
    own: OwnPurges<W>,
    control: Option<UnderWay>,
    reading: Option<UnderWay>,
    has_left: bool,
    tickets: u64,
    /// The others were seen as they were at this moment, or later.
    looked: Duration,
    next_try: Duration,
    next_read: Duration,
    next_look: Duration,
    effects: VecDeque<Effect<W>>,
}

impl<W: Clone> Member<W> {
    /// A member that has not spoken to the server yet, and may use nothing. `incarnation` is drawn at random.
    pub fn new(settings: MemberSettings, incarnation: Incarnation) -> Self {
        Self {
            settings,
            incarnation,
            log: None,
            holds_until: None,
            known: Known::default(),
            knows_all_from: None,
            own: OwnPurges::default(),
            control: None,
            reading: None,
            has_left: false,
            tickets: 0,
            looked: Duration::ZERO,
            next_try: Duration::ZERO,
            next_read: Duration::ZERO,
            next_look: Duration::ZERO,
            effects: VecDeque::new(),
        }
    }

    /// Whether stored responses may be used without asking the origin. `now` is from a clock that goes on while the machine sleeps.
    pub fn may_use(&self, now: Duration) -> bool {
        self.holds_until.is_some_and(|until| now < until)
    }

    /// Until when stored responses may be used. `None` before the first lease and after the last.
    pub fn held_until(&self) -> Option<Duration> {
        self.holds_until
    }

    /// How far everything is applied: what is fetched from now on knows these purges. `None` before the first log.
    pub fn position(&self) -> Option<Position> {
        self.log.as_ref().map(|log| Position { epoch: log.epoch, sequence: log.place.sequence })
    }

    /// What is to be done, oldest first.
    pub fn effect(&mut self) -> Option<Effect<W>> {
        self.effects.pop_front()
    }

    /// A purge that is complete, while that is still to be done.
    pub fn completing(&self, id: EntryId) -> Option<&SharedPurge> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Complete(receipt) if receipt.id == id => Some(receipt),
            _ => None,
        })
    }

    /// Takes in a purge of so many bytes that was entered here already. False where too many are not complete: the caller purges more at
    /// once then.
    #[must_use]
    pub fn purge(&mut self, id: EntryId, what: W, bytes: usize) -> bool {
        self.own.take_in(OwnPurge::new(id, what, bytes), false)
    }

    /// The same of one whose receipt nobody asks for. It has half of the room, and is lost where the log is lost after this member has read it.
    #[must_use]
    pub fn tell(&mut self, id: EntryId, what: W, bytes: usize) -> bool {
        self.own.take_in(OwnPurge::new(id, what, bytes), true)
    }

    /// Whether purges wait for a place in the log.
    pub fn has_unplaced(&self) -> bool {
        self.own.has_unplaced()
    }

    /// Whether a purge lies in the log, where members that enter or return read it, or is not waited for any more.
    pub fn is_placed(&self, id: EntryId) -> bool {
        self.own.find(id).is_none_or(|purge| purge.placed.is_some())
    }

    /// What has become of a purge that is not complete yet: who may use old copies still.
    pub fn receipt(&self, id: EntryId, now: Duration) -> Option<SharedPurge> {
        let purge = self.own.find(id)?;
        let is_shared = purge.placed.is_some_and(|(_, at)| at <= self.looked);
        let knows_all = self.knows_all(now.min(self.looked));
        let place = self.log.as_ref().map(|log| log.epoch).zip(purge.placed.map(|(sequence, _)| sequence));
        Some(SharedPurge { id, is_shared, knows_all, members: self.known.standings(place, self.looked, now) })
    }

    /// The other members that may hold a lease, in the order of their runs: the name, the last entry that it has applied as it said last,
    /// and how long it may hold its lease still (`None`: without an end).
    pub fn others(&self, now: Duration) -> impl Iterator<Item = (Arc<str>, u64, Option<Duration>)> {
        let there = self.known.all().filter(|other| other.ended.is_none());
        there.map(move |other| (Arc::clone(&other.name), other.applied, other.left(now)))
    }

    /// Whether an answer is waited for in a lane. Not where another answer has made the call void.
    pub fn is_waiting(&self, lane: Lane) -> bool {
        match lane {
            Lane::Control => self.control.is_some(),
            Lane::Reading => self.reading.is_some(),
        }
    }

    /// How many of its own purges are not complete.
    pub fn incomplete(&self) -> usize {
        self.own.len()
    }

    /// How long nothing is due, if no call is answered and nothing is purged until then.
    pub fn due(&self, now: Duration) -> Duration {
        let moments = [self.next_try, self.next_read, self.next_look];
        let next = moments.into_iter().filter(|moment| *moment > now).min();
        next.map_or(self.settings.renew_every, |next| next - now)
    }

    /// Whether every member is known that may hold a lease.
    pub fn knows_all(&self, now: Duration) -> bool {
        self.knows_all_from.is_some_and(|from| from <= now)
    }

    /// The next call of a lane, if one is due and none is under way there. `fresh` draws an epoch.
    pub fn next_call(
        &mut self,
        lane: Lane,
        now: Duration,
        fresh: impl FnOnce() -> Epoch,
    ) -> Option<(Ticket, LogCall<W>)> {
        if self.has_left {
            return None;
        }
        let (call, tells) = match lane {
            Lane::Reading => (self.next_reading(now)?, None),
            Lane::Control => self.next_control(now, fresh)?,
        };
        let appended = match &call {
            LogCall::Append { purges, .. } => purges.iter().map(|(id, _)| *id).collect(),
            _ => Vec::new(),
        };
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        *self.lane(lane) = Some(UnderWay { ticket, sent: now, tells, appended });
        Some((ticket, call))
    }

    fn lane(&mut self, lane: Lane) -> &mut Option<UnderWay> {
        match lane {
            Lane::Control => &mut self.control,
            Lane::Reading => &mut self.reading,
        }
    }

    fn next_reading(&self, now: Duration) -> Option<LogCall<W>> {
        if self.reading.is_some() || now < self.next_read {
            return None;
        }
        let log = self.log.as_ref().filter(|log| log.is_attached)?;
        Some(LogCall::Read { epoch: log.epoch, after: log.place.sequence })
    }

    fn next_control(
        &mut self,
        now: Duration,
        fresh: impl FnOnce() -> Epoch,
    ) -> Option<(LogCall<W>, Option<u64>)> {
        if self.control.is_some() || now < self.next_try {
            return None;
        }
        let incarnation = self.incarnation;
        let Some(log) = self.log.as_ref().filter(|log| log.is_attached) else {
            let from = self.log.as_ref().map(|log| (log.epoch, log.place));
            let MemberSettings { name, lease, .. } = &self.settings;
            let (name, lease) = (Arc::clone(name), *lease);
            return Some((LogCall::Attach { fresh: fresh(), name, incarnation, lease, from }, None));
        };
        let (epoch, applied) = (log.epoch, log.place);
        if let Some((incarnation, beat)) = self.known.overdue(epoch, now) {
            return Some((LogCall::Expire { epoch, incarnation, beat }, None));
        }
        let purges = self.own.next_batch();
        if !purges.is_empty() {
            return Some((LogCall::Append { epoch, incarnation, applied, purges }, Some(applied.sequence)));
        }
        // Who renews without reading would be waited for without an end.
        let is_behind = log.catching_up.is_some() && !self.may_use(now);
        let is_due = !is_behind && now >= self.next_look || applied.sequence > log.told;
        let settles = self.knows_all(now);
        is_due.then_some((LogCall::Renew { epoch, incarnation, applied, settles }, Some(applied.sequence)))
    }

    /// A call came to nothing: no answer in time, or no connection.
    pub fn failed(&mut self, lane: Lane, ticket: Ticket, now: Duration) {
        if self.lane(lane).as_ref().is_some_and(|under_way| under_way.ticket == ticket) {
            *self.lane(lane) = None;
            let next = now + self.settings.renew_every;
            match lane {
                Lane::Control => self.next_try = next,
                Lane::Reading => self.next_read = next,
            }
        }
    }

    /// The answer to a call.
    pub fn answered(&mut self, lane: Lane, ticket: Ticket, reply: LogReply<W>, now: Duration) {
        let Some(under_way) = self.lane(lane).take_if(|under_way| under_way.ticket == ticket) else { return };
        match reply {
            LogReply::Attached { epoch, last, floor, is_settled, rows } => {
                self.attached(epoch, (last, floor), &rows, under_way.sent, now);
                if is_settled {
                    self.knows_all_from = self.knows_all_from.min(Some(now)).or(Some(now));
                }
            }
            LogReply::Rows { last, rows } => {
                self.renewed(&rows, &under_way, now);
                if under_way.tells.is_some() {
                    self.lease_from(last, under_way.sent);
                }
            }
            LogReply::Appended { first, rows } => {
                for (sequence, id) in (first..).zip(&under_way.appended) {
                    self.placed(*id, sequence, under_way.sent);
                }
                self.renewed(&rows, &under_way, now);
            }
            LogReply::Entries { floor, entries } => self.read(floor, entries, now),
            LogReply::Left => {}
            LogReply::Lost(lost) => {
                if lost == Lost::Member {
                    // Who took its row away counts on it.
                    self.holds_until = None;
                }
                self.reading = None;
                if let Some(log) = &mut self.log {
                    (log.is_attached, log.catching_up) = (false, None);
                }
            }
        }
    }

    fn attached(
        &mut self,
        epoch: Epoch,
        (last, floor): (u64, u64),
        rows: &[Row],
        sent: Duration,
        now: Duration,
    ) {
        let before = self.log.take();
        let (place, floor, told) = match before {
            Some(log) if log.epoch == epoch && log.place.sequence >= floor => {
                (log.place, log.floor, log.place.sequence)
            }
            before => {
                let is_new = before.is_none_or(|log| log.epoch != epoch);
                if is_new {
                    self.begin_log(now);
                }
                // Who holds its lease has applied all that was complete. It reads the whole of a new log, and misses nothing.
                if is_new && floor == 0 && self.may_use(now) {
                    let position = Position { epoch, sequence: 0 };
                    self.effects.push_back(Effect::Reached { position, own: None });
                    (Place::default(), 0, 0)
                } else {
                    // What is stored is validated, so nothing is to be learnt from the entries before this moment, but for what others
                    // have stored.
                    let sequence = if self.settings.reads_all { floor } else { last };
                    self.own.pass(sequence);
                    self.effects.push_back(Effect::Unproven { position: Position { epoch, sequence } });
                    (Place { sequence, id: None }, sequence, 0)
                }
            }
        };
        self.log = Some(Log { epoch, is_attached: true, place, floor, catching_up: None, told });
        self.reading = None;
        self.known.observe(self.incarnation, epoch, rows, now);
        self.next_look = now + self.settings.renew_every;
        self.lease_from(last, sent);
    }

    /// What it is among the members of another log.
    fn begin_log(&mut self, now: Duration) {
        self.known.move_on(now);
        self.effects.extend(self.own.displace().map(|id| Effect::Displaced { id }));
        // There may have been a log between the last one and this, with members that it never saw. They have a lease like its own.
        self.knows_all_from = over_at(now, self.settings.lease).or(Some(now));
    }

    /// A lease that was asked for at this moment holds once everything is applied that was there then. One that is waited for already
    /// goes before it.
    fn lease_from(&mut self, last: u64, sent: Duration) {
        if let Some(log) = &mut self.log {
            log.catching_up.get_or_insert((last, sent));
            self.catch_up();
        }
    }

    fn catch_up(&mut self) {
        let Some(log) = &mut self.log else { return };
        if let Some((_, sent)) = log.catching_up.take_if(|(last, _)| *last <= log.place.sequence) {
            self.holds_from(sent);
        }
    }

    fn holds_from(&mut self, sent: Duration) {
        let until = self.settings.lease.map_or(Duration::MAX, |lease| sent + lease);
        self.holds_until = self.holds_until.max(Some(until));
    }

    /// The server has answered a call of a member, and shown all of them.
    fn renewed(&mut self, rows: &[Row], under_way: &UnderWay, now: Duration) {
        let Some(log) = &mut self.log else { return };
        let epoch = log.epoch;
        if let Some(tells) = under_way.tells {
            log.told = log.told.max(tells);
        }
        self.known.observe(self.incarnation, epoch, rows, now);
        self.known.end_former(epoch, now);
        self.looked = under_way.sent;
        self.complete(epoch, under_way.sent);
        let MemberSettings { renew_every, look_every, .. } = self.settings;
        // The longer the newest one has waited, the less often.
        let waited = self.own.newest_placed_at().map(|at| now.saturating_sub(at));
        self.next_look = now
            + match waited {
                None => renew_every,
                Some(waited) if waited < LOOKED_AT_ONCE => Duration::ZERO,
                Some(waited) => (waited / PAUSE_PART).clamp(look_every, renew_every),
            };
    }

    /// Completes what all have applied that may use copies. What is known of them was so at `sent`, and the server was this log's then.
    fn complete(&mut self, epoch: Epoch, sent: Duration) {
        // Else it stays, and is appended again where another log begins.
        if !self.knows_all(sent) {
            return;
        }
        let (known, effects) = (&self.known, &mut self.effects);
        self.own.end(|id, sequence, at| {
            let is_complete = at <= sent
                && known.all().all(|other| match other.ended {
                    Some(at) => at <= sent,
                    None => other.has_applied(epoch, sequence),
                });
            if is_complete {
                let members = known.standings(Some((epoch, sequence)), sent, sent);
                effects.push_back(Effect::Complete(SharedPurge {
                    id,
                    is_shared: true,
                    knows_all: true,
                    members,
                }));
            }
            is_complete
        });
        if self.own.is_empty() {
            self.known.forget_ended();
        }
    }

    /// A purge of its own has a number, which was so at this moment.
    fn placed(&mut self, id: EntryId, sequence: u64, at: Duration) {
        let Some(log) = &self.log else { return };
        if self.own.place(id, sequence, at) {
            let position = Position { epoch: log.epoch, sequence };
            self.effects.push_back(Effect::Placed { id, position });
            // The reading may have come that far before this answer did.
            self.own.pass(log.place.sequence);
        }
    }

    fn read(&mut self, floor: u64, entries: Vec<Entry<W>>, now: Duration) {
        let Some(log) = &mut self.log else { return };
        if floor > log.place.sequence {
            // What was cut off was never seen.
            (log.place, log.floor) = (Place { sequence: floor, id: None }, floor);
            let position = Position { epoch: log.epoch, sequence: floor };
            self.own.pass(floor);
            self.effects.push_back(Effect::Unproven { position });
        }
        for entry in entries {
            self.apply(entry, now);
        }
        self.catch_up();
    }

    fn apply(&mut self, entry: Entry<W>, now: Duration) {
        let Some(log) = &mut self.log else { return };
        let next = log.place.sequence + 1;
        if entry.sequence < next {
            return;
        }
        if entry.sequence > next {
            // A log without a floor has a gap: the server is at fault.
            log.floor = entry.sequence - 1;
            let position = Position { epoch: log.epoch, sequence: log.floor };
            self.own.pass(log.floor);
            self.effects.push_back(Effect::Unproven { position });
        }
        log.place = Place { sequence: entry.sequence, id: Some(entry.id) };
        let position = Position { epoch: log.epoch, sequence: entry.sequence };
        if entry.by == self.incarnation {
            self.placed(entry.id, entry.sequence, now);
            self.own.pass(entry.sequence);
            self.effects.push_back(Effect::Reached { position, own: Some(entry.id) });
        } else {
            self.effects.push_back(Effect::Apply { position, what: entry.what });
        }
    }

    /// The last call of a member that ends in order. It may use nothing from now on, calls nothing any more, and no answer that is still
    /// under way changes that.
    pub fn leave(&mut self) -> Option<LogCall<W>> {
        (self.has_left, self.holds_until, self.control, self.reading) = (true, None, None, None);
        let log = self.log.as_mut().filter(|log| log.is_attached)?;
        log.is_attached = false;
        Some(LogCall::Leave { epoch: log.epoch, incarnation: self.incarnation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own::BYTES_MAX;

    const OWN: Incarnation = Incarnation(1);
    const EPOCH: Epoch = Epoch(7);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn member(lease: Option<Duration>) -> Member<u8> {
        let settings = MemberSettings {
            name: "web-1".into(),
            lease,
            renew_every: at(1),
            look_every: at(1),
            reads_all: false,
        };
        Member::new(settings, OWN)
    }

    fn call(member: &mut Member<u8>, lane: Lane, now: Duration) -> (Ticket, LogCall<u8>) {
        member.next_call(lane, now, || EPOCH).unwrap_or_else(|| panic!("nothing is due at {now:?}"))
    }

    fn attach(member: &mut Member<u8>, last: u64, now: Duration) {
        let (ticket, called) = call(member, Lane::Control, now);
        assert!(matches!(called, LogCall::Attach { .. }), "{called:?}");
        let reply = LogReply::Attached { epoch: EPOCH, last, floor: 0, is_settled: false, rows: Vec::new() };
        member.answered(Lane::Control, ticket, reply, now);
    }

    #[test]
    fn who_has_left_is_not_brought_back_by_an_answer_to_an_earlier_call() {
        let mut member = member(Some(at(10)));
        attach(&mut member, 0, at(100));
        assert!(member.may_use(at(109)) && !member.may_use(at(110)));
        let (ticket, called) = call(&mut member, Lane::Control, at(102));
        assert!(matches!(called, LogCall::Renew { .. }), "{called:?}");
        assert!(matches!(member.leave(), Some(LogCall::Leave { epoch: EPOCH, incarnation: OWN })));
        member.answered(Lane::Control, ticket, LogReply::Rows { last: 0, rows: Vec::new() }, at(102));
        assert!(!member.may_use(at(102)));
        assert_eq!(member.next_call(Lane::Control, at(200), || EPOCH), None);
        assert_eq!(member.next_call(Lane::Reading, at(200), || EPOCH), None);
    }

    #[test]
    fn a_renewal_counts_once_everything_is_applied_and_who_does_not_read_stops_renewing() {
        let mut member = member(Some(at(10)));
        attach(&mut member, 7, at(100));
        assert!(member.may_use(at(109)), "what was there before is not read, but everything is unproven");
        let position = Position { epoch: EPOCH, sequence: 7 };
        assert_eq!(member.effect(), Some(Effect::Unproven { position }));
        let renew = |member: &mut Member<u8>, last: u64, now: Duration| {
            let (ticket, called) = call(member, Lane::Control, now);
            assert!(matches!(called, LogCall::Renew { .. }), "{called:?}");
            member.answered(Lane::Control, ticket, LogReply::Rows { last, rows: Vec::new() }, now);
        };
        renew(&mut member, 8, at(102));
        assert!(!member.may_use(at(110)), "there is an entry to be read");
        let (ticket, _) = call(&mut member, Lane::Reading, at(103));
        let entries = vec![Entry { sequence: 8, id: EntryId(9), by: Incarnation(2), what: 5 }];
        member.answered(Lane::Reading, ticket, LogReply::Entries { floor: 0, entries }, at(103));
        assert!(member.may_use(at(111)) && !member.may_use(at(112)), "from the call on");
        for now in [104, 106] {
            renew(&mut member, 9, at(now));
        }
        assert!(!member.may_use(at(112)), "the ninth entry is missing");
        assert_eq!(member.next_call(Lane::Control, at(113), || EPOCH), None);
    }

    #[test]
    fn who_joins_a_log_that_is_old_enough_knows_all_members_and_says_so() {
        let mut member = member(Some(at(10)));
        let (ticket, _) = call(&mut member, Lane::Control, at(100));
        let reply =
            LogReply::Attached { epoch: EPOCH, last: 0, floor: 0, is_settled: true, rows: Vec::new() };
        member.answered(Lane::Control, ticket, reply, at(100));
        assert!(member.knows_all(at(100)));
        let (_, called) = call(&mut member, Lane::Control, at(101));
        assert!(matches!(called, LogCall::Renew { settles: true, .. }), "{called:?}");
        let other = &mut self::member(Some(at(10)));
        attach(other, 0, at(100));
        let (_, called) = call(other, Lane::Control, at(101));
        assert!(matches!(called, LogCall::Renew { settles: false, .. }), "{called:?}");
    }

    #[test]
    fn room_is_bounded_and_what_nobody_asks_for_is_forgotten_when_it_has_a_place() {
        let mut member = member(Some(at(10)));
        attach(&mut member, 0, at(100));
        assert!(member.tell(EntryId(1), 1, BYTES_MAX / 2) && !member.tell(EntryId(2), 1, 1));
        assert!(member.purge(EntryId(3), 1, BYTES_MAX / 2) && !member.purge(EntryId(4), 1, 1));
        let (ticket, called) = call(&mut member, Lane::Control, at(100));
        assert!(
            matches!(called, LogCall::Append { purges, .. } if purges == [(EntryId(1), 1)]),
            "one is too large"
        );
        let reply = LogReply::Appended { first: 1, rows: Vec::new() };
        member.answered(Lane::Control, ticket, reply, at(100));
        assert!(!member.tell(EntryId(5), 1, 1), "it is kept until it was read");
        let (ticket, _) = call(&mut member, Lane::Reading, at(100));
        let entries = vec![Entry { sequence: 1, id: EntryId(1), by: OWN, what: 1 }];
        member.answered(Lane::Reading, ticket, LogReply::Entries { floor: 0, entries }, at(100));
        assert_eq!((member.incomplete(), member.has_unplaced()), (1, true));
        assert!(member.tell(EntryId(5), 1, 0) && member.receipt(EntryId(1), at(100)).is_none());
        assert!(
            !member.is_placed(EntryId(5)) && member.is_placed(EntryId(1)),
            "one that is forgotten was placed"
        );
    }

    #[test]
    fn a_lease_without_an_end_holds_and_is_certain_of_those_it_knows() {
        let mut member = member(None);
        assert!(!member.may_use(at(1)) && !member.knows_all(at(1)));
        attach(&mut member, 0, at(100));
        assert!(member.may_use(at(1 << 30)) && member.knows_all(at(100)));
        let bounded = &mut self::member(Some(at(10)));
        attach(bounded, 0, at(100));
        assert!(!bounded.knows_all(at(110)) && bounded.knows_all(at(111)));
    }

    #[test]
    fn a_reading_that_fails_is_not_tried_again_at_once() {
        let mut member = member(Some(at(10)));
        attach(&mut member, 0, at(100));
        let (ticket, _) = call(&mut member, Lane::Reading, at(100));
        member.failed(Lane::Reading, ticket, at(100));
        assert_eq!(member.next_call(Lane::Reading, at(100), || EPOCH), None);
        assert!(member.next_call(Lane::Reading, at(101), || EPOCH).is_some());
    }
}
