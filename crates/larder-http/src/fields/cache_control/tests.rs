//! What responses and requests say, one table per rule.

#![allow(clippy::unwrap_used)]
use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn fields(lines: &[&str]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for line in lines {
        fields.append(header::CACHE_CONTROL, HeaderValue::from_str(line).unwrap());
    }
    fields
}

fn response(line: &str) -> ResponseDirectives {
    ResponseDirectives::read(&fields(&[line]))
}

fn seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

#[test]
fn a_lifetime_that_is_not_one_is_zero() {
    for (line, expected) in [
        ("", None),
        ("nothing-to-see-here", None),
        ("max-age=3600", seconds(3600)),
        ("MaX-aGe=3600", seconds(3600)),
        ("foobar, max-age=3600", seconds(3600)),
        ("max-age=003600", seconds(3600)),
        ("max-age=\"3600\"", seconds(3600)),
        ("max-age=99999999999", seconds(1 << 31)),
        ("max-age", seconds(0)),
        ("max-age=", seconds(0)),
        ("max-age='3600'", seconds(0)),
        ("max-age=-3600", seconds(0)),
        ("max-age=3600.0", seconds(0)),
        ("max-age=a100", seconds(0)),
        ("max-age=100a", seconds(0)),
        ("max-age =100", seconds(0)),
        ("max-age= 100", seconds(0)),
        ("max-age=\"100", seconds(0)),
        ("max-age=100;foo", seconds(0)),
        ("max-age=1, max-age=3600", seconds(1)),
        ("max-age=3600, max-age=1", seconds(1)),
        ("extension=\"max-age=3600\"", None),
        ("extension=\"max-age=3600\", max-age=1", seconds(1)),
        ("max-age=1, extension=\"max-age=3600\"", seconds(1)),
        ("extension=\"a\\\", max-age=3600\", max-age=1", seconds(1)),
        (",,, max-age=5 ,", seconds(5)),
    ] {
        assert_eq!(response(line).max_age, expected, "{line:?}");
    }
}

#[test]
fn all_lines_count() {
    let all = ResponseDirectives::read(&fields(&["max-age=5", "S-MAXAGE=7", "", "No-Store, public"]));
    assert_eq!((all.max_age, all.s_maxage), (seconds(5), seconds(7)));
    assert!(all.no_store && all.public);
}

#[test]
fn restricting_directives_count_whatever_follows_them_and_permitting_ones_only_alone() {
    assert!(response("private; max-age=0").private.is_whole());
    assert!(response("no-store foo").no_store);
    assert!(response("no-cache=\"unclosed").no_cache.is_whole());
    assert!(response("must-revalidate=1").must_revalidate);
    assert!(!response("public=1").public);
    assert!(!response("must-understand=1").must_understand);
    assert!(!response("xno-store, no-storex").no_store);
}

#[test]
fn what_restricts_and_permits_permits_only_where_it_is_well_formed() {
    for (line, must_revalidate, s_maxage) in [
        ("must-revalidate", true, false),
        ("Must-Revalidate , public=1", true, false),
        ("must-revalidate=1", false, false),
        ("must-revalidate=", false, false),
        ("must-revalidate=\"\"", false, false),
        ("must-revalidate; public", false, false),
        ("must-revalidate public", false, false),
        ("proxy-revalidate", false, false),
        ("s-maxage=60", false, true),
        ("s-maxage=0", false, true),
        ("s-maxage=\"60\"", false, true),
        ("s-maxage", false, false),
        ("s-maxage=x", false, false),
        ("s-maxage=60; public", false, false),
        ("x=\"s-maxage=60, must-revalidate\"", false, false),
    ] {
        let found = response(line);
        assert_eq!(found.permits, Permits { must_revalidate, s_maxage }, "{line}");
        assert_eq!(found.must_revalidate, line.to_ascii_lowercase().starts_with("must"), "{line}");
        assert_eq!(found.s_maxage.is_some(), line.starts_with("s-m"), "{line}");
    }
}

#[test]
fn restricting_words_in_a_malformed_member_count() {
    for line in [
        "must-revalidate; WORD",
        "max-age=60;WORD",
        "max-age=60 WORD",
        "max-age='60; WORD'",
        "max-age=\"60\"; WORD",
        "public; x=WORD",
        "x=\"open, WORD",
        "x=\"open, WORD, max-age=60",
        "x: WORD=\"a\"",
        "; WORD",
        "=WORD",
        "\"WORD\"",
    ] {
        for (word, expected) in [
            ("private", (true, false, false)),
            ("No-Store", (false, true, false)),
            ("no-cache", (false, false, true)),
            ("xprivate", (false, false, false)),
            ("no-store-x", (false, false, false)),
            ("private_", (false, false, false)),
        ] {
            let line = line.replace("WORD", word);
            let found = response(&line);
            let found = (found.private.is_whole(), found.no_store, found.no_cache.is_whole());
            assert_eq!(found, expected, "{line}");
        }
    }
    for line in ["x=private", "x=\"private, no-store\"", "max-age=\"no-cache\", x=no-store"] {
        let found = response(line);
        let found = (found.private.is_whole(), found.no_store, found.no_cache.is_whole());
        assert_eq!(found, (false, false, false), "{line}");
    }
}

#[test]
fn names_are_kept_once_and_too_many_are_the_whole() {
    let list = |count: usize| (0..count).map(|n| format!("x-{n}")).collect::<Vec<_>>().join(", ");
    let names = |line: &str| response(line).no_cache;
    let most = list(NAMES_MAX);
    assert_eq!(names(&format!("no-cache=\"{most}\"")).fields().len(), NAMES_MAX);
    assert_eq!(names(&format!("no-cache=\"{most}\", no-cache=\"{most}\"")).fields().len(), NAMES_MAX);
    assert!(names(&format!("no-cache=\"{}\"", list(NAMES_MAX + 1))).is_whole());
    assert!(names(&format!("no-cache=\"{most}\", no-cache=y")).is_whole());
    assert_eq!(names(&format!("no-cache=\"{}\"", "a, A,".repeat(1_000))).fields(), ["a"]);
}

#[test]
fn qualified_forms_name_fields() {
    let names = |line: &str| response(line).no_cache;
    assert_eq!(names("no-cache=\"a, B\""), Reach::Fields(vec!["a".parse().unwrap(), "b".parse().unwrap()]));
    assert_eq!(names("no-cache=a"), Reach::Fields(vec!["a".parse().unwrap()]));
    assert_eq!(names("no-cache=\"a\", no-cache=b").fields().len(), 2);
    for whole in [
        "no-cache=\"a\", no-cache=\"\"",
        "no-cache=\"\", no-cache=\"a\"",
        "no-cache",
        "no-cache=\"a\", no-cache",
        "no-cache, no-cache=\"a\"",
        "no-cache=\"\"",
        "no-cache=\",\"",
        "no-cache=\"a b\"",
        "no-cache=\"vary\"",
        "no-cache=\"x, Cache-Control\"",
    ] {
        assert_eq!(names(whole), Reach::Whole, "{whole}");
    }
}

#[test]
fn unusable_wishes_are_ignored() {
    let request = |line: &str| RequestDirectives::read(&fields(&[line]));
    assert_eq!(request("max-age=abc, min-fresh=-1"), RequestDirectives::default());
    assert_eq!(request("nothing-to-see-here, max-age=0").max_age, seconds(0));
    assert_eq!(request("max-age=abc, max-age=3").max_age, seconds(3));
    assert_eq!(request("max-age=4, max-age=3, max-age=x").max_age, seconds(3));
    assert_eq!(request("min-fresh=4, min-fresh=5").min_fresh, seconds(5));
    assert!(request("ONLY-IF-CACHED").only_if_cached);
    assert!(request("no-cache, no-store").no_cache);
}

proptest! {
    #[test]
    fn no_value_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            let mut fields = HeaderMap::new();
            fields.insert(header::CACHE_CONTROL, value);
            let _ = (ResponseDirectives::read(&fields), RequestDirectives::read(&fields));
        }
    }

    #[test]
    fn nothing_of_a_member_is_lost(line in "[a-c=\", ;\\\\']{0,40}") {
        let written = |(name, argument): (&[u8], Argument<'_>)| match argument {
            Argument::None => name.to_vec(),
            Argument::Token(token) => [name, b"=", token].concat(),
            Argument::Quoted(inside) => [name, b"=\"", inside, b"\""].concat(),
            Argument::Malformed(tail) => [name, tail].concat(),
        };
        let members: Vec<Vec<u8>> = Directives::new(line.as_bytes()).map(written).collect();
        let joined = members.join(&b", "[..]);
        prop_assert!(Directives::new(&joined).eq(Directives::new(line.as_bytes())));
    }

    #[test]
    fn no_quoted_text_hides_a_directive_behind_it_or_becomes_one(inside in "[ -~]{0,20}", age in 0..1000_u64) {
        let escaped = inside.replace('\\', "\\\\").replace('"', "\\\"");
        let line = format!("x=\"{escaped}\", max-age={age}, y=\"{escaped}\"");
        let expected = ResponseDirectives { max_age: seconds(age), ..ResponseDirectives::default() };
        prop_assert_eq!(response(&line), expected);
    }
}
