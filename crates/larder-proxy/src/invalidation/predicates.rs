//! Predicates that name responses by anything but their URL: by tag, group, path, host, or a pattern.
//!
//! In: hashes of names and patterns, each with a scope, an effect and a number. Out: what they mean for a response. As with URLs
//! ([`super::table`]) nothing is looked for when a predicate is entered: a response is compared when it is found.
//! All predicates have one lock, since a response may have many names. A look takes it only where a predicate was entered since
//! the response was last compared: [`Predicates::state`] changes with each entry, and a response remembers the state in which
//! none concerned it. The number of a predicate is taken under that lock and the state is published before it is released. So
//! a response that remembers a state was compared with every predicate before it, and is compared with those alone that came after
//! it, where that is not long ago ([`recent`]).
//! A predicate that nothing is left for is forgotten ([`retiring`]). Bounded: beyond [`EXACT_MAX`] names or [`PATTERNS_MAX`] patterns the oldest goes, and its number becomes the floor. What was fetched
//! before the floor is not proven to be good. A doubt says the same of a time without a lease, and is lifted once there is one.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use larder_cache::purge::{Pattern, Scope};
use larder_cache::{GroupTags, Verdict};
use smallvec::SmallVec;

use super::effects::{Effects, How};
use super::kind::Subject;
use super::kinds::KINDS;
use super::patterns;
use super::sync::{AtomicU64, Ordering, Rank, RankedRwLock};
use recent::{Entered, Recent};

/// Numbers of predicates.
pub(super) type Numbers = HashSet<u64, foldhash::fast::RandomState>;

/// Names that are kept; about 20 MiB where each has one scope.
pub(super) const EXACT_MAX: usize = 262_144;
/// Patterns that are kept.
pub(super) const PATTERNS_MAX: usize = 1024;

/// What was done to the responses of a name, or of a pattern, at the hosts of a scope.
#[derive(Clone, Debug)]
struct Scoped {
    /// `None` is every host.
    scope: Option<Arc<Scope>>,
    effects: Effects,
}

impl Scoped {
    fn is_at(&self, scope: Option<&Scope>) -> bool {
        self.scope.as_deref() == scope
    }

    /// Whether what was entered for such a scope under this number is part of it.
    fn has(&self, scope: Option<&Arc<Scope>>, number: u64) -> bool {
        number <= self.effects.latest() && self.is_at(unless_any(scope).map(|scope| &**scope))
    }

    fn verdict(&self, host: &str, number: u64) -> Verdict {
        if self.effects.latest() <= number || self.scope.as_ref().is_some_and(|scope| !scope.holds(host)) {
            return Verdict::Good;
        }
        self.effects.verdict(number)
    }
}

/// A pattern, and what was done to what it matches.
#[derive(Clone, Debug)]
pub(super) struct EnteredPattern {
    pub(super) pattern: Arc<Pattern>,
    scoped: Scoped,
}

impl EnteredPattern {
    /// What it means for a response, if that matches it.
    pub(super) fn verdict(&self, subject: &Subject<'_>, number: u64) -> Verdict {
        match self.scoped.verdict(subject.host(), number) {
            Verdict::Good => Verdict::Good,
            verdict if patterns::matches(&self.pattern, subject) => verdict,
            _ => Verdict::Good,
        }
    }
}

/// Every host is no scope.
fn unless_any(scope: Option<&Arc<Scope>>) -> Option<&Arc<Scope>> {
    scope.filter(|scope| !scope.is_any())
}

#[derive(Debug, Default)]
struct State {
    exact: HashMap<u64, SmallVec<[Scoped; 1]>, foldhash::fast::RandomState>,
    recent: Recent,
    /// Entries of `exact`, one for each name and scope.
    names: usize,
    /// Names in the order of their numbers; one that was entered again stands there again.
    order: VecDeque<(u64, u64)>,
    /// Copied when it changes: it is compared without the lock.
    patterns: Arc<Vec<EnteredPattern>>,
    /// Each scope once.
    scopes: Vec<Arc<Scope>>,
    /// The highest number of a tag, and of any other name. A response that is newer than one of them has no need of its names of
    /// that kind: to make those of its path and its host takes as long as to look up twenty tags.
    last_tag: u64,
    last_other: u64,
    floor: u64,
    /// The highest floor that was forgotten, since nothing was left below it.
    floor_retired: u64,
    /// Up to this number a journal has lost notes: only what is here knows what they said.
    lost: u64,
    /// How often the floor was raised.
    raised: u64,
    /// Names and patterns that were forgotten.
    retired: u64,
    /// The same when journals were last asked to take stock.
    retired_in_stock: u64,
}

/// The predicates. Shared by all workers.
#[derive(Debug)]
pub(super) struct Predicates {
    /// Changes with each entry; zero before the first.
    state: AtomicU64,
    /// The highest number of all, and the floor's.
    latest: AtomicU64,
    /// Below which number nothing counts while there is no lease; zero where none was missed. Changed under the lock.
    doubt: AtomicU64,
    /// The highest number of all that were forgotten since nothing was left that they concerned. Published before they go.
    forgotten: AtomicU64,
    held: RankedRwLock<State>,
}

impl Default for Predicates {
    fn default() -> Self {
        let held = RankedRwLock::new(Rank::Predicates, State::default());
        let zero = || AtomicU64::new(0);
        Self { state: zero(), latest: zero(), doubt: zero(), forgotten: zero(), held }
    }
}

/// How many predicates there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredicateCounts {
    /// Names, each with a scope.
    pub names: u64,
    /// Patterns.
    pub patterns: u64,
    /// Below which number nothing is proven to be good; zero where everything is.
    pub floor: u64,
    /// How often the floor was raised.
    pub raised: u64,
    /// Names and patterns that were forgotten since nothing was left that they concerned.
    pub retired: u64,
}

impl Predicates {
    /// The state that a response remembers.
    #[inline]
    pub(super) fn state(&self) -> u64 {
        self.state.load(Ordering::Acquire)
    }

    /// The highest number that was forgotten so far.
    #[inline]
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Acquire)
    }

    /// What all predicates mean for a response with this number, and the state in which that is so. `cleared` is a state in which none
    /// concerned it, where there is one.
    pub(super) fn verdict(&self, subject: &Subject<'_>, number: u64, cleared: Option<u64>) -> (Verdict, u64) {
        // In this order: what is entered in between has a number above `latest`, and makes the state another.
        let state = self.state();
        if number >= self.latest.load(Ordering::Acquire) {
            return (Verdict::Good, state);
        }
        let (of_names, patterns, state) = {
            let (held, state) = (self.held.read(), self.state());
            let tags = subject.head.and_then(|head| head.tags.as_deref());
            if cleared.is_some_and(|cleared| held.recent.spares(tags, cleared)) {
                return (Verdict::Good, state);
            }
            (self.of_doubt(number).and(held.of_names(subject, number)), Arc::clone(&held.patterns), state)
        };
        let of_patterns = || patterns.iter().map(|pattern| pattern.verdict(subject, number));
        let verdict = match of_names {
            Verdict::Gone => Verdict::Gone,
            of_names => of_patterns().fold(of_names, Verdict::and),
        };
        (verdict, state)
    }

    /// The number of the last predicate that concerns a response; `None` where none does, or only the floor.
    pub(super) fn cause(&self, subject: &Subject<'_>, number: u64) -> Option<u64> {
        let mut last = None;
        self.each_concerning(subject, number, &mut |number| last = last.max(Some(number)));
        last
    }

    /// Calls `each` with the number of every predicate that concerns a response.
    pub(super) fn each_concerning(&self, subject: &Subject<'_>, number: u64, each: &mut dyn FnMut(u64)) {
        let host = subject.host();
        let held = self.held.read();
        let mut note = |scoped: &Scoped| {
            if scoped.verdict(host, number) != Verdict::Good {
                each(scoped.effects.latest());
            }
        };
        for kind in &KINDS {
            (kind.names)(subject, &mut |name| {
                held.exact.get(&name).into_iter().flatten().for_each(&mut note)
            });
        }
        let patterns = Arc::clone(&held.patterns);
        drop(held);
        let matching = patterns.iter().filter(|pattern| pattern.verdict(subject, number) != Verdict::Good);
        matching.for_each(|pattern| note(&pattern.scoped));
    }

    /// What `current` gives while no predicate is being entered, and the state in which all up to that are.
    pub(super) fn at(&self, current: impl FnOnce() -> u64) -> (u64, u64) {
        let _held = self.held.read();
        (current(), self.state())
    }

    /// The same of what is in these groups and has no other name.
    pub(super) fn of_groups(&self, groups: &GroupTags, number: u64) -> Verdict {
        if groups.is_empty() || number >= self.latest.load(Ordering::Acquire) {
            return Verdict::Good;
        }
        let held = self.held.read();
        let mut verdict = self.of_doubt(number).and(held.of_floor(number));
        super::groups::names_of(groups, &mut |hash| verdict = verdict.and(held.of_name(hash, "", number)));
        verdict
    }

    /// Enters what is done to the responses of a name under the number that `next` gives, and gives that.
    pub(super) fn enter(
        &self,
        (name, scope): (u64, Option<&Arc<Scope>>),
        how: How,
        next: impl FnOnce() -> u64,
    ) -> u64 {
        self.enter_by(Entered::Other, next, |held, number| {
            held.last_other = held.last_other.max(number);
            held.enter((name, scope), how, number);
        })
    }

    /// The same of both names of a tag, its own first. A walk that begins meanwhile judges by each of them, or retires none.
    pub(super) fn enter_tag(
        &self,
        (names, scope): ([u64; 2], Option<&Arc<Scope>>),
        how: How,
        next: impl FnOnce() -> u64,
    ) -> u64 {
        self.enter_by(Entered::Tag(names[0]), next, |held, number| {
            held.last_tag = held.last_tag.max(number);
            names.into_iter().for_each(|name| held.enter((name, scope), how, number));
        })
    }

    /// The same of what matches a pattern.
    pub(super) fn enter_pattern(
        &self,
        (pattern, scope): (&Arc<Pattern>, Option<&Arc<Scope>>),
        how: How,
        next: impl FnOnce() -> u64,
    ) -> u64 {
        self.enter_by(Entered::Other, next, |held, number| held.enter_pattern((pattern, scope), how, number))
    }

    /// Number, entry and what look-ups are told of them, under one hold of the lock and in this order.
    fn enter_by(
        &self,
        entered: Entered,
        next: impl FnOnce() -> u64,
        enter: impl FnOnce(&mut State, u64),
    ) -> u64 {
        let mut held = self.held.write();
        let (number, floor) = (next(), held.floor);
        enter(&mut held, number);
        let entered = if held.floor == floor { entered } else { Entered::Other };
        let latest = number.max(held.floor);
        self.publish(&mut held, entered, latest);
        number
    }

    /// Whether what was entered for a name under this number means something still: it is here, or was dropped to make room.
    pub(super) fn keeps(&self, name: u64, scope: Option<&Arc<Scope>>, number: u64) -> bool {
        let held = self.held.read();
        let entered = held.exact.get(&name).into_iter().flatten();
        number <= held.floor || entered.into_iter().any(|scoped| scoped.has(scope, number))
    }

    /// Whether nothing was entered for a name with the same effect after this number.
    pub(super) fn is_last(&self, name: u64, scope: Option<&Arc<Scope>>, number: u64) -> bool {
        let held = self.held.read();
        let entered = held.exact.get(&name).into_iter().flatten();
        entered.into_iter().any(|scoped| scoped.has(scope, number) && scoped.effects.has(number))
    }

    /// Whether what was entered for a pattern under this number means something still.
    pub(super) fn keeps_pattern(
        &self,
        pattern: &Arc<Pattern>,
        scope: Option<&Arc<Scope>>,
        number: u64,
    ) -> bool {
        let held = self.held.read();
        let mut patterns = held.patterns.iter().filter(|one| one.pattern == *pattern);
        number <= held.floor || patterns.any(|one| one.scoped.has(scope, number))
    }

    /// Whether a note that stands for everything with a smaller number means something still. A journal that has no room for its
    /// notes makes one as well, so only those go that a floor was forgotten for.
    pub(super) fn keeps_all(&self, number: u64) -> bool {
        let held = self.held.read();
        number > held.floor_retired || number <= held.floor.max(held.lost)
    }

    /// Whether something may be here that was entered under this number or before it.
    pub(super) fn has_up_to(&self, number: u64) -> bool {
        let held = self.held.read();
        let names = held.order.front().is_some_and(|(oldest, _)| *oldest <= number);
        names || number <= held.floor || !held.patterns.is_empty()
    }

    /// The floor.
    pub(super) fn floor(&self) -> u64 {
        self.held.read().floor
    }

    /// A journal has lost notes with numbers up to this one: a note that stands for all of them is needed from now on.
    pub(super) fn note_lost(&self, number: u64) {
        if number > 0 {
            let mut held = self.held.write();
            held.lost = held.lost.max(number);
        }
    }

    /// Nothing with a smaller number is proven to be good.
    pub(super) fn raise_floor(&self, number: u64) {
        let mut held = self.held.write();
        held.raise(number);
        let floor = held.floor;
        self.publish(&mut held, Entered::Other, floor);
    }

    /// The same until it is lifted.
    pub(super) fn doubt(&self, number: u64) {
        let mut held = self.held.write();
        self.doubt.fetch_max(number, Ordering::AcqRel);
        self.publish(&mut held, Entered::Other, number);
    }

    /// Up to which number a doubt stands; zero where none does.
    #[inline]
    pub(super) fn doubted(&self) -> u64 {
        self.doubt.load(Ordering::Acquire)
    }

    /// Ends the doubt of this number. One that came later stands.
    pub(super) fn lift(&self, number: u64) {
        let mut held = self.held.write();
        if self.doubt.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.publish(&mut held, Entered::Other, number);
        }
    }

    fn of_doubt(&self, number: u64) -> Verdict {
        if number < self.doubted() { Verdict::Unproven } else { Verdict::Good }
    }

    /// Under the lock still: a look that finds the new state finds what it stands for.
    fn publish(&self, held: &mut State, entered: Entered, number: u64) {
        self.latest.fetch_max(number, Ordering::AcqRel);
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        held.recent.note(entered, before + 1);
    }

    pub(super) fn counts(&self) -> PredicateCounts {
        let held = self.held.read();
        PredicateCounts {
            names: held.names as u64,
            patterns: held.patterns.len() as u64,
            floor: held.floor,
            raised: held.raised,
            retired: held.retired,
        }
    }
}

impl State {
    fn raise(&mut self, number: u64) {
        if number > self.floor {
            self.floor = number;
            self.raised += 1;
        }
    }

    fn of_floor(&self, number: u64) -> Verdict {
        if number < self.floor { Verdict::Unproven } else { Verdict::Good }
    }

    fn of_name(&self, name: u64, host: &str, number: u64) -> Verdict {
        let scoped = self.exact.get(&name).into_iter().flatten();
        scoped.map(|scoped| scoped.verdict(host, number)).fold(Verdict::Good, Verdict::and)
    }

    fn of_names(&self, subject: &Subject<'_>, number: u64) -> Verdict {
        let mut verdict = self.of_floor(number);
        for kind in &KINDS {
            let last = if kind.has_tags { self.last_tag } else { self.last_other };
            if last <= number {
                continue;
            }
            (kind.names)(subject, &mut |name| {
                // Most names have no entry.
                if self.exact.contains_key(&name) {
                    verdict = verdict.and(self.of_name(name, subject.host(), number));
                }
            });
        }
        verdict
    }

    /// The scope as all of its predicates hold it.
    fn interned(&mut self, scope: Option<&Arc<Scope>>) -> Option<Arc<Scope>> {
        let scope = unless_any(scope)?;
        if let Some(known) = self.scopes.iter().find(|known| known == &scope) {
            return Some(Arc::clone(known));
        }
        self.scopes.retain(|known| Arc::strong_count(known) > 1);
        self.scopes.push(Arc::clone(scope));
        Some(Arc::clone(scope))
    }

    fn enter(&mut self, (name, scope): (u64, Option<&Arc<Scope>>), how: How, number: u64) {
        let scope = self.interned(scope);
        let entered = self.exact.entry(name).or_default();
        match entered.iter_mut().find(|scoped| scoped.is_at(scope.as_deref())) {
            Some(scoped) => scoped.effects.note(how, number),
            None => {
                let mut effects = Effects::default();
                effects.note(how, number);
                entered.push(Scoped { scope, effects });
                self.names += 1;
            }
        }
        self.order.push_back((number, name));
        while self.names > EXACT_MAX && self.drop_oldest() {}
        // What was entered again stands in the order twice.
        if self.order.len() > 2 * EXACT_MAX {
            let exact = &self.exact;
            let is_latest = |(number, name): &(u64, u64)| {
                exact.get(name).is_some_and(|all| all.iter().any(|one| one.effects.latest() == *number))
            };
            self.order.retain(is_latest);
        }
    }

    /// Drops the name that was entered first of all; false where there is none.
    fn drop_oldest(&mut self) -> bool {
        let Some((number, name)) = self.order.pop_front() else { return false };
        let Some(entered) = self.exact.get_mut(&name) else { return true };
        let before = entered.len();
        entered.retain(|scoped| scoped.effects.latest() > number);
        self.names -= before - entered.len();
        let (is_dropped, is_empty) = (before > entered.len(), entered.is_empty());
        if is_empty {
            self.exact.remove(&name);
        }
        if is_dropped {
            self.raise(number);
        }
        true
    }

    fn enter_pattern(
        &mut self,
        (pattern, scope): (&Arc<Pattern>, Option<&Arc<Scope>>),
        how: How,
        number: u64,
    ) {
        let scope = self.interned(scope);
        let patterns = Arc::make_mut(&mut self.patterns);
        let is_it = |one: &EnteredPattern| one.pattern == *pattern && one.scoped.is_at(scope.as_deref());
        // The one that was entered last stands last.
        let known = patterns.iter().position(is_it).map(|at| patterns.remove(at));
        let mut effects = known.map_or_else(Effects::default, |known| known.scoped.effects);
        effects.note(how, number);
        patterns.push(EnteredPattern { pattern: Arc::clone(pattern), scoped: Scoped { scope, effects } });
        if patterns.len() > PATTERNS_MAX {
            let oldest = patterns.remove(0).scoped.effects.latest();
            self.raise(oldest);
        }
    }
}

// The models compile this file at another place.
#[path = "predicates/recent.rs"]
mod recent;
#[path = "predicates/retiring.rs"]
mod retiring;
#[cfg(test)]
mod tests;
