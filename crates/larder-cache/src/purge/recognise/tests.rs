//! What is recognised, and that it names no less than the pattern matches.

use proptest::prelude::*;

use super::*;
use crate::purge::pattern::{Pattern, Subject, TagText};

fn anywhere(text: &str) -> Option<Expression> {
    Some(Expression { text: text.into(), at_start: false })
}

fn at_start(text: &str) -> Option<Expression> {
    Some(Expression { text: text.into(), at_start: true })
}

fn of_tags(text: &str) -> PatternText {
    PatternText { tags: anywhere(text), ..PatternText::default() }
}

fn of_target(target: Option<Expression>) -> PatternText {
    PatternText { target, ..PatternText::default() }
}

fn of_host(text: &str) -> PatternText {
    PatternText { host: anywhere(text), ..PatternText::default() }
}

fn what(text: &PatternText) -> Option<Vec<What>> {
    let recognised = recognise(text, Bare::Expression)?;
    assert_eq!(recognised.hosts, None);
    Some(recognised.what)
}

fn tags(names: &[&str]) -> Option<Vec<What>> {
    Some(names.iter().map(|name| What::Tag(name.as_bytes().into())).collect())
}

#[test]
fn lists_of_tags_are_those_tags() {
    for (text, names) in [
        ("(^|,)(a|b)(,|$)", &["a", "b"][..]),
        ("(^|,)(b|a|b)(,|$)", &["a", "b"]),
        ("(^|,)a(,|$)", &["a"]),
        ("(?:,|^)(?:a|b)($|,)", &["a", "b"]),
        (r"(^|\s|,)(a)(,| |$)", &["a"]),
        ("((^|,)cat_p_1(,|$))|((^|,)cat_c_2(,|$))", &["cat_c_2", "cat_p_1"]),
        ("((^|,)cat_p_1(,|$))", &["cat_p_1"]),
        (r"(^|,)(post\-1|node\:2|a\.b|x\/y|[.])(,|$)", &[".", "a.b", "node:2", "post-1", "x/y"]),
        ("(^|,)(caf(e|é))(,|$)", &["cafe", "café"]),
        (".*(^|,)a(,|$).*", &["a"]),
    ] {
        assert_eq!(what(&of_tags(text)), tags(names), "{text}");
    }
}

#[test]
fn bare_names_are_tags_where_the_caller_says_so() {
    for (text, names) in [
        ("a|b", Some(&["a", "b"][..])),
        ("a", Some(&["a"])),
        ("(a)|(b)", Some(&["a", "b"])),
        (r"node:1|config\:x\.y|n\-1", Some(&["config:x.y", "n-1", "node:1"])),
        ("a.b", None),
        ("a,b", None),
        ("a b", None),
        ("^a", None),
        (".*a", None),
        ("[ab]", None),
        ("(^|,)x(,|$)|a", Some(&["a", "x"])),
    ] {
        let expected = names.and_then(tags);
        assert_eq!(recognise(&of_tags(text), Bare::Exact).map(|found| found.what), expected, "{text}");
        assert_eq!(recognise(&of_tags(text), Bare::Expression), None, "{text}");
    }
}

#[test]
fn what_matches_anything_is_everything() {
    let all = Some(vec![What::All]);
    for text in ["", ".*", ".", ".+", "^.*$", "^", "^.+", "(.*)", ".*?", "a|.*", r"\A.*"] {
        assert_eq!(what(&of_tags(text)), all, "{text}");
        assert_eq!(what(&of_target(anywhere(text))), all, "{text}");
        assert_eq!(what(&of_target(at_start(text))), all, "{text}");
        assert_eq!(what(&of_host(text)), all, "{text}");
        assert_eq!(what(&PatternText { content_type: anywhere(text), ..of_tags(".*") }), all, "{text}");
    }
    for text in ["/", "^/", "^/.*", "^/.*$"] {
        assert_eq!(what(&of_target(anywhere(text))), all, "{text}");
        assert_eq!(what(&of_target(at_start(text))), all, "{text}");
        assert_eq!(what(&of_tags(text)), None, "{text}");
        assert_eq!(what(&of_host(text)), None, "{text}");
    }
    assert_eq!(what(&PatternText::default()), all);
    assert_eq!(what(&of_tags("$")), all);
    assert_eq!(what(&of_target(at_start("$"))), None);
    for text in ["^$", "^.$"] {
        assert_eq!(what(&of_tags(text)), None, "{text}");
    }
}

#[test]
fn paths_and_targets_are_found_by_a_hash() {
    let below = |path: &str| Some(What::Prefix(path.into()));
    let exact = |target: &str| Some(What::Target(target.into()));
    let deep = |segments: usize| format!("^{}/", "/a".repeat(segments));
    for (expression, expected) in [
        (anywhere("^/a/"), vec![below("/a/")]),
        (anywhere("^/a/.*$"), vec![below("/a/")]),
        (at_start("/a/.*"), vec![below("/a/")]),
        (at_start("/a/"), vec![below("/a/")]),
        (anywhere("^/(b|a)/"), vec![below("/a/"), below("/b/")]),
        (anywhere("^/a$"), vec![exact("/a")]),
        (at_start("/a$"), vec![exact("/a")]),
        (anywhere(r"^/a\.html\?b=c$"), vec![exact("/a.html?b=c")]),
        (anywhere("^/$"), vec![exact("/")]),
        (anywhere("^/a//b$"), vec![exact("/a//b")]),
        (anywhere("^/a$|^/b/"), vec![exact("/a"), below("/b/")]),
        (anywhere(&deep(ANCESTORS_MAX - 1)), vec![below(&deep(ANCESTORS_MAX - 1)[1..])]),
        // Anywhere, or beyond the path.
        (anywhere("/a/"), vec![None]),
        (anywhere("/a/.*"), vec![None]),
        (anywhere("/a$"), vec![None]),
        (anywhere(".*/a/"), vec![None]),
        (at_start("/a"), vec![None]),
        (at_start("/a.*"), vec![None]),
        (anywhere("^a$"), vec![None]),
        // An unescaped dot is any character, and no such path is canonical.
        (anywhere("^/a.html$"), vec![None]),
        (anywhere(r"^/a\?b/"), vec![None]),
        (anywhere("^/a//"), vec![None]),
        (anywhere("^/%61/"), vec![None]),
        (anywhere(r"^/\./"), vec![None]),
        (anywhere(&deep(ANCESTORS_MAX)), vec![None]),
    ] {
        let expected: Option<Vec<What>> = expected.into_iter().collect();
        assert_eq!(what(&of_target(expression.clone())), expected, "{expression:?}");
    }
}

#[test]
fn hosts_narrow_what_is_named() {
    let two = r"^(b\.example|A\.example:8080)$";
    let hosts = Some(vec![Box::from("a.example"), Box::from("b.example")]);
    for (text, expected) in [
        (of_host(two), vec![What::All]),
        (PatternText { target: anywhere("^/x/"), ..of_host(two) }, vec![What::Prefix("/x/".into())]),
        (PatternText { tags: anywhere("(^|,)x(,|$)"), ..of_host(two) }, tags(&["x"]).unwrap_or_default()),
    ] {
        let found = recognise(&text, Bare::Expression);
        assert_eq!(found, Some(Recognised { hosts: hosts.clone(), what: expected }), "{text:?}");
    }
    let six = recognise(&of_host(r"^\[::1\]$"), Bare::Expression).and_then(|found| found.hosts);
    assert_eq!(six, Some(vec!["[::1]".into()]));
    for text in ["^a.example$", r"^a\.example", r"a\.example$", r"^(.*\.)?a$", "^$"] {
        assert_eq!(recognise(&of_host(text), Bare::Expression), None, "{text}");
    }
}

#[test]
fn a_pattern_is_recognised_as_a_whole_or_not_at_all() {
    for text in [
        PatternText { tags: anywhere("(^|,)x(,|$)"), ..of_target(anywhere("^/a/")) },
        PatternText { target: anywhere("a"), ..of_host("^a$") },
        PatternText { content_type: anywhere("text/html"), ..of_tags(".*") },
        of_tags("(^|,)a(,|$)|b"),
        of_tags("(^|,)a(,|$)|(^|,)b[0-9](,|$)"),
        of_tags("(?i)(^|,)a(,|$)"),
        of_tags("(?i:(^|,)a(,|$))"),
        of_tags(r"(^|,)\<a\>(,|$)"),
        of_tags("(^|,)a?(,|$)"),
        of_tags("(^|,)a"),
        of_tags("^a$"),
        of_tags("^(^|,)a(,|$)"),
        of_tags("(^|,)a(,|$)$"),
        of_tags("(^|;)a(;|$)"),
        of_tags("(^|,)(,|$)"),
        of_tags(r"(^|\s)é(\s|$)"),
        of_tags(r"(^|,)\xff(,|$)"),
        of_tags("("),
    ] {
        assert_eq!(recognise(&text, Bare::Expression), None, "{text:?}");
    }
}

#[test]
fn a_thousand_names_are_recognised_and_no_more() {
    let list = |count: usize| {
        let names = (0..count).map(|name| name.to_string()).collect::<Vec<_>>().join("|");
        of_tags(&format!("(^|,)({names})(,|$)"))
    };
    assert_eq!(what(&list(NAMES_MAX)).map(|what| what.len()), Some(NAMES_MAX));
    assert_eq!(what(&list(NAMES_MAX + 1)), None);
    let equal = of_tags(&format!("(^|,)({})(,|$)", vec!["a"; NAMES_MAX + 1].join("|")));
    assert_eq!(what(&equal), None, "equal ones count as well");
    let at_hosts = |hosts: &str| recognise(&PatternText { host: anywhere(hosts), ..list(500) }, Bare::Exact);
    assert!(at_hosts("^(a|b)$").is_some() && at_hosts("^(a|b|c)$").is_none());
    let doubled = |times: usize| of_tags(&format!("(^|,){}(,|$)", "(a|b)".repeat(times)));
    assert_eq!(what(&doubled(9)).map(|what| what.len()), Some(512));
    assert_eq!(what(&doubled(10)), None);
    let long = |bytes: usize| of_target(at_start(&format!("/{}$", "a".repeat(bytes - 2))));
    assert!(what(&long(RECOGNISED_BYTES_MAX)).is_some() && what(&long(RECOGNISED_BYTES_MAX + 1)).is_none());
    let together = format!("/({})/{}$", vec!["a"; 500].join("|"), "a".repeat(1000));
    assert_eq!(what(&of_target(at_start(&together))), None, "too much to write out");
}

fn subject<'a>(host: &'a str, target: &'a str, tags: &[&str]) -> Subject<'a> {
    let tags = TagText::Joined(tags.join(",").into_bytes().into());
    Subject { host, target, content_type: None, tags }
}

/// Whether a name is that of a response with these parts. One whose path has dot segments may lie elsewhere.
fn names(what: &What, target: &str, tags: &[&str]) -> bool {
    match what {
        What::All => true,
        What::Target(named) => **named == *target,
        What::Tag(named) => tags.iter().any(|tag| tag.as_bytes() == &**named),
        What::Prefix(path) => {
            let target = Target::parse(Bytes::copy_from_slice(target.as_bytes())).expect("a target");
            let is_dots = |segment: &str| matches!(segment, "." | "..");
            let canonical = target.canonical_path();
            target.path().split('/').any(is_dots) || canonical.is_ok_and(|own| own.starts_with(&**path))
        }
        other => panic!("never recognised: {other:?}"),
    }
}

/// What is recognised names every response that the pattern matches.
fn holds(text: &PatternText, host: &str, target: &str, tags: &[&str]) -> Result<(), TestCaseError> {
    let (Some(recognised), Ok(pattern)) = (recognise(text, Bare::Expression), Pattern::compile(text)) else {
        return Ok(());
    };
    let is_at = recognised.hosts.as_ref().is_none_or(|hosts| hosts.iter().any(|named| **named == *host));
    let is_named = is_at && recognised.what.iter().any(|what| names(what, target, tags));
    let is_matched = pattern.matches(&subject(host, target, tags));
    prop_assert!(is_named || !is_matched, "{:?} {:?} {:?} {:?}", text, host, target, tags);
    Ok(())
}

/// One or two alternatives, each of a piece for each place.
fn expressions(places: &'static [&[&str]]) -> impl Strategy<Value = String> {
    let one = places.iter().map(|pieces| proptest::sample::select(*pieces)).collect::<Vec<_>>();
    let one = one.prop_map(|pieces| pieces.concat());
    proptest::collection::vec(one, 1..3).prop_map(|alternatives| alternatives.join("|"))
}

const TAGS: &[&[&str]] = &[
    &["(^|,)", "(^|,)", "(?:,|^)", r"(^|\s|,)", "", "^", ".*"],
    &["a", "(a|b)", "b", r"a\.b", "a.b", "ab", "(a|)", "a?", r"\<a\>", "", "."],
    &["(,|$)", "(,|$)", "($|,)", "(,| |$)", "", "$", ".*"],
];
const TARGETS: &[&[&str]] = &[
    &["^", "^", "", ".*", "(^)"],
    &["/", "/a", "/(a|b)", "/a.*", r"/\.", "/.", ""],
    &["/", "/b", "", r"\?a", "//", "/a"],
    &["/", "$", "", "/.*", "/.*$", ".*"],
];
const HOSTS: &[&[&str]] =
    &[&["^", "^", "", ".*"], &["a", "(A|b)", r"a\.b", "a.b", "", "a|b"], &["$", "$", ":8$", "", ".*"]];

proptest! {
    #[test]
    fn names_that_were_escaped_are_recognised_and_found(
        names in proptest::collection::btree_set("[ab.:|(\\[*+?^$\\\\/-]{1,4}", 1..6),
        others in proptest::collection::vec("[ab.:|(-]{1,2}", 0..4),
        place in 0..6_usize,
        is_magento: bool,
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let escaped: Vec<String> = names.iter().map(|name| regex::escape(name)).collect();
        let each = |name: &String| format!("((^|,){name}(,|$))");
        let text = of_tags(&match is_magento {
            true => escaped.iter().map(each).collect::<Vec<_>>().join("|"),
            false => format!("(^|,)({})(,|$)", escaped.join("|")),
        });
        prop_assert_eq!(what(&text), tags(&names));
        let bare = recognise(&of_tags(&escaped.join("|")), Bare::Exact);
        prop_assert_eq!(bare.map(|found| found.what), tags(&names));
        // The expression matches exactly the responses with one of them.
        let pattern = Pattern::compile(&text).expect("an expression");
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        let has_one = others.iter().any(|other| names.contains(other));
        prop_assert_eq!(pattern.matches(&subject("a", "/", &others)), has_one);
        let with_one = [&others[..], &[names[place % names.len()]]].concat();
        prop_assert!(pattern.matches(&subject("a", "/", &with_one)));
    }
}

/// Most expressions are not recognised, and most that are match nothing.
fn more_cases() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.saturating_mul(8), ..usual }
}

proptest! {
    #![proptest_config(more_cases())]

    #[test]
    fn what_is_recognised_of_tags_names_no_less(
        text in expressions(TAGS),
        tags in proptest::collection::vec("[ab](\\.?[ab])?", 0..4),
    ) {
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        holds(&of_tags(&text), "a", "/", &tags)?;
    }

    #[test]
    fn what_is_recognised_of_targets_names_no_less(
        text in expressions(TARGETS),
        at_start: bool,
        target in "/([ab](/|/|\\?|\\.|//)?){0,3}",
    ) {
        holds(&of_target(Some(Expression { text: text.into(), at_start })), "a", &target, &[])?;
    }

    #[test]
    fn what_is_recognised_of_hosts_names_no_less(
        text in expressions(HOSTS),
        host in "[ab](\\.[ab])?",
    ) {
        holds(&of_host(&text), &host, "/", &[])?;
    }
}
