//! The simulated world: members, servers, the messages between them, and the true time of each fetch and purge.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use larder_testkit::dice::Dice;

use super::server::Server;
use crate::applied::Applied;
use crate::{
    Effect, EntryId, Epoch, Incarnation, Lane, LogCall, LogReply, Member, MemberSettings, MemberState,
    Position, SharedPurge, Ticket,
};

const MEMBERS: usize = 3;
const KEYS: u64 = 3;
const LEASE: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_millis(200);
/// Speeds of clocks, in ten-thousandths: a hundredth is what a lease is taken for longer by.
const SPEEDS: [u32; 4] = [9956, 9990, 10_010, 10_044];
const SNAPSHOTS_MAX: usize = 6;

type What = u64;

/// How often what is to be proved was put to the test.
#[derive(Debug, Default)]
pub(super) struct Seen {
    used: u64,
    used_of_others: u64,
    refused: u64,
    purged: u64,
    complete: u64,
    complete_after_lapse: u64,
    epochs: u64,
    unproven: u64,
    kept_over_epochs: u64,
}

impl Seen {
    pub(super) fn add(&mut self, other: &Self) {
        self.used += other.used;
        self.used_of_others += other.used_of_others;
        self.refused += other.refused;
        self.purged += other.purged;
        self.complete += other.complete;
        self.complete_after_lapse += other.complete_after_lapse;
        self.epochs += other.epochs;
        self.unproven += other.unproven;
        self.kept_over_epochs += other.kept_over_epochs;
    }

    pub(super) fn proves(&self, histories: u64) -> bool {
        let least = [
            self.used,
            self.used_of_others,
            self.refused,
            self.complete,
            self.complete_after_lapse,
            self.epochs,
            self.unproven,
            self.kept_over_epochs,
        ];
        least.iter().all(|count| *count * 10 >= histories)
    }
}

/// A purge that a member has entered in its table.
struct Entered {
    key: What,
    number: u64,
}

/// A response. `fetched` is the true time at which it was asked for.
#[derive(Clone, Copy, Debug)]
struct Stored {
    fetched: Duration,
    number: u64,
}

/// A response that a member has put into the server.
#[derive(Clone, Copy, Debug)]
struct Record {
    fetched: Duration,
    position: Position,
}

struct Sim {
    member: Member<What>,
    name: usize,
    /// Ten-thousandths of the true speed.
    speed: u32,
    is_frozen: bool,
    /// Which server it speaks to.
    sees: usize,
    is_cut_off: bool,
    table: Vec<Entered>,
    number: u64,
    copies: BTreeMap<What, Stored>,
    /// What it has asked the origin for.
    fetching: Vec<(What, Stored)>,
    /// What has a lower number is unproven.
    floor: u64,
    applied: Applied,
    epoch: Option<Epoch>,
    under_way: BTreeMap<Lane, (Ticket, Duration)>,
}

impl Sim {
    fn enter(&mut self, key: What) {
        self.number += 1;
        self.table.push(Entered { key, number: self.number });
    }

    /// Whether what was fetched after this number may be used as it is.
    fn is_good(&self, key: What, number: u64) -> bool {
        number >= self.floor
            && !self.table.iter().any(|entered| entered.key == key && entered.number > number)
    }
}

/// A call or a reply that is under way.
struct Message {
    to: usize,
    incarnation: usize,
    lane: Lane,
    ticket: Ticket,
    sent: Duration,
    content: Content,
}

enum Content {
    LogCall(usize, LogCall<What>),
    LogReply(LogReply<What>),
}

struct Purge {
    key: What,
    began: Duration,
    by: usize,
    complete: Option<Duration>,
    /// In which log it was told, if nobody asks for its receipt.
    told_in: Option<Option<Epoch>>,
}

struct Machine {
    server: Server<What>,
    records: BTreeMap<What, Record>,
}

impl Machine {
    fn copy(&self) -> Self {
        Self { server: self.server.clone(), records: self.records.clone() }
    }
}

/// Everything.
pub(super) struct World {
    dice: Dice,
    now: Duration,
    machines: Vec<Machine>,
    /// The one that all agree on.
    master: usize,
    identities: u64,
    snapshots: Vec<Machine>,
    members: Vec<Sim>,
    runs: usize,
    run_of: Vec<usize>,
    messages: Vec<Message>,
    purges: BTreeMap<EntryId, Purge>,
    /// What has happened, where one history alone is asked for.
    told: Vec<String>,
    is_told: bool,
    /// Nothing is lost any more.
    is_quiet: bool,
    seed: u64,
    pub(super) seen: Seen,
}

impl World {
    pub(super) fn new(seed: u64, is_told: bool) -> Self {
        let server = Server { identity: 0, shared: None };
        let mut world = Self {
            dice: Dice::new(seed),
            now: Duration::from_secs(1000),
            machines: vec![Machine { server, records: BTreeMap::new() }],
            master: 0,
            identities: 0,
            snapshots: Vec::new(),
            members: Vec::new(),
            runs: 0,
            run_of: Vec::new(),
            messages: Vec::new(),
            purges: BTreeMap::new(),
            told: Vec::new(),
            is_told,
            is_quiet: false,
            seed,
            seen: Seen::default(),
        };
        for name in 0..MEMBERS {
            let sim = world.sim(name);
            world.members.push(sim);
            world.runs += 1;
            world.run_of.push(world.runs);
        }
        world
    }

    fn sim(&mut self, name: usize) -> Sim {
        let settings = MemberSettings {
            name: format!("web-{name}").into(),
            lease: Some(LEASE),
            renew_every: Duration::from_millis(400),
            look_every: Duration::from_millis(100),
            reads_all: self.dice.percent(50),
        };
        Sim {
            member: Member::new(settings, Incarnation(self.dice.name())),
            name,
            speed: SPEEDS[self.dice.below(SPEEDS.len() as u64) as usize],
            is_frozen: false,
            sees: self.master,
            is_cut_off: false,
            table: Vec::new(),
            number: 0,
            copies: BTreeMap::new(),
            fetching: Vec::new(),
            floor: 0,
            applied: Applied::default(),
            epoch: None,
            under_way: BTreeMap::new(),
        }
    }

    fn tell(&mut self, what: impl FnOnce() -> String) {
        if self.is_told {
            self.told.push(format!("{:?} {}", self.now, what()));
        }
    }

    /// What a member's clock says.
    fn clock(&self, at: usize) -> Duration {
        self.now * self.members[at].speed / 10_000
    }

    pub(super) fn step(&mut self) {
        let at = self.dice.below(MEMBERS as u64) as usize;
        match self.dice.below(1000) {
            0..300 => self.turn(at),
            300..640 => self.deliver(),
            640..700 => self.pass(),
            700..770 => self.fetch(at),
            770..880 => self.use_one(at),
            880..930 => self.purge(at),
            930..950 => self.trouble_member(at),
            950..957 => self.cut_log(),
            957..970 => self.mend_members(),
            970..982 => self.trouble_server(),
            _ => self.snapshot(),
        }
    }

    fn pass(&mut self) {
        let at = self.dice.below(MEMBERS as u64) as usize;
        let millis = match self.dice.below(20) {
            0 => self.dice.below(5_000),
            1..4 => self.dice.below(400),
            // To the moment at which a lease ends, or almost.
            4..6 => {
                let ends = |until: Duration| until.saturating_sub(self.clock(at)).as_millis() as u64;
                let left = self.members[at].member.held_until().map_or(0, ends);
                (left + self.dice.below(30)).saturating_sub(10)
            }
            _ => self.dice.below(60),
        };
        self.now += Duration::from_millis(millis);
    }

    /// A member that is not frozen looks at its clock and calls.
    fn turn(&mut self, at: usize) {
        if self.members[at].is_frozen {
            return;
        }
        let (now, true_now) = (self.clock(at), self.now);
        let (dice, sim) = (&mut self.dice, &mut self.members[at]);
        // What was not answered in time has failed.
        let late = |(_, sent): &(Ticket, Duration)| true_now.saturating_sub(*sent) > TIMEOUT;
        for lane in [Lane::Control, Lane::Reading] {
            if let Some((ticket, _)) = sim.under_way.get(&lane).copied().filter(late) {
                sim.under_way.remove(&lane);
                sim.member.failed(lane, ticket, now);
            }
        }
        for lane in [Lane::Control, Lane::Reading] {
            let fresh = dice.name();
            let Some((ticket, call)) = sim.member.next_call(lane, now, || Epoch(fresh)) else { continue };
            sim.under_way.insert(lane, (ticket, true_now));
            if !sim.is_cut_off && (self.is_quiet || !dice.percent(4)) {
                let (content, incarnation) = (Content::LogCall(sim.sees, call), self.run_of[at]);
                self.messages.push(Message { to: at, incarnation, lane, ticket, sent: true_now, content });
            }
        }
    }

    /// One message arrives, in any order.
    fn deliver(&mut self) {
        let count = self.messages.len() as u64;
        if count == 0 {
            return;
        }
        // Most in their order, some overtake others.
        let which = if self.dice.percent(70) { 0 } else { self.dice.below(count) as usize };
        let message = self.messages.remove(which);
        let at = message.to;
        let content = match message.content {
            Content::LogCall(sees, call) => {
                // What arrives late is done nevertheless.
                self.tell(|| format!("web-{at} sent {:?}: {call:?}", message.sent));
                let reply = self.machines[sees].server.call(call);
                // A server that is no master any more is not believed.
                if sees == self.master && (self.is_quiet || !self.dice.percent(4)) {
                    self.messages.push(Message { content: Content::LogReply(reply), ..message });
                }
                return;
            }
            Content::LogReply(reply) => reply,
        };
        let (now, true_now) = (self.clock(at), self.now);
        if self.run_of[at] != message.incarnation || self.members[at].is_cut_off {
            return;
        }
        if self.members[at].is_frozen {
            // It finds the reply when it goes on.
            self.messages.push(Message { content: Content::LogReply(content), ..message });
            return;
        }
        self.tell(|| format!("web-{at} sent {:?}, answered {content:?}", message.sent));
        let sim = &mut self.members[at];
        if true_now.saturating_sub(message.sent) <= TIMEOUT || self.dice.percent(50) {
            if sim.under_way.get(&message.lane).is_some_and(|(ticket, _)| *ticket == message.ticket) {
                sim.under_way.remove(&message.lane);
            }
            sim.member.answered(message.lane, message.ticket, content, now);
            self.take_effects(at);
        }
    }

    fn take_effects(&mut self, at: usize) {
        let mut is_complete = false;
        while let Some(effect) = self.members[at].member.effect() {
            self.tell(|| format!("web-{at}: {effect:?}"));
            let sim = &mut self.members[at];
            match effect {
                Effect::Apply { position, what } => {
                    sim.enter(what);
                    sim.applied.reach(position, sim.number, None);
                }
                Effect::Reached { position, own } => sim.applied.reach(position, sim.number, own),
                Effect::Placed { id, position } => sim.applied.place(id, position),
                Effect::Displaced { id } => sim.applied.displace(id),
                Effect::Unproven { position } => {
                    self.seen.unproven += u64::from(!sim.copies.is_empty());
                    sim.copies.clear();
                    // What is under way was asked for before.
                    sim.number += 1;
                    sim.floor = sim.number;
                    sim.applied.restart(position, sim.number);
                }
                Effect::Complete(SharedPurge { id, .. }) => {
                    sim.applied.complete(id);
                    let others = self.others_may_use(at);
                    let true_now = self.now;
                    if let Some(purge) = self.purges.get_mut(&id) {
                        purge.complete.get_or_insert(true_now);
                        self.seen.complete += 1;
                        self.seen.complete_after_lapse += u64::from(others < MEMBERS - 1);
                    }
                    self.tell(|| format!("web-{at}: {id:?} complete"));
                    is_complete = true;
                }
            }
        }
        // What larders count beside purges.
        let sim = &mut self.members[at];
        sim.number += u64::from(self.dice.percent(10));
        sim.applied.keep_up(sim.number);
        let epoch = self.members[at].member.position().map(|position| position.epoch);
        if epoch != self.members[at].epoch {
            let keeps = !self.members[at].copies.is_empty() && self.members[at].epoch.is_some();
            self.seen.epochs += 1;
            self.seen.kept_over_epochs += u64::from(keeps);
            self.members[at].epoch = epoch;
            self.tell(|| format!("web-{at}: {epoch:?}, keeps {keeps}"));
        }
        if is_complete {
            self.check_all();
        }
    }

    fn others_may_use(&self, at: usize) -> usize {
        let others = (0..MEMBERS).filter(|other| *other != at);
        others.filter(|other| self.members[*other].member.may_use(self.clock(*other))).count()
    }

    /// Asks the origin, or keeps what comes from it; it may put that into the server too.
    fn fetch(&mut self, at: usize) {
        let clock = self.clock(at);
        let (key, begins, which) = (self.dice.below(KEYS), self.dice.percent(50), self.dice.draw());
        let is_put = self.dice.percent(60);
        let sim = &mut self.members[at];
        if sim.is_frozen {
            return;
        }
        if begins {
            let stored = Stored { fetched: self.now, number: sim.number };
            sim.fetching.push((key, stored));
        }
        if sim.fetching.is_empty() || begins && which.is_multiple_of(2) {
            return;
        }
        let (key, stored) = sim.fetching.swap_remove(which as usize % sim.fetching.len());
        sim.copies.insert(key, stored);
        let may_put = sim.member.may_use(clock) && !sim.is_cut_off;
        let sees = sim.sees;
        let position = sim.applied.position_of(stored.number);
        if let Some(position) = position.filter(|_| is_put && may_put) {
            self.machines[sees].records.insert(key, Record { fetched: stored.fetched, position });
        }
    }

    /// Uses what is there, if the protocol lets it.
    fn use_one(&mut self, at: usize) {
        let (key, of_others) = (self.dice.below(KEYS), self.dice.percent(40));
        if self.members[at].is_frozen {
            return;
        }
        if !self.members[at].member.may_use(self.clock(at)) {
            self.seen.refused += 1;
        } else if self.check(at, key, of_others) {
            *(if of_others { &mut self.seen.used_of_others } else { &mut self.seen.used }) += 1;
        }
    }

    /// Whether a member may use something under a key now. If it may, no purge forbids it.
    fn check(&self, at: usize, key: What, of_others: bool) -> bool {
        let sim = &self.members[at];
        if !sim.member.may_use(self.clock(at)) {
            return false;
        }
        let found = if of_others {
            let record = self.machines[sim.sees].records.get(&key).filter(|_| !sim.is_cut_off);
            let number = |record: &Record| sim.applied.number_of(record.position);
            let is_good = |record: &&Record| number(record).is_some_and(|number| sim.is_good(key, number));
            record.filter(is_good).map(|record| record.fetched)
        } else {
            let copy = sim.copies.get(&key);
            copy.filter(|copy| sim.is_good(key, copy.number)).map(|copy| copy.fetched)
        };
        let Some(fetched) = found else { return false };
        let left_out = |(id, purge): (&EntryId, &Purge)| {
            let by = self.run_of.iter().position(|run| *run == purge.by).filter(|by| *by != at)?;
            let receipt = self.members[by].member.receipt(*id, self.clock(by))?;
            let is_named = |(name, standing): &(Arc<str>, MemberState)| {
                **name == *format!("web-{}", sim.name) && matches!(standing, MemberState::Silent { .. })
            };
            let is_said = receipt.is_shared && receipt.knows_all;
            (is_said && !receipt.members.iter().any(is_named)).then_some(receipt)
        };
        let older = self.purges.iter().filter(|(_, purge)| purge.key == key && fetched < purge.began);
        if let Some(receipt) = older.clone().find_map(left_out) {
            let (story, now, seed) = (self.told.join("\n"), self.now, self.seed);
            panic!(
                "{story}\nLARDER_SEED={seed}: at {now:?} web-{at} uses a copy of {fetched:?}, which {receipt:?} leaves out"
            );
        }
        let forbids = |purge: &Purge| {
            // What was told in a former log may be lost with that.
            let is_lost = purge.told_in.is_some_and(|epoch| epoch != sim.epoch);
            let is_own = purge.by == self.run_of[at] && !is_lost;
            purge.key == key && fetched < purge.began && (is_own || purge.complete.is_some())
        };
        if let Some((id, purge)) = self.purges.iter().find(|(_, purge)| forbids(purge)) {
            let (story, now) = (self.told.join("\n"), self.now);
            panic!(
                "{story}\nLARDER_SEED={}: web-{at} uses a copy of {fetched:?} (of others: {of_others}) at {now:?}, purged at {:?} by run {}, complete at {:?}: {id:?}",
                self.seed, purge.began, purge.by, purge.complete
            );
        }
        true
    }

    /// What anybody could use now is checked.
    fn check_all(&self) {
        for at in 0..MEMBERS {
            for key in 0..KEYS {
                [true, false].into_iter().for_each(|of_others| _ = self.check(at, key, of_others));
            }
        }
    }

    fn purge(&mut self, at: usize) {
        if self.members[at].is_frozen {
            return;
        }
        let (key, id) = (self.dice.below(KEYS), EntryId(self.dice.name()));
        let is_told = self.dice.percent(25);
        let sim = &mut self.members[at];
        let announced = sim.applied.announce(sim.number);
        sim.enter(key);
        sim.applied.name(announced, id, is_told);
        sim.applied.end(announced);
        let is_taken = match is_told {
            true => sim.member.tell(id, key, 8),
            false => sim.member.purge(id, key, 8),
        };
        assert!(is_taken, "few are not complete");
        let (by, epoch) = (self.run_of[at], self.members[at].epoch);
        let told_in = is_told.then_some(epoch);
        self.purges.insert(id, Purge { key, began: self.now, by, complete: None, told_in });
        self.seen.purged += 1;
        self.tell(|| format!("web-{at}: purges {key} as {id:?}"));
    }

    fn trouble_member(&mut self, at: usize) {
        match self.dice.below(4) {
            0 => self.members[at].is_frozen = true,
            1 => self.members[at].is_cut_off = true,
            2 => {
                // Killed, and started again with nothing.
                self.start_anew(at);
            }
            _ => {
                // Ends in order, and is started again.
                let sees = self.members[at].sees;
                if !self.members[at].is_cut_off
                    && let Some(call) = self.members[at].member.leave()
                {
                    self.machines[sees].server.call(call);
                }
                self.start_anew(at);
            }
        }
        let Sim { is_frozen, is_cut_off, .. } = self.members[at];
        self.tell(|| format!("web-{at}: frozen {is_frozen}, cut off {is_cut_off}, or new"));
    }

    fn start_anew(&mut self, at: usize) {
        let name = self.members[at].name;
        self.members[at] = self.sim(name);
        self.runs += 1;
        self.run_of[at] = self.runs;
    }

    fn cut_log(&mut self) {
        let (kept, master) = (self.dice.below(4) as usize, self.master);
        self.machines[master].server.trim(kept);
        self.tell(|| format!("the log keeps {kept}"));
    }

    fn mend_members(&mut self) {
        for at in 0..MEMBERS {
            if self.dice.percent(60) {
                let master = self.master;
                let sim = &mut self.members[at];
                (sim.is_frozen, sim.is_cut_off, sim.sees) = (false, false, master);
            }
        }
    }

    fn snapshot(&mut self) {
        if self.snapshots.len() == SNAPSHOTS_MAX {
            self.snapshots.remove(0);
        }
        self.snapshots.push(self.machines[self.master].copy());
    }

    fn trouble_server(&mut self) {
        let which = self.dice.below(self.snapshots.len() as u64 + 1) as usize;
        let mut data = match self.snapshots.get(which) {
            Some(snapshot) => snapshot.copy(),
            None => self.machines[self.master].copy(),
        };
        self.identities += 1;
        data.server.identity = self.identities;
        let kind = self.dice.below(4);
        match kind {
            // It starts again with what it has.
            0 => self.machines[self.master] = data,
            // Another one is promoted. The former goes on for those who still speak to it.
            1 => {
                self.machines.push(data);
                self.master = self.machines.len() - 1;
                for sim in &mut self.members {
                    if self.dice.percent(50) {
                        sim.sees = self.master;
                    }
                }
            }
            // Everything is flushed, or the fleet's part of it is evicted.
            2 => {
                let machine = &mut self.machines[self.master];
                machine.server.shared = None;
                machine.records.clear();
            }
            _ => self.machines[self.master].server.shared = None,
        }
        self.tell(|| format!("server: {}", ["restart", "failover", "flush", "eviction"][kind as usize]));
    }

    /// All that was wrong is over: every purge of a member that is still there has to become complete.
    pub(super) fn quiet(&mut self) {
        self.is_quiet = true;
        let master = self.master;
        for sim in &mut self.members {
            (sim.is_frozen, sim.is_cut_off, sim.sees) = (false, false, master);
        }
        let end = self.now + LEASE * 5;
        while self.now < end {
            for at in 0..MEMBERS {
                self.turn(at);
                (0..4).for_each(|_| self.deliver());
                self.use_one(at);
            }
            self.now += Duration::from_millis(20);
        }
        for at in 0..MEMBERS {
            let clock = self.clock(at);
            let story = || format!("{}\nLARDER_SEED={}: web-{at}", self.told.join("\n"), self.seed);
            assert!(
                self.members[at].member.may_use(clock),
                "{} has no lease at {clock:?}: {:#?}",
                story(),
                self.members[at].member
            );
            let open = self.purges.keys().filter_map(|id| self.members[at].member.receipt(*id, clock));
            let open: Vec<_> = open.collect();
            assert!(open.is_empty(), "{} waits for {open:?}", story());
        }
    }
}
