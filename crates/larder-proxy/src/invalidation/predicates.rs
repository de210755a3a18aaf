//! Predicates that name responses by anything but their URL: by tag, group, path, host, or a pattern.
//!
//! In: hashes of names and patterns, each with a scope, an effect and a number. Out: what they mean for a response. As with URLs
//! ([`super::table`]) nothing is looked for when a predicate is entered: a response is compared when it is found.
//! All predicates have one lock, since a response may have many names. A look takes it only where a predicate was entered since
//! the response was last compared: [`Predicates::state`] changes with each entry, and a response remembers the state in which
//! none concerned it. The number of a predicate is taken under that lock and the state is published before it is released. So
//! a response that remembers a state was compared with every predicate before it.
//! Bounded: beyond [`EXACT_MAX`] names or [`PATTERNS_MAX`] patterns the oldest goes, and its number becomes the floor. What was fetched
//! before the floor is not proven to be good.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use larder_cache::purge::{Pattern, Scope};
use larder_cache::{GroupTags, Verdict};
use larder_store::rank::{Rank, RankedRwLock};
use smallvec::SmallVec;

use super::effects::{Effects, How};
use super::kind::Subject;
use super::kinds::KINDS;
use super::patterns;

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

#[derive(Debug, Default)]
struct State {
    exact: HashMap<u64, SmallVec<[Scoped; 1]>, foldhash::fast::RandomState>,
    /// Entries of `exact`, one for each name and scope.
    names: usize,
    /// Names in the order of their numbers; one that was entered again stands there again.
    order: VecDeque<(u64, u64)>,
    /// Copied when it changes: it is compared without the lock.
    patterns: Arc<Vec<EnteredPattern>>,
    /// Each scope once.
    scopes: Vec<Arc<Scope>>,
    floor: u64,
    /// How often.
    raised: u64,
}

/// The predicates. Shared by all workers.
#[derive(Debug)]
pub(super) struct Predicates {
    /// Changes with each entry; zero before the first.
    state: AtomicU64,
    /// The highest number of all, and the floor's.
    latest: AtomicU64,
    held: RankedRwLock<State>,
}

impl Default for Predicates {
    fn default() -> Self {
        let held = RankedRwLock::new(Rank::Predicates, State::default());
        Self { state: AtomicU64::new(0), latest: AtomicU64::new(0), held }
    }
}

/// How many predicates there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredicateCounts {
    /// Names, each with a scope.
    pub names: u64,
    /// Patterns.
    pub patterns: u64,
    /// How often the floor was raised, below which nothing is proven to be good.
    pub raised: u64,
}

impl Predicates {
    /// The state that a response remembers.
    #[inline]
    pub(super) fn state(&self) -> u64 {
        self.state.load(Ordering::Acquire)
    }

    /// What all predicates mean for a response with this number, and the state in which that is so.
    pub(super) fn verdict(&self, subject: &Subject<'_>, number: u64) -> (Verdict, u64) {
        // In this order: what is entered in between has a number above `latest`, and makes the state another.
        let state = self.state();
        if number >= self.latest.load(Ordering::Acquire) {
            return (Verdict::Good, state);
        }
        let (of_names, patterns, state) = {
            let held = self.held.read();
            (held.of_names(subject, number), Arc::clone(&held.patterns), self.state())
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
        let (mut last, host) = (None, subject.host());
        let held = self.held.read();
        let mut note = |scoped: &Scoped| {
            if scoped.verdict(host, number) != Verdict::Good {
                last = last.max(Some(scoped.effects.latest()));
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
        last
    }

    /// The same of what is in these groups and has no other name.
    pub(super) fn of_groups(&self, groups: &GroupTags, number: u64) -> Verdict {
        if groups.is_empty() || number >= self.latest.load(Ordering::Acquire) {
            return Verdict::Good;
        }
        let held = self.held.read();
        let mut verdict = held.of_floor(number);
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
        let mut held = self.held.write();
        let number = next();
        held.enter((name, scope), how, number);
        self.publish(number.max(held.floor));
        number
    }

    /// The same of what matches a pattern.
    pub(super) fn enter_pattern(
        &self,
        (pattern, scope): (&Arc<Pattern>, Option<&Arc<Scope>>),
        how: How,
        next: impl FnOnce() -> u64,
    ) -> u64 {
        let mut held = self.held.write();
        let number = next();
        held.enter_pattern((pattern, scope), how, number);
        self.publish(number.max(held.floor));
        number
    }

    /// Nothing with a smaller number is proven to be good.
    pub(super) fn raise_floor(&self, number: u64) {
        let mut held = self.held.write();
        held.raise(number);
        self.publish(held.floor);
    }

    /// Under the lock still: a look that finds the new state finds what it stands for.
    fn publish(&self, number: u64) {
        self.latest.fetch_max(number, Ordering::AcqRel);
        self.state.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn counts(&self) -> PredicateCounts {
        let held = self.held.read();
        PredicateCounts {
            names: held.names as u64,
            patterns: held.patterns.len() as u64,
            raised: held.raised,
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
        let (mut verdict, host) = (self.of_floor(number), subject.host());
        for kind in &KINDS {
            (kind.names)(subject, &mut |name| verdict = verdict.and(self.of_name(name, host, number)));
        }
        verdict
    }

    /// The scope as all of its predicates hold it.
    fn interned(&mut self, scope: Option<&Arc<Scope>>) -> Option<Arc<Scope>> {
        let scope = scope.filter(|scope| !scope.is_any())?;
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

#[cfg(test)]
mod tests;
