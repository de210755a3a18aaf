//! Purges: predicates with a scope, as they are entered, and as journals note them.
//!
//! In: a [`Predicate`] of a purge. Out: the number under which it is entered, and the note that brings it back after a restart. A
//! URL that is purged hard is not entered here: each store knows what it has, and takes it out ([`super::base`]).

use std::sync::Arc;
use std::time::Duration;

use larder_cache::Verdict;
use larder_cache::groups::{GroupTag, GroupTags};
use larder_cache::purge::tags::Tags;
use larder_cache::purge::{Mode, Predicate, Scope, What, written};
use larder_http::authority::Authority;
use larder_http::time::WallTime;
use larder_store::{CacheKey, Note};

use super::counter::Invalidations;
use super::effects::How;
use super::kind::Noted;
use super::{hosts, paths, tags};

/// What a mode does, from this moment of the monotonic clock on.
pub(crate) fn how(mode: Mode, since: Option<Duration>) -> How {
    match mode {
        Mode::Hard => How::Remove,
        Mode::Soft => How::Soften(since),
    }
}

/// The note of a predicate that was entered under `number` at this moment.
pub(crate) fn note_of(predicate: &Predicate, number: u64, at: WallTime) -> Note {
    Note { number, moment: at.0, what: written::to_note(predicate) }
}

/// What a note names, where it is of this kind.
pub(super) fn read(what: &[u8]) -> Option<Noted> {
    written::from_note(what).map(Noted::Purge)
}

impl Invalidations {
    /// Invalidates every stored response that is in one of these groups. Gives the number of that, and whether a response in
    /// the groups `own`, fetched after `since`, was good until then.
    pub(crate) fn invalidate_groups(
        &self,
        (tags, how): (&GroupTags, How),
        own: &GroupTags,
        since: u64,
    ) -> (u64, bool) {
        let was_good = self.predicates.of_groups(own, since) == Verdict::Good;
        let numbers = tags.iter().map(|tag| self.predicates.enter((tag.hash(), None), how, || self.next()));
        (numbers.fold(since, u64::max), was_good)
    }

    /// Enters a predicate, and gives its number.
    pub(crate) fn enter(&self, predicate: &Predicate, since: Option<Duration>) -> u64 {
        self.enter_under(predicate, since, &mut || self.next())
    }

    /// Enters one that a journal has, under the number that it had.
    pub(super) fn restore(&self, predicate: &Predicate, since: Option<Duration>, number: u64) {
        self.enter_under(predicate, since, &mut || number);
    }

    /// Enters what was done to the responses of a name at every host, as a journal has it.
    pub(super) fn restore_name(&self, name: u64, how: How, number: u64) {
        self.predicates.enter((name, None), how, || number);
    }

    fn enter_under(
        &self,
        predicate: &Predicate,
        since: Option<Duration>,
        next: &mut dyn FnMut() -> u64,
    ) -> u64 {
        let (how, scope) = (how(predicate.mode, since), Some(&predicate.scope));
        let mut enter =
            |name: u64, scope: Option<&Arc<Scope>>| self.predicates.enter((name, scope), how, &mut *next);
        match &predicate.what {
            What::Url { authority, target } => {
                let base = CacheKey::new(authority, target).hash();
                self.table.note(base, how, next)
            }
            What::Target(target) => enter(paths::name_of_target(target), scope),
            What::Tag(tag) => {
                // Both under one state would be one step less; a response is compared with both before it is good.
                let number = enter(Tags::hash_of(tag), scope);
                self.predicates.enter((tags::any_tag(), scope), how, || number)
            }
            What::Group { scheme, authority, name } => {
                let authority = Authority::parse(authority.as_bytes().to_vec().into(), *scheme);
                match authority {
                    Ok(authority) => enter(GroupTag::named(*scheme, &authority, name).hash(), scope),
                    // No response can be in it.
                    Err(_) => next(),
                }
            }
            What::Prefix(path) => match paths::name_of_prefix(path) {
                Some(name) => enter(name, scope),
                None => enter(hosts::everything(), scope),
            },
            What::Host(host) => enter(hosts::name_of(host), scope),
            What::All => enter(hosts::everything(), scope),
            What::Pattern(pattern) => self.predicates.enter_pattern((pattern, scope), how, next),
        }
    }
}
