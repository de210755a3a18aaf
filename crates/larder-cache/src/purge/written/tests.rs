//! What is read again is what was written, or names more.

use proptest::prelude::*;

use super::*;

fn expression(text: &str) -> Option<Expression> {
    Some(Expression { text: text.into(), at_start: false })
}

fn pattern(text: &PatternText) -> What {
    What::Pattern(Arc::new(Pattern::compile(text).expect("an expression")))
}

fn hard(what: What, scope: Scope) -> Predicate {
    Predicate { what, scope: Arc::new(scope), mode: Mode::Hard }
}

#[test]
fn the_bytes_of_a_note_stay_what_they_are() {
    let scope = Scope::of_sites([("a.org", true)], false);
    let what = What::Url { authority: "a.org".into(), target: "/b".into() };
    let note = to_note(&hard(what, scope.clone()));
    assert_eq!(note, b"p\x01h\x09\0\0\0+a.org -*\x01\x05\0\0\0a.org\x02\0\0\0/b");
    let text = PatternText { target: expression("a"), ..PatternText::default() };
    let note = to_note(&Predicate { mode: Mode::Soft, ..hard(pattern(&text), scope) });
    assert_eq!(note, b"p\x01s\x09\0\0\0+a.org -*\x08\x00\x01\x01\0\0\0a\x00\x00");
    assert_eq!(to_note(&hard(What::All, Scope::any())), b"p\x01h\x02\0\0\0+*\x07");
}

#[test]
fn what_is_too_long_names_more() {
    let small = Scope::of_sites([("a.org", true)], false);
    let names: Vec<String> = (0..1000).map(|number| format!("host-{number}.example.org")).collect();
    let large = Scope::of_sites(names.iter().map(|name| (&**name, true)), false);
    let middle = Scope::of_sites(names[..300].iter().map(|name| (&**name, true)), false);
    assert!(middle.to_text().len() * 2 < NOTE_BYTES_MAX && large.to_text().len() > NOTE_BYTES_MAX);
    let tag = What::Tag(Box::from(&b"a"[..]));
    let (long, most) = (What::Target("a".repeat(NOTE_BYTES_MAX).into()), NOTE_BYTES_MAX - 100);
    let longish = What::Target("a".repeat(most).into());
    for (what, scope, expected) in [
        (&longish, &small, (&longish, &small)),
        (&tag, &middle, (&tag, &middle)),
        (&tag, &large, (&tag, &Scope::any())),
        (&longish, &middle, (&longish, &Scope::any())),
        (&long, &middle, (&What::All, &middle)),
        (&long, &large, (&What::All, &Scope::any())),
    ] {
        let note = to_note(&hard(what.clone(), scope.clone()));
        assert!(note.len() <= NOTE_BYTES_MAX);
        let (what, scope) = expected;
        assert_eq!(from_note(&note), Some(hard(what.clone(), scope.clone())));
    }
}

#[test]
fn what_this_version_did_not_write_is_none() {
    let note = to_note(&hard(What::Tag(Box::from(&b"a"[..])), Scope::any()));
    for length in 0..note.len() {
        assert_eq!(from_note(&note[..length]), None, "{length}");
    }
    assert_eq!(from_note(&[&note[..], b"x"].concat()), None);
    for (at, to) in [(0, b'g'), (1, 2), (2, b'x'), (7, b'x'), (9, 0), (9, 9)] {
        let mut other = note.clone();
        other[at] = to;
        assert_eq!(from_note(&other), None, "{at}");
    }
    let text = PatternText { target: expression("ab"), ..PatternText::default() };
    let mut note = to_note(&hard(pattern(&text), Scope::any()));
    let last = note.len() - 4;
    assert_eq!(&note[last..=last + 1], b"ab");
    note[last] = b'(';
    assert_eq!(from_note(&note), None, "no expression");
    let long = [&b"p\x01h\x02\0\0\0+*\x02\0\x40\0\0"[..], &[b'a'; NOTE_BYTES_MAX]].concat();
    assert_eq!(from_note(&long), None, "longer than a note");
}

fn what() -> impl Strategy<Value = What> {
    let word = || "[ -~é]{0,20}".prop_map(Box::<str>::from);
    let expression = || {
        let piece = proptest::sample::select(vec!["a", "(b|.*)", "^/", r"\.", "é", r"\<x", "("]);
        let text = proptest::collection::vec(piece, 0..4).prop_map(|pieces| Box::from(pieces.concat()));
        let parts = (text, any::<bool>());
        let expression = parts.prop_map(|(text, at_start)| Expression { text, at_start });
        proptest::option::of(expression)
    };
    let text = (expression(), expression(), expression(), expression());
    let text =
        text.prop_map(|(host, target, content_type, tags)| PatternText { host, target, content_type, tags });
    prop_oneof![
        (word(), word()).prop_map(|(authority, target)| What::Url { authority, target }),
        word().prop_map(What::Target),
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(|tag| What::Tag(tag.into())),
        (any::<bool>(), word(), word()).prop_map(|(is_tls, authority, name)| What::Group {
            scheme: if is_tls { Scheme::Https } else { Scheme::Http },
            authority,
            name
        }),
        word().prop_map(What::Prefix),
        word().prop_map(What::Host),
        Just(What::All),
        text.prop_filter_map("no expression", |text| {
            Pattern::compile(&text).ok().map(|pattern| What::Pattern(Arc::new(pattern)))
        }),
    ]
}

proptest! {
    #[test]
    fn a_predicate_is_the_same_again_from_its_note(
        what in what(),
        hosts in proptest::collection::vec(("(\\*\\.)?[ab]\\.[ab]", any::<bool>()), 0..4),
        otherwise: bool,
        is_soft: bool,
    ) {
        let scope = Scope::of_sites(hosts.iter().map(|(host, is_in)| (&**host, *is_in)), otherwise);
        let mode = if is_soft { Mode::Soft } else { Mode::Hard };
        let predicate = Predicate { what, scope: Arc::new(scope), mode };
        let note = to_note(&predicate);
        prop_assert_eq!(note[0], PURGE);
        let again = from_note(&note);
        prop_assert_eq!(again.as_ref(), Some(&predicate));
        prop_assert_eq!(again.map(|again| to_note(&again)), Some(note));
    }

    #[test]
    fn no_bytes_panic(
        what in what(),
        mut changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..4),
        noise in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let _ = from_note(&noise);
        let mut note = to_note(&hard(what, Scope::any()));
        let length = note.len();
        for (at, to) in changes.drain(..) {
            note[usize::from(at) % length] = to;
        }
        if let Some(read) = from_note(&note) {
            prop_assert_eq!(from_note(&to_note(&read)), Some(read));
        }
    }
}
