//! What selects a stored response, and what takes its place.
#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;
use crate::example::fields;

/// A word that is no registered coding: what was asked for is compared as it is.
fn own_coding() -> Codings {
    Codings::of(&fields(&[("content-encoding", "own")]))
}

fn check(vary: &str, made: &[(&str, &str)], asked: &[(&str, &str)], expected: bool) {
    let names = VaryNames::of(&fields(&[("vary", vary)])).unwrap();
    let (made, asked) = (fields(made), fields(asked));
    let selecting = Selecting::new(names.clone(), &made, None, own_coding());
    assert_eq!(selecting.selects(&asked), expected, "vary {vary}: {made:?} {asked:?}");
    assert_eq!(names.secondary(&made) == names.secondary(&asked), expected, "the keys say the same");
}

#[test]
fn values_are_told_in_words() {
    let names = VaryNames::of(&fields(&[("vary", "accept-language, foo, x-b, x-c")])).unwrap();
    let made = [("accept-language", "en;q=0.5, DE"), ("foo", "1 ,  2"), ("x-c", "")];
    let told = Selecting::new(names, &fields(&made), None, own_coding()).told();
    let told: Vec<_> = told.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
    let expected =
        [("accept-language", Some("de, en;q=0.500")), ("foo", Some("1,2")), ("x-b", None), ("x-c", Some(""))];
    assert_eq!(told, expected);
    assert!(Selecting::default().told().is_empty());
}

#[test]
fn all_named_fields_must_match_and_absent_matches_absent_only() {
    check("", &[("foo", "1")], &[("foo", "2")], true);
    check("foo", &[("foo", "1")], &[("foo", "1"), ("bar", "2")], true);
    check("foo", &[("foo", "1")], &[("foo", "2")], false);
    check("foo", &[("foo", "1")], &[], false);
    check("foo", &[], &[("foo", "1")], false);
    check("foo", &[], &[("foo", "")], false);
    check("foo", &[], &[], true);
    check("foo, bar", &[("foo", "1"), ("bar", "2")], &[("bar", "2"), ("foo", "1")], true);
    check("foo, bar", &[("foo", "1"), ("bar", "2")], &[("bar", "1"), ("foo", "2")], false);
    check("foo, bar", &[("foo", "12")], &[("foo", "1"), ("bar", "2")], false);
    check("foo", &[("foo", "1")], &[("foo", "11")], false);
    check("foo", &[("foo", "11")], &[("foo", "1")], false);
    check("foo", &[("foo", "a")], &[("foo", "A")], false);
}

#[test]
fn joined_lines_and_blanks_around_commas_do_not_matter() {
    check("foo", &[("foo", "1, 2")], &[("foo", "1"), ("foo", "2")], true);
    check("foo", &[("foo", "1 ,\t2")], &[("foo", "1,2")], true);
    check("foo", &[("foo", "1 2")], &[("foo", "1  2")], false);
    check("foo", &[("foo", "\"1, 2\"")], &[("foo", "\"1,2\"")], false);
    check("foo", &[("foo", "\"1\\\", 2\"")], &[("foo", "\"1\\\",2\"")], false);
    check("foo", &[("foo", "2, 1")], &[("foo", "1, 2")], false);
    check("foo", &[("foo", "1, 2")], &[("foo", "12")], false);
}

#[test]
fn preferences_are_the_same_in_any_order_case_and_spelling() {
    let languages = |made: &str, asked: &str, expected: bool| {
        check("accept-language", &[("accept-language", made)], &[("accept-language", asked)], expected);
    };
    languages("en, de", "de, en", true);
    languages("en, de", "EN,De", true);
    languages("en-GB;q=0.5, de", "de;q=1.000,en-gb ; q=0.50", true);
    languages("en, de", "en, de;q=0.9", false);
    languages("en, de", "en", false);
    languages("en;q=0.9", "en;q=0.90", true);
    languages("en", "en, en", false);
    languages("en;q=2, de", "de, en;q=2", false);
    languages("en;q=2,de", "en;q=2, de", true);
    languages("en;q=2", "en;Q=2", false);
    let long = "a".repeat(70);
    languages(&long, &long.to_uppercase(), true);
    languages(&long, &"a".repeat(71), false);
    let many = |reverse: bool| {
        let mut tags: Vec<String> = (0..40).map(|n| format!("x{n}")).collect();
        if reverse {
            tags.reverse();
        }
        tags.join(",")
    };
    languages(&many(false), &many(false), true);
    // Too many to be put in order.
    languages(&many(false), &many(true), false);
    let codings = |made: &str, asked: &str, expected: bool| {
        check("accept-encoding", &[("accept-encoding", made)], &[("accept-encoding", asked)], expected);
    };
    codings("br, gzip", "X-GZIP, br", true);
    codings("identity, x-gzip", "gzip, identity", true);
    codings("gzip;q=0", "gzip", false);
    codings("", "", true);
    check("accept-encoding", &[("accept-encoding", "")], &[], false);
    check(
        "accept-language",
        &[("accept-language", "en"), ("accept-language", "de")],
        &[("accept-language", "de,en")],
        true,
    );
    check("accept", &[("accept", "a/b, c/d")], &[("accept", "c/d, a/b")], false);
}

#[test]
fn the_preferred_language_selects_where_that_is_asked_for() {
    let check = |language: &'static str, made: &[(&str, &str)], asked: &[(&str, &str)], expected: bool| {
        let names = VaryNames::of(&fields(&[("vary", "accept-language, foo")])).unwrap();
        let (made, asked) = (fields(made), fields(asked));
        let language = HeaderValue::from_static(language);
        let selecting = Selecting::new(names.clone(), &made, Some(&language), own_coding());
        assert!(selecting.selects(&made));
        assert_eq!(selecting.selects(&asked), expected, "{language:?}: {made:?} {asked:?}");
    };
    let made = [("accept-language", "en, de"), ("foo", "1")];
    let asked = |languages| [("accept-language", languages), ("foo", "1")];
    for (language, languages, expected) in [
        ("de", "fr;q=0.5, de;q=1.0", true),
        ("DE", "fr;q=0.5, de", true),
        (" de ", "de", true),
        ("de", "fr, de", false),
        ("de", "fr, de;q=0.9", false),
        ("de", "de-CH", false),
        ("de-CH", "de", false),
        ("de", "*", false),
        ("*", "*", false),
        ("de, en", "de", false),
        ("", "de", false),
        ("de", "de;q=0", false),
        ("de", "de;level=1", false),
        ("fr", "de, en", true),
    ] {
        check(language, &made, &asked(languages), expected);
    }
    check("de", &made, &[("accept-language", "de"), ("foo", "2")], false);
    check("de", &made, &[("accept-language", "de")], false);
    check("de", &made, &[("foo", "1")], false);
    check("de", &[("foo", "1")], &asked("de"), true);
    let elsewhere = VaryNames::of(&fields(&[("vary", "foo")])).unwrap();
    let language = HeaderValue::from_static("de");
    let selecting = Selecting::new(elsewhere, &fields(&made), Some(&language), own_coding());
    assert!(!selecting.selects(&fields(&[("accept-language", "de"), ("foo", "2")])));
}

#[test]
fn star_selects_nothing() {
    assert_eq!(VaryNames::of(&fields(&[("vary", ""), ("vary", "foo, *")])), None);
}

proptest! {
    #[test]
    fn selecting_and_keys_agree(
        made in proptest::collection::vec(("[abc]", "[ab\", \\\\]{0,4}"), 0..4),
        asked in proptest::collection::vec(("[abc]", "[ab\", \\\\]{0,4}"), 0..4),
    ) {
        let map = |lines: &[(String, String)]| {
            fields(&lines.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect::<Vec<_>>())
        };
        let (made, asked) = (map(&made), map(&asked));
        let names = VaryNames::of(&fields(&[("vary", "a, b")])).unwrap();
        let selecting = Selecting::new(names.clone(), &made, None, own_coding());
        prop_assert!(selecting.selects(&made));
        prop_assert_eq!(selecting.selects(&asked), names.secondary(&made) == names.secondary(&asked));
    }

    #[test]
    fn preferences_and_keys_agree(
        made in "((en|EN|de|x-gzip|gzip)(;q=(0|0[.]5|0[.]50|1|2))?, ?){0,3}",
        asked in "((en|EN|de|x-gzip|gzip)(;q=(0|0[.]5|0[.]50|1|2))?, ?){0,3}",
    ) {
        let names = VaryNames::of(&fields(&[("vary", "accept-encoding, accept-language")])).unwrap();
        let map = |value: &str| fields(&[("accept-encoding", value), ("accept-language", value)]);
        let (made, asked) = (map(made.trim()), map(asked.trim()));
        let selecting = Selecting::new(names.clone(), &made, None, own_coding());
        prop_assert!(selecting.selects(&made));
        prop_assert_eq!(selecting.selects(&asked), names.secondary(&made) == names.secondary(&asked));
        for name in names.names() {
            let read = |fields| Preferences::read(fields, name);
            if let (Some(a), Some(b)) = (read(&made), read(&asked)) {
                let same = VaryNames(Arc::from([name.clone()]));
                prop_assert_eq!(a == b, same.secondary(&made) == same.secondary(&asked));
            }
        }
    }
}

/// A response with `coding` that was made for a request with `made` in Accept-Encoding.
fn coded(vary: &str, coding: &str, made: Option<&str>) -> Selecting {
    let names = VaryNames::of(&fields(&[("vary", vary)])).unwrap();
    let codings = Codings::of(&fields(&[("content-encoding", coding)]));
    Selecting::new(names, &asking(made), None, codings)
}

fn asking(accepted: Option<&str>) -> HeaderMap {
    accepted.map_or_else(HeaderMap::new, |accepted| fields(&[("accept-encoding", accepted)]))
}

#[test]
fn a_coding_is_for_those_who_take_it_whatever_vary_says() {
    for vary in ["", "accept-encoding", "origin"] {
        let gzip = coded(vary, "gzip", Some("gzip, br"));
        for (accepted, expected) in [
            (Some("gzip, br"), true),
            (Some("gzip"), true),
            (Some("x-gzip;q=0.001"), true),
            (Some("deflate, gzip, zstd"), true),
            (Some("br"), false),
            (Some("gzip;q=0"), false),
            (Some("*"), false),
            (Some("identity"), false),
            (Some(""), false),
            (None, false),
        ] {
            assert_eq!(gzip.selects(&asking(accepted)), expected, "{vary}: {accepted:?}");
            assert_eq!(gzip.suits(&asking(accepted)), expected, "{vary}: {accepted:?}");
            assert_eq!(gzip.lacks_its_coding(&asking(accepted)), !expected, "{vary}: {accepted:?}");
        }
    }
    let elsewhere = coded("foo", "gzip", Some("gzip"));
    let asked = fields(&[("accept-encoding", "gzip, br"), ("foo", "1")]);
    assert!(!elsewhere.selects(&asked) && elsewhere.suits(&asked) && !elsewhere.lacks_its_coding(&asked));
}

#[test]
fn a_coding_that_those_who_take_none_were_given_is_for_all_of_them() {
    let given = coded("", "gzip", None);
    for (accepted, expected) in
        [(None, true), (Some(""), true), (Some("identity"), true), (Some("gzip"), true), (Some("br"), false)]
    {
        assert_eq!(given.selects(&asking(accepted)), expected, "{accepted:?}");
    }
}

#[test]
fn plain_content_is_for_those_who_take_no_coding_or_were_given_it() {
    let check = |vary: &str, made: Option<&str>, asked: Option<&str>, expected: bool| {
        assert_eq!(coded(vary, "", made).selects(&asking(asked)), expected, "{vary}: {made:?} {asked:?}");
    };
    check("", None, Some("gzip"), true);
    check("accept-encoding", None, Some("gzip"), false);
    check("accept-encoding", None, Some("identity"), true);
    check("accept-encoding", Some("gzip"), Some("br, gzip"), true);
    check("accept-encoding", Some("gzip"), None, true);
    check("accept-encoding", Some("br"), Some("gzip"), false);
}

#[test]
fn the_best_fit_is_what_was_given_for_the_same_then_the_more_welcome_coding() {
    let (gzip, br) = (coded("", "gzip", Some("gzip")), coded("", "br", Some("br")));
    let (plain, varying) = (coded("", "", None), coded("accept-encoding", "", Some("gzip")));
    let fit = |of: &Selecting, accepted: &str| of.fit(&asking(Some(accepted)));
    assert!(fit(&gzip, "gzip") > fit(&br, "gzip, br"));
    assert!(fit(&gzip, "gzip, br") < fit(&br, "gzip, br"));
    assert!(fit(&gzip, "gzip, br;q=0.9") > fit(&br, "gzip, br;q=0.9"));
    assert!(fit(&gzip, "gzip;q=0.1") > fit(&plain, "gzip;q=0.1"));
    assert!(fit(&gzip, "gzip, zstd") > fit(&varying, "gzip, zstd"));
    assert!(fit(&gzip, "gzip").map(|fit| fit.where_fresh(true)) == Some(Fit::BEST));
    let at = |fit: Option<Fit>, is_fresh| fit.map(|fit| fit.where_fresh(is_fresh));
    assert!(at(fit(&plain, "gzip"), true) > at(fit(&gzip, "gzip"), false));
    assert_eq!(at(fit(&br, "gzip, br"), false), at(fit(&gzip, "gzip, br"), false));
    assert!(at(fit(&br, "gzip;q=0.5, br"), false) > at(fit(&gzip, "gzip;q=0.5, br"), false));
}

#[test]
fn an_answer_replaces_what_its_request_would_be_given_before_it() {
    let check = |new: &Selecting, old: &Selecting, asked: Option<&str>, expected: bool| {
        assert_eq!(new.replaces(old, &asking(asked)), expected, "{new:?} {old:?} {asked:?}");
    };
    let (all, gzip, plain) = (Some("gzip, br"), Some("gzip"), coded("", "", None));
    check(&coded("", "gzip", all), &coded("", "gzip", gzip), all, true);
    check(&coded("", "gzip", gzip), &coded("", "gzip", all), gzip, true);
    check(&coded("", "br", all), &coded("", "gzip", gzip), all, false);
    check(&coded("", "br", all), &coded("", "gzip", all), all, true);
    check(&coded("", "gzip", gzip), &plain, gzip, false);
    check(&coded("", "", gzip), &coded("", "gzip", all), gzip, true);
    check(&coded("accept-encoding", "", gzip), &coded("", "gzip", all), gzip, true);
    check(&coded("", "", None), &coded("", "gzip", all), None, false);
    check(&coded("", "gzip", gzip), &coded("", "gzip", None), gzip, false);
    check(&coded("", "gzip", None), &coded("", "gzip", None), None, true);
    check(&coded("", "", None), &coded("", "gzip", None), None, true);
    check(&coded("", "", all), &plain, all, true);
}

#[test]
fn a_store_that_keeps_one_of_each_keeps_one_of_each_coding() {
    let identity = |of: &Selecting| {
        let mut identity = Vec::new();
        of.identity(|part| identity.extend_from_slice(part));
        identity
    };
    let same = |one: &Selecting, other: &Selecting| identity(one) == identity(other);
    let all = Some("gzip, br");
    assert!(same(&coded("", "gzip", all), &coded("accept-encoding", "gzip", Some("gzip"))));
    assert!(!same(&coded("", "gzip", all), &coded("", "gzip", None)));
    assert!(!same(&coded("", "gzip", all), &coded("", "br", all)));
    assert!(same(&coded("accept-encoding", "", all), &coded("accept-encoding", "", Some("gzip"))));
    assert!(!same(&coded("accept-encoding", "", all), &coded("accept-encoding", "", None)));
    let own = |made: &str| coded("accept-encoding", "own", Some(made));
    assert!(!same(&own("gzip"), &own("br")));
    let names = VaryNames::of(&fields(&[("vary", "foo, bar")])).unwrap();
    let plain = Selecting::new(names, &fields(&[("foo", "1")]), None, Codings::default());
    let as_ever = [b"bar\0foo\0".as_slice(), plain.key().as_bytes()].concat();
    assert_eq!(identity(&plain), as_ever, "what disks hold is found again");
}

#[test]
fn a_confirmed_response_answers_whoever_it_answered_before() {
    let (before, request) = (coded("", "gzip", None), asking(Some("gzip")));
    let after = coded("", "gzip", Some("gzip")).renewing(&before, &request);
    assert!(after.selects(&asking(None)));
    let after = coded("", "gzip", Some("br")).renewing(&before, &asking(Some("br")));
    assert!(!after.selects(&asking(None)), "it was not for that request");
}

#[test]
fn the_codings_that_were_asked_for_are_asked_for_again() {
    let check = |made: Option<&str>, asked: Option<&str>| {
        let mut request = asking(asked);
        coded("accept-language", "gzip", made).ask_for_codings(&mut request);
        assert_eq!(request, asking(made));
    };
    check(Some("gzip;q=0.5"), Some("br, gzip"));
    check(Some("gzip"), None);
    check(None, Some("gzip"));
    let mut request = asking(Some("gzip"));
    coded("", "", None).ask_for_codings(&mut request);
    assert_eq!(request, asking(Some("gzip")), "it does not vary by that");
}

#[test]
fn what_was_made_for_another_asker_is_told_by_the_fields_that_vary_names() {
    let check = |vary: &str, made: &[(&str, &str)], asked: &[(&str, &str)], expected: bool| {
        let names = VaryNames::of(&fields(&[("vary", vary)])).unwrap();
        let selecting = Selecting::new(names, &fields(made), None, Codings::default());
        assert_eq!(selecting.is_for_another_asker(&fields(asked)), expected, "{vary}: {made:?} {asked:?}");
    };
    let (one, other) = (&[("origin", "https://a.example")][..], &[("origin", "https://b.example")][..]);
    check("origin", one, other, true);
    check("origin", one, &[], true);
    check("origin", &[], one, true);
    check("origin", one, one, false);
    check("", one, other, false);
    check("accept-encoding, origin", one, &[("accept-encoding", "gzip"), one[0]], false);
    check("accept-language, x-a", &[("accept-language", "de")], &[("x-a", "1")], false);
    for name in ["cookie", "authorization", "x-api-key", "access-control-request-headers"] {
        check(&format!("accept, {name}, x-z"), &[(name, "1")], &[(name, "2")], true);
    }
}
