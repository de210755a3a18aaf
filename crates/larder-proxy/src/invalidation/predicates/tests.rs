//! What predicates mean for responses, what a response remembers, and the bounds.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use larder_cache::StoredHead;
use larder_cache::purge::{Expression, Mode, PatternText, Predicate, What};
use larder_store::CacheKey;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::invalidation::Invalidations;
use crate::invalidation::sync::Judged;
use crate::testing::stored_head;

fn any() -> Arc<Scope> {
    Arc::new(Scope::any())
}

fn purge(invalidations: &Invalidations, what: What, scope: &Arc<Scope>) -> u64 {
    invalidations.enter(&Predicate { what, scope: Arc::clone(scope), mode: Mode::Hard }, None)
}

/// Of a response that was fetched before everything.
fn verdict(invalidations: &Invalidations, host: &str, target: &'static str, head: &StoredHead) -> Verdict {
    invalidations.verdict_of(&CacheKey::new(host, target), head, 0)
}

#[track_caller]
fn check(what: What, gone: &[(&str, &'static str)], good: &[(&str, &'static str)]) {
    let invalidations = Invalidations::default();
    let head = |target| stored_head(target, &[("surrogate-key", "a b"), ("content-type", "text/css")]);
    assert_eq!(verdict(&invalidations, "a.org", "/", &head("/")), Verdict::Good);
    let number = purge(&invalidations, what, &any());
    for (host, target) in gone {
        assert_eq!(verdict(&invalidations, host, target, &head(target)), Verdict::Gone, "{host}{target}");
        let key = CacheKey::new(host, target);
        assert_eq!(invalidations.verdict_of(&key, &head(target), number), Verdict::Good, "it is newer");
    }
    for (host, target) in good {
        assert_eq!(verdict(&invalidations, host, target, &head(target)), Verdict::Good, "{host}{target}");
    }
}

#[test]
fn a_purge_is_entered_in_one_step() {
    let invalidations = Invalidations::default();
    for what in [What::Tag(b"a".as_slice().into()), What::Host("a.org".into())] {
        let before = invalidations.state();
        purge(&invalidations, what, &any());
        assert_eq!(invalidations.state(), before + 1);
    }
}

#[test]
fn purges_of_tags_and_of_other_names_hold_whichever_came_last() {
    let (tag, host) = (|| What::Tag(b"a".as_slice().into()), || What::Host("a.org".into()));
    let tagged = stored_head("/", &[("surrogate-key", "a b")]);
    for others in [[tag(), host()], [host(), tag()]] {
        let invalidations = Invalidations::default();
        let [first, last] = others.map(|what| purge(&invalidations, what, &any()));
        let after = |host, number| invalidations.verdict_of(&CacheKey::new(host, "/"), &tagged, number);
        assert_eq!(after("a.org", 0), Verdict::Gone, "by both");
        assert_eq!(after("a.org", first), Verdict::Gone, "by the last");
        assert_eq!(after("a.org", last), Verdict::Good);
        assert_eq!(after("b.org", 0), Verdict::Gone, "by its tag");
        let plain = stored_head("/", &[]);
        let (here, elsewhere) = (CacheKey::new("a.org", "/"), CacheKey::new("b.org", "/"));
        assert_eq!(invalidations.verdict_of(&here, &plain, 0), Verdict::Gone, "by its host");
        assert_eq!(invalidations.verdict_of(&elsewhere, &plain, 0), Verdict::Good);
    }
}

#[test]
fn each_kind_names_what_it_says() {
    let everywhere = [("a.org", "/"), ("b.org:8080", "/x?y")];
    check(What::All, &everywhere, &[]);
    check(What::Tag(b"b".as_slice().into()), &everywhere, &[]);
    check(What::Tag(b"B".as_slice().into()), &[], &everywhere);
    check(
        What::Host("b.org".into()),
        &[("b.org:8080", "/x?y"), ("b.org", "/")],
        &[("a.org", "/"), ("x.b.org", "/")],
    );
    check(
        What::Target("/x?y".into()),
        &[("a.org", "/x?y"), ("b.org", "/x?y")],
        &[("a.org", "/x"), ("a.org", "/x?z")],
    );
    check(
        What::Prefix("/x/".into()),
        &[("a.org", "/x/"), ("a.org", "/x/y/z?q"), ("a.org", "/a/../x/y"), ("a.org", "/%78/y")],
        &[("a.org", "/x"), ("a.org", "/xy/"), ("a.org", "/y/x/")],
    );
    check(
        What::Url { authority: "a.org".into(), target: "/x".into() },
        &[("a.org", "/x")],
        &[("a.org", "/x?"), ("a.org:81", "/x"), ("b.org", "/x")],
    );
}

#[test]
fn a_pattern_matches_host_target_type_and_tags_together() {
    let text = |host: &str, target: &str, tags: &str| {
        let expression = |text: &str| Some(Expression { text: text.into(), at_start: false });
        let text = PatternText {
            host: expression(host),
            target: expression(target),
            content_type: expression("^text/"),
            tags: expression(tags),
        };
        What::Pattern(Arc::new(Pattern::compile(&text).unwrap()))
    };
    check(text("^a", "css$", "(^|,)b"), &[("a.org", "/x.css")], &[("b.org", "/x.css"), ("a.org", "/x.js")]);
    check(text(".", ".", "^b$"), &[], &[("a.org", "/")]);
}

#[test]
fn a_response_with_too_many_tags_goes_with_any_of_them() {
    let many: Vec<String> = (0..1001).map(|number| format!("t{number}")).collect();
    let head = stored_head("/", &[("surrogate-key", &many.join(" "))]);
    let invalidations = Invalidations::default();
    purge(&invalidations, What::Tag(b"other".as_slice().into()), &any());
    assert_eq!(verdict(&invalidations, "a.org", "/", &head), Verdict::Gone);
}

/// Fields that carry tags where the config says nothing.
const FIELDS: [&str; 4] = ["surrogate-key", "cache-tag", "x-cache-tags", "xkey"];

proptest! {
    #[test]
    fn no_tag_that_a_response_names_is_missed_and_no_other_is_meant(
        lines in vec((0..FIELDS.len(), vec(("[a-cA-C:/]{1,3}", "[ ,\t]{1,2}"), 0..6)), 1..6),
        fillers in prop_oneof![Just(0_usize), 900..1100_usize],
        long in prop_oneof![Just(0_usize), 1000..1050_usize],
        chosen: proptest::sample::Index,
    ) {
        let mut named: Vec<String> = vec!["l".repeat(long)];
        named.retain(|tag| !tag.is_empty());
        let mut said: Vec<(&'static str, String)> = Vec::new();
        for (field, tags) in &lines {
            let value = tags.iter().map(|(tag, separator)| format!("{separator}{tag}{separator}"));
            said.push((FIELDS[*field], value.collect()));
            named.extend(tags.iter().map(|(tag, _)| tag.clone()));
        }
        said.push((FIELDS[0], format!("{},{}", (0..fillers).map(|n| format!("f{n} ")).collect::<String>(), "l".repeat(long))));
        let said: Vec<(&'static str, &str)> = said.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let head = stored_head("/", &said);
        let is_over = head.tags.as_ref().is_some_and(|tags| tags.carries_every());
        let count = named.iter().collect::<BTreeSet<_>>().len() + fillers;
        prop_assert!(is_over == (count > 1000 || long > 1024) || count.abs_diff(1000) < 40, "{count} {long}");
        let other = Invalidations::default();
        purge(&other, What::Tag(b"other".as_slice().into()), &any());
        let of_other = if is_over { Verdict::Gone } else { Verdict::Good };
        prop_assert_eq!(verdict(&other, "a.org", "/", &head), of_other);
        if !named.is_empty() {
            let invalidations = Invalidations::default();
            let tag = chosen.get(&named).as_bytes();
            purge(&invalidations, What::Tag(tag.into()), &any());
            prop_assert_eq!(verdict(&invalidations, "a.org", "/", &head), Verdict::Gone);
        }
    }
}

/// What befalls a larder: purges of a tag, of many other tags, of a host, a floor; and a look at one of three responses.
#[derive(Clone, Debug)]
enum Event {
    Tag(u8),
    Others(usize),
    Host(u8),
    Floor,
    Look(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..6_u8).prop_map(Event::Tag),
        2 => prop_oneof![0..40_usize, 900..1200_usize].prop_map(Event::Others),
        1 => (0..3_u8).prop_map(Event::Host),
        1 => Just(Event::Floor),
        12 => (0..3_usize).prop_map(Event::Look),
    ]
}

proptest! {
    /// Where a purge names it, a response is stored anew by its next look.
    #[test]
    fn what_a_response_remembers_changes_no_verdict(events in vec(event(), 1..40)) {
        let invalidations = Invalidations::default();
        let many: String = (0..1001).map(|number| format!("m{number} ")).collect();
        let responses = [("h0.org", "t0 t1 t2"), ("h1.org", ""), ("h9.org", many.as_str())]
            .map(|(host, tags)| (CacheKey::new(host, "/"), stored_head("/", &[("surrogate-key", tags)])));
        let mut remembered: [(Judged, u64); 3] = Default::default();
        let tag = |name: String| purge(&invalidations, What::Tag(name.as_bytes().into()), &any());
        for event in events {
            match event {
                Event::Tag(number) => _ = tag(format!("t{number}")),
                Event::Others(count) => (0..count).for_each(|number| _ = tag(format!("other-{number}"))),
                Event::Host(number) => {
                    purge(&invalidations, What::Host(format!("h{number}.org").into()), &any());
                }
                Event::Floor => invalidations.predicates.raise_floor(invalidations.current()),
                Event::Look(which) => {
                    let ((key, head), (judged, number)) = (&responses[which], &mut remembered[which]);
                    let subject = Subject { key, head: Some(head) };
                    let found = invalidations.look_closer(judged, &subject, (*number, invalidations.forgotten()));
                    let expected = invalidations.verdict_of(key, head, *number);
                    prop_assert_eq!(found, Some(expected));
                    if expected != Verdict::Good {
                        (*judged, *number) = (Judged::default(), invalidations.current());
                    }
                }
            }
        }
    }
}

#[test]
fn a_scope_keeps_it_from_the_hosts_of_others() {
    let invalidations = Invalidations::default();
    let scope = Arc::new(Scope::of_sites([("*.a.org", true), ("www.a.org", false)], false));
    let head = stored_head("/", &[("surrogate-key", "t")]);
    purge(&invalidations, What::Tag(b"t".as_slice().into()), &scope);
    let of = |host: &str| verdict(&invalidations, host, "/", &head);
    assert_eq!([of("x.a.org"), of("www.a.org"), of("b.org")], [Verdict::Gone, Verdict::Good, Verdict::Good]);
    assert_eq!(of("[::1]:8080"), Verdict::Good);
}

#[test]
fn beyond_the_bound_the_oldest_is_not_proven_any_more() {
    let invalidations = Invalidations::default();
    let head = stored_head("/", &[]);
    for number in 0..EXACT_MAX + 10 {
        purge(&invalidations, What::Host(format!("h{number}.org").into()), &any());
    }
    assert_eq!(invalidations.predicate_counts().names, EXACT_MAX as u64);
    assert_eq!(verdict(&invalidations, "other.org", "/", &head), Verdict::Unproven);
    let of = |number| invalidations.verdict_of(&CacheKey::new("other.org", "/"), &head, number);
    assert_eq!([of(9), of(10)], [Verdict::Unproven, Verdict::Good]);
    assert_eq!(verdict(&invalidations, "h11.org", "/", &head), Verdict::Gone);
}

#[test]
fn equal_patterns_are_one_and_the_oldest_of_too_many_goes() {
    let invalidations = Invalidations::default();
    let pattern = |number: usize| {
        let expression = Expression { text: format!("x{number}$").into(), at_start: false };
        let text = PatternText { target: Some(expression), ..PatternText::default() };
        What::Pattern(Arc::new(Pattern::compile(&text).unwrap()))
    };
    for _ in 0..3 {
        purge(&invalidations, pattern(0), &any());
    }
    assert_eq!(invalidations.predicate_counts().patterns, 1);
    (1..=PATTERNS_MAX).for_each(|number| {
        purge(&invalidations, pattern(number), &any());
    });
    let counts = invalidations.predicate_counts();
    assert_eq!((counts.patterns, counts.raised), (PATTERNS_MAX as u64, 1));
    assert_eq!(verdict(&invalidations, "a.org", "/y", &stored_head("/y", &[])), Verdict::Unproven);
}

/// Purges and looks on threads of their own: what is purged is never good to a look that begins afterwards, whatever the
/// response remembers.
#[test]
fn what_a_response_remembers_never_hides_a_purge() {
    let invalidations = Invalidations::default();
    let memory = larder_store::Store::in_memory(&larder_store::MemoryStoreSettings {
        memory: 1 << 20,
        max_object: 1 << 10,
    });
    let key = CacheKey::new("a.org", "/");
    let acknowledged = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..20_000 {
                let tag = if number % 2 == 0 { &b"mine"[..] } else { b"other" };
                let taken = purge(&invalidations, What::Tag(tag.into()), &any());
                if number % 2 == 0 {
                    acknowledged.store(taken, Ordering::SeqCst);
                }
            }
            acknowledged.store(u64::MAX, Ordering::SeqCst);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let room = memory.reserve_free(0).unwrap();
                    let head = Arc::new(stored_head("/", &[("surrogate-key", "mine")]));
                    let body =
                        Arc::new(larder_store::StoredBody::new(Vec::new(), memory.reserve_free(0).unwrap()));
                    let number = invalidations.current();
                    let stored = larder_store::StoredResponse::new(head, body, number, room);
                    for _ in 0..50 {
                        let purged = acknowledged.load(Ordering::SeqCst);
                        if purged == u64::MAX {
                            return;
                        }
                        let verdict = invalidations.verdict(&key, &stored, invalidations.forgotten());
                        assert!(
                            purged <= number || verdict == Some(Verdict::Gone),
                            "{number} {purged} {verdict:?}"
                        );
                    }
                }
            });
        }
    });
}
