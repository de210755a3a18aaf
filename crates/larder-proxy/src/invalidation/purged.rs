//! Purges: predicates with a scope, as they are entered, and as journals note them.
//!
//! In: a [`Predicate`] of a purge. Out: the number under which it is entered, and the note that brings it back after a restart. A
//! URL that is purged hard is not entered here: each store knows what it has, and takes it out ([`super::base`]).

use std::sync::Arc;
use std::time::Duration;

use larder_cache::groups::{GroupTag, GroupTags};
use larder_cache::purge::tags::Tags;
use larder_cache::purge::{Mode, Pattern, Predicate, What, written};
use larder_cache::{StoredHead, Verdict};
use larder_http::authority::Authority;
use larder_http::time::WallTime;
use larder_store::{CacheKey, Note};

use super::counter::Invalidations;
use super::effects::How;
use super::kind::{Noted, Subject};
use super::kinds::KINDS;
use super::{hosts, paths, patterns, tags};

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

    /// Whether a predicate that was entered under this number means something still.
    pub(super) fn keeps(&self, predicate: &Predicate, number: u64) -> bool {
        // A note that would be too long names more than what was entered, and is equal to others of that kind.
        let is_wide = matches!(predicate.what, What::All) || predicate.scope.is_any();
        if is_wide && self.predicates.has_up_to(number) {
            return true;
        }
        let scope = Some(&predicate.scope);
        let keeps = |name: u64| self.predicates.keeps(name, scope, number);
        match &predicate.what {
            What::Url { .. } => true,
            What::Target(target) => keeps(paths::name_of_target(target)),
            // All tags share the other name: what a later purge of one entered there is enough.
            What::Tag(tag) => {
                keeps(Tags::hash_of(tag)) || self.predicates.is_last(tags::any_tag(), scope, number)
            }
            What::Group { scheme, authority, name } => {
                let authority = Authority::parse(authority.as_bytes().to_vec().into(), *scheme);
                authority.is_ok_and(|authority| keeps(GroupTag::named(*scheme, &authority, name).hash()))
            }
            What::Prefix(path) => keeps(paths::name_of_prefix(path).unwrap_or_else(hosts::everything)),
            What::Host(host) => keeps(hosts::name_of(host)),
            What::All => keeps(hosts::everything()),
            What::Pattern(pattern) => self.predicates.keeps_pattern(pattern, scope, number),
        }
    }

    fn enter_under(
        &self,
        predicate: &Predicate,
        since: Option<Duration>,
        next: &mut dyn FnMut() -> u64,
    ) -> u64 {
        let (how, scope) = (how(predicate.mode, since), Some(&predicate.scope));
        match Entry::of(&predicate.what) {
            Entry::Base(hash) => self.table.note(hash, how, next),
            Entry::Name(name) => self.predicates.enter((name, scope), how, next),
            Entry::Tag(name) => self.predicates.enter_tag(([name, tags::any_tag()], scope), how, next),
            Entry::Pattern(pattern) => self.predicates.enter_pattern((pattern, scope), how, next),
            Entry::Nothing => next(),
        }
    }
}

/// What a predicate is entered under.
enum Entry<'a> {
    /// The hash of a key's base.
    Base(u64),
    /// The hash of a name.
    Name(u64),
    /// The same, which a response with more tags than are kept has as well.
    Tag(u64),
    Pattern(&'a Arc<Pattern>),
    /// No response has it.
    Nothing,
}

impl<'a> Entry<'a> {
    fn of(what: &'a What) -> Self {
        match what {
            What::Url { authority, target } => Self::Base(CacheKey::new(authority, target).hash()),
            What::Target(target) => Self::Name(paths::name_of_target(target)),
            What::Tag(tag) => Self::Tag(Tags::hash_of(tag)),
            What::Group { scheme, authority, name } => {
                let authority = Authority::parse(authority.as_bytes().to_vec().into(), *scheme);
                match authority {
                    Ok(authority) => Self::Name(GroupTag::named(*scheme, &authority, name).hash()),
                    Err(_) => Self::Nothing,
                }
            }
            What::Prefix(path) => Self::Name(paths::name_of_prefix(path).unwrap_or_else(hosts::everything)),
            What::Host(host) => Self::Name(hosts::name_of(host)),
            What::All => Self::Name(hosts::everything()),
            What::Pattern(pattern) => Self::Pattern(pattern),
        }
    }
}

/// Whether a predicate names what lies under a key; with a `head` also by what only a response has: tags, groups, its media type.
pub(crate) fn concerns(predicate: &Predicate, key: &CacheKey, head: Option<&StoredHead>) -> bool {
    let subject = Subject { key, head };
    let is_named = |wanted: &dyn Fn(u64) -> bool| {
        let mut is_named = false;
        let mut look = |name| is_named |= wanted(name);
        KINDS.iter().for_each(|kind| (kind.names)(&subject, &mut look));
        is_named && predicate.scope.holds(subject.host())
    };
    match Entry::of(&predicate.what) {
        // The scope was asked when the URL was read.
        Entry::Base(hash) => hash == key.hash(),
        Entry::Name(name) => is_named(&|other| other == name),
        Entry::Tag(name) => is_named(&|other| other == name || other == tags::any_tag()),
        Entry::Pattern(pattern) => {
            let needs_head = pattern.text().content_type.is_some() || pattern.text().tags.is_some();
            (head.is_some() || !needs_head)
                && predicate.scope.holds(subject.host())
                && patterns::matches(pattern, &subject)
        }
        Entry::Nothing => false,
    }
}

#[cfg(test)]
mod tests {
    use larder_cache::purge::pattern::Expression;
    use larder_cache::purge::{PatternText, Scope};

    use super::*;

    fn of(what: What) -> Predicate {
        let scope = Arc::new(Scope::of_sites([("a.org", true), ("b.org", false)], false));
        Predicate { what, scope, mode: Mode::Hard }
    }

    fn pattern(text: PatternText) -> What {
        What::Pattern(Arc::new(Pattern::compile(&text).expect("a pattern")))
    }

    #[test]
    fn a_predicate_concerns_what_the_verdict_says_it_ends() {
        let expression = |text: &str| Some(Expression { text: text.into(), at_start: false });
        let group = |name: &str| What::Group {
            scheme: larder_http::message::Scheme::Http,
            authority: "example.com".into(),
            name: name.into(),
        };
        let many = vec!["t"; 1001].join(" ");
        let all = [
            What::Url { authority: "a.org".into(), target: "/img/x".into() },
            What::Target("/img/x".into()),
            What::Tag(b"t".as_slice().into()),
            What::Tag(b"u".as_slice().into()),
            group("g"),
            group("h"),
            What::Prefix("/img/".into()),
            What::Prefix("/im/".into()),
            What::Host("a.org".into()),
            What::Host("b.org".into()),
            What::All,
            pattern(PatternText { target: expression("^/img"), ..PatternText::default() }),
            pattern(PatternText { tags: expression("^t$"), ..PatternText::default() }),
            pattern(PatternText { content_type: expression("html"), ..PatternText::default() }),
        ];
        let heads = [
            crate::testing::stored_head("/img/x", &[]),
            crate::testing::stored_head("/img/x", &[("surrogate-key", "s t"), ("content-type", "text/html")]),
            crate::testing::stored_head("/img/x", &[("surrogate-key", &many)]),
            crate::testing::stored_head("/img/x", &[("cache-groups", "\"g\"")]),
        ];
        for what in all {
            let predicate = of(what);
            let invalidations = Invalidations::default();
            invalidations.enter(&predicate, None);
            for (host, target) in
                [("a.org", "/img/x"), ("a.org:81", "/img/x"), ("b.org", "/img/x"), ("a.org", "/y")]
            {
                let key = CacheKey::new(host, target);
                for head in &heads {
                    let is_ended = invalidations.verdict_of(&key, head, 0) != Verdict::Good;
                    assert_eq!(
                        concerns(&predicate, &key, Some(head)),
                        is_ended,
                        "{predicate:?} {host}{target}"
                    );
                }
                let every = heads.iter().all(|head| concerns(&predicate, &key, Some(head)));
                assert!(every || !concerns(&predicate, &key, None), "{predicate:?} {host}{target}");
            }
        }
    }
}
