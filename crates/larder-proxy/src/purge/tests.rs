//! The requests of tests/dialects, rules that hold across dialects, and what holds for every request.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use http::{HeaderMap, HeaderName, HeaderValue};
use larder_cache::purge::{Expression, PatternText};
use proptest::prelude::*;

use super::*;

/// A request of a data file, and what is expected of it.
#[derive(Default)]
struct Case {
    title: String,
    location: Option<String>,
    request: Vec<String>,
    expected: String,
}

/// The cases of a file. tests/dialects/README.md has the format.
fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(title) = line.strip_prefix("= ") {
            cases.push(Case { title: title.to_owned(), ..Case::default() });
            continue;
        }
        let case = cases.last_mut().expect("a title before all else");
        if let Some(line) = line.strip_prefix('>') {
            assert!(case.expected.is_empty(), "{}: a request behind what is expected", case.title);
            case.request.push(line.strip_prefix(' ').unwrap_or(line).to_owned());
        } else if let Some(location) = line.strip_prefix("location ") {
            case.location = Some(location.to_owned());
        } else {
            case.expected += line;
            case.expected += "\n";
        }
    }
    cases
}

/// Reads the lines of a request as a listener does: an absolute target is authority and path.
fn with_request<T>(case: &Case, then: impl FnOnce(&PurgeRequest<'_>) -> T) -> T {
    let (first, fields) = case.request.split_first().expect("a request line");
    let (method, rest) = first.split_once(' ').expect("a method");
    let (target, version) = rest.rsplit_once(' ').expect("a version");
    assert!(matches!(version, "HTTP/1.0" | "HTTP/1.1"), "{first}");
    let path_at = target.strip_prefix("http://").map(|rest| 7 + rest.find('/').expect("a path"));
    let (last, fields) = fields.split_last().expect("an empty line");
    assert!(last.is_empty(), "{}: ends without an empty line", case.title);
    let fields: HeaderMap = fields
        .iter()
        .map(|line| {
            let (name, value) = line.split_once(':').expect("a field line");
            let value = HeaderValue::from_bytes(value.trim().as_bytes()).expect("a field value");
            (HeaderName::from_bytes(name.as_bytes()).expect("a field name"), value)
        })
        .collect();
    let location = case.location.as_deref();
    then(&PurgeRequest { method, target: &target[path_at.unwrap_or(0)..], fields: &fields, location })
}

/// A reading and its answers, as data files have them.
fn outcome(request: &PurgeRequest<'_>) -> String {
    let mut out = String::new();
    match read(request) {
        Reading::NotOurs => return "passes\n".to_owned(),
        Reading::Refresh(dialect) => return format!("refreshes {}\n", dialect.token()),
        Reading::Bad { dialect, words } => {
            let _ = writeln!(out, "bad {}", dialect.token());
            answer(&mut out, "answers", &PurgeAnswer::bad(words));
        }
        Reading::Wanted(wanted) => {
            let mode = if wanted.mode == Mode::Soft { "soft" } else { "hard" };
            let _ = writeln!(out, "reads {} {mode}", wanted.dialect.token());
            wanted.selectors.iter().for_each(|selector| name(&mut out, selector));
            let done = PurgeAnswer::done(wanted.manner, Some(true), None);
            answer(&mut out, "answers", &done);
            let absent = PurgeAnswer::done(wanted.manner, Some(false), None);
            if absent != done {
                answer(&mut out, "answers, nothing stored", &absent);
            }
        }
    }
    answer(&mut out, "refuses", &PurgeAnswer::refused(request));
    out
}

fn answer(out: &mut String, label: &str, answer: &PurgeAnswer) {
    let _ = writeln!(out, "{}", format!("{label} {} {}", answer.status.as_u16(), answer.body).trim_end());
}

fn name(out: &mut String, selector: &Selector) {
    let _ = match selector {
        Selector::Here(target) => writeln!(out, "  here {target}"),
        Selector::Tag(tag) => writeln!(out, "  tag {}", String::from_utf8_lossy(tag)),
        Selector::Prefix { host: None, path } => writeln!(out, "  prefix {path}"),
        Selector::All => writeln!(out, "  all"),
        Selector::Pattern(pattern) => {
            let PatternText { host, target, content_type, tags } = pattern;
            let parts = [("host", host), ("target", target), ("content-type", content_type), ("tags", tags)];
            let _ = writeln!(out, "  pattern");
            for (part, Expression { text, at_start }) in
                parts.into_iter().filter_map(|(part, expression)| Some((part, expression.as_ref()?)))
            {
                let _ = writeln!(out, "    {part}{} {text}", if *at_start { " from its start" } else { "" });
            }
            Ok(())
        }
        other => writeln!(out, "  {other:?}"),
    };
}

#[test]
fn each_client_is_read_and_answered_as_its_source_has_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/dialects");
    let mut seen = BTreeSet::new();
    for entry in std::fs::read_dir(&folder).expect("tests/dialects") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let (file, text) = (path.display(), std::fs::read_to_string(&path).expect("UTF-8"));
        assert!(text.starts_with("# "), "{file}: without its source");
        let cases = cases(&text);
        assert!(!cases.is_empty(), "{file}: empty");
        for case in cases {
            let found = with_request(&case, |request| {
                if let Reading::Wanted(wanted) = read(request) {
                    seen.insert(wanted.dialect.token());
                }
                outcome(request)
            });
            assert_eq!(found, case.expected, "{file}: {}", case.title);
        }
    }
    let of_requests = &Dialect::ALL[..8];
    assert_eq!(seen, of_requests.iter().map(|dialect| dialect.token()).collect(), "dialects in the files");
}

/// `method target`, then fields.
fn check(first: &str, fields: &[(&'static str, &str)], expected: &str) {
    let (method, target) = first.split_once(' ').unwrap();
    let fields: HeaderMap = fields
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
        .collect();
    let request = PurgeRequest { method, target, fields: &fields, location: Some("/purge") };
    let outcome = outcome(&request);
    let found: Vec<&str> =
        outcome.lines().filter(|line| !line.starts_with("refuses")).map(str::trim).collect();
    assert_eq!(found.join("; "), expected, "{first}");
}

#[test]
fn other_methods_are_no_purges() {
    for method in ["PURGE", "BAN", "PURGEKEYS", "PURGETAGS", "URIBAN"] {
        assert!(is_purge_method(method), "{method}");
    }
    for method in ["GET", "purge", "REFRESH", "DELETE", "POST", ""] {
        assert!(!is_purge_method(method), "{method}");
    }
    check("POST /purge/a", &[("xkey", "a")], "passes");
    check("HEAD /purge/a", &[], "passes");
    check("GET /a", &[("xkey", "a")], "passes");
}

#[test]
fn tag_fields_are_united_and_win_over_the_path() {
    check(
        "PURGE /a.*",
        &[("xkey", "a b"), ("surrogate-key", "c"), ("cache-tags", "d|e"), ("x-cache-tags", r"f\.g")],
        "reads shopware hard; tag a; tag b; tag c; tag d; tag e; tag f.g; answers 200 Purged",
    );
    check(
        "BAN /x",
        &[("x-host", "^a$"), ("x-cache-tags", "t"), ("x-magento-tags-pattern", ".*")],
        "reads magento hard; all; pattern; host ^a$; tags t; answers 200 Purged",
    );
    check(
        "PURGE /purge/a",
        &[("x-cache-tags-pattern", "p-1")],
        "reads plain hard; tag p-1; answers 200 Purged",
    );
}

#[test]
fn soft_is_asked_for_by_any_of_four_fields() {
    for field in [("x-purge-soft", "1"), ("fastly-soft-purge", "1"), ("x-magento-purge-soft", "1")] {
        check("PURGE /a", &[field], "reads plain soft; here /a; answers 200 Purged");
    }
    check("PURGE /a", &[("x-purge-soft", "0")], "reads plain hard; here /a; answers 200 Purged");
    check("BAN /", &[("xkey-softpurge", "a")], "reads varnish soft; tag a; answers 200 Purged");
    check(
        "PURGEKEYS /",
        &[("xkey-softpurge", "a"), ("xkey-purge", "b")],
        "reads varnish hard; tag b; tag a; answers 200 Purged",
    );
}

#[test]
fn what_names_nothing_is_refused_in_the_clients_words() {
    let required = "X-Magento-Tags-Pattern or X-Pool header required";
    check("PURGE /", &[("x-magento-tags-pattern", "")], &format!("bad magento; answers 400 {required}"));
    let neither = "Neither header XKey-Purge or XKey-SoftPurge set";
    check("PURGEKEYS /", &[], &format!("bad varnish; answers 400 {neither}"));
    check("PURGEKEYS /", &[("xkey-purge", " , ")], &format!("bad varnish; answers 400 {neither}"));
    check("PURGETAGS /", &[], "bad symfony; answers 400 X-Cache-Tags header required");
    check("BAN /tags", &[("cache-tags", "|")], "bad drupal; answers 400 Cache-Tags header missing.");
    check(
        "BAN /",
        &[("apiplatform-ban-regex", "")],
        "bad shopware; answers 400 ApiPlatform-Ban-Regex HTTP header must be set.",
    );
    check("BAN /", &[("x-host", "")], "bad varnish; answers 400 an empty expression");
    check(
        "BAN /",
        &[("varnish-ban-all", "0")],
        "bad typo3; answers 400 Varnish-Ban-All, Varnish-Ban-TYPO3-Pid or Varnish-Ban-TYPO3-Tag header required",
    );
    check("PURGE *", &[], "bad plain; answers 400 the target is no path");
    check("PURGE /souin-api/souin", &[], "bad shopware; answers 400 Surrogate-Key header required");
}

#[test]
fn more_than_a_thousand_names_are_refused() {
    let names = |count| vec!["t"; count].join(" ");
    check("PURGE /", &[("xkey", &names(1001))], "bad shopware; answers 400 more than 1000 names");
    check(
        "PURGE /",
        &[("xkey", &names(500)), ("surrogate-key", &names(501))],
        "bad shopware; answers 400 more than 1000 names",
    );
    let value = HeaderValue::from_str(&names(1000)).unwrap();
    let fields = HeaderMap::from_iter([(HeaderName::from_static("xkey"), value)]);
    let request = PurgeRequest { method: "PURGE", target: "/", fields: &fields, location: None };
    assert!(matches!(read(&request), Reading::Wanted(Wanted { selectors, .. }) if selectors.len() == 1000));
}

#[test]
fn expressions_in_fields_match_anywhere_and_need_utf_8() {
    check(
        "BAN /",
        &[("x-url", "^/a"), ("x-content-type", "text/"), ("x-host", ".*")],
        "reads varnish hard; pattern; target ^/a; content-type text/; answers 200 Banned",
    );
    let fields =
        HeaderMap::from_iter([(HeaderName::from_static("x-url"), HeaderValue::from_bytes(b"\xe4").unwrap())]);
    let request = PurgeRequest { method: "BAN", target: "/", fields: &fields, location: None };
    assert!(matches!(read(&request), Reading::Bad { dialect: Dialect::Varnish, .. }));
}

#[test]
fn x_ban_is_an_expression_for_urls_and_no_condition() {
    check(
        "BAN /",
        &[("x-ban", "/news/.*")],
        "reads varnish hard; pattern; target /news/.*; answers 200 Ban added.",
    );
    check("BAN /", &[("x-ban", ".*")], "reads varnish hard; all; answers 200 Ban added.");
    for condition in ["obj.http.X-Url ~ ^/a", " req.url == /a"] {
        let refused = "bad varnish; answers 400 X-Ban has to be an expression for URLs";
        check("BAN /", &[("x-ban", condition)], refused);
    }
    check("BAN /", &[("x-ban", "")], "bad varnish; answers 400 an empty expression");
    check("PURGE /a", &[("x-ban", "/b")], "reads plain hard; here /a; answers 200 Purged");
}

#[test]
fn a_location_is_a_whole_part_of_the_path() {
    check(
        "GET /purge/a?b=c",
        &[],
        "reads nginx hard; here /a?b=c; answers 200 Purged; answers, nothing stored 404 Not Found",
    );
    check("GET /purge/news/*", &[], "reads nginx hard; prefix /news/; answers 204");
    check("GET /purge/new*", &[], "reads nginx hard; pattern; target from its start /new.*; answers 204");
    check("PURGE /purge/", &[], "reads nginx hard; here /; answers 200 Purged");
    check("GET /purge", &[], "passes");
    check("GET /purged/a", &[], "passes");
    for location in [None, Some("/"), Some("")] {
        let fields = HeaderMap::new();
        let request = PurgeRequest { method: "GET", target: "/purge/a", fields: &fields, location };
        assert_eq!(read(&request), Reading::NotOurs, "{location:?}");
    }
    let fields = HeaderMap::new();
    let request =
        PurgeRequest { method: "GET", target: "/purge/a", fields: &fields, location: Some("/purge/") };
    assert!(matches!(read(&request), Reading::Wanted(_)), "with a slash at its end");
}

#[test]
fn a_client_may_say_whether_its_path_is_a_url() {
    let pattern = "reads plain hard; pattern; target from its start /blog; answers 200 Purged";
    check("PURGE /blog", &[("x-purge-method", "regex")], pattern);
    for method in ["default", "exact"] {
        let url = "reads plain hard; here /a.*; answers 200 Purged";
        check("PURGE /a.*", &[("x-purge-method", method)], url);
    }
    for target in ["/", "/a[1]*.jpg"] {
        let url = format!("reads drupal hard; here {target}; answers 200 Ban added.");
        check(&format!("URIBAN {target}"), &[], &url);
    }
}

#[test]
fn refreshes_are_asked_for_with_get() {
    check("GET /a", &[("x-refresh", "1")], "refreshes nginx");
    check("GET /a", &[("cache-control", "max-age=0, No-Cache")], "refreshes varnish");
    check("GET /a", &[("cache-control", "no-cache-at-all"), ("x-refresh", "0")], "passes");
    check(
        "GET /purge/a",
        &[("cache-control", "no-cache")],
        "reads nginx hard; here /a; answers 200 Purged; answers, nothing stored 404 Not Found",
    );
}

/// Field names that some dialect reads.
const FIELDS: [&str; 28] = [
    "accept",
    "apiplatform-ban-regex",
    "cache-control",
    "cache-tags",
    "clear-cache",
    "purge-cache-tags",
    "surrogate-key",
    "user-agent",
    "varnish-ban-all",
    "varnish-ban-typo3-pid",
    "varnish-ban-typo3-sitename",
    "varnish-ban-typo3-tag",
    "x-ban",
    "x-ban-all",
    "x-ban-regex",
    "x-ban-tags",
    "x-cache-tags",
    "x-cache-tags-pattern",
    "x-content-type",
    "x-host",
    "x-magento-purge-soft",
    "x-magento-tags-pattern",
    "x-pool",
    "x-purge-method",
    "x-url",
    "xkey",
    "xkey-purge",
    "xkey-softpurge",
];

fn methods() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["PURGE", "BAN", "PURGEKEYS", "PURGETAGS", "URIBAN", "GET", "POST"])
}

/// Field lines whose values are short or, with a list, long.
fn fields() -> impl Strategy<Value = HeaderMap> {
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "[a-c.*|,\\\\()^$ ]{0,30}".prop_map(String::into_bytes),
        (0..3000_usize).prop_map(|count| b"t ".repeat(count)),
    ];
    let field = (prop::sample::select(&FIELDS[..]), value);
    prop::collection::vec(field, 0..5).prop_map(|fields| {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                map.append(name, value);
            }
        }
        map
    })
}

proptest! {
    #[test]
    fn any_request_is_read_and_names_at_most_a_thousand(
        method in methods(),
        target in prop_oneof![any::<String>(), "/[a-c.*?\\[\\]|^$+/]{0,20}"],
        fields in fields(),
        location in prop::option::of("(/[a-c]{0,2}){0,2}"),
    ) {
        let request = PurgeRequest { method, target: &target, fields: &fields, location: location.as_deref() };
        match read(&request) {
            Reading::Wanted(wanted) => prop_assert!((1..=1000).contains(&wanted.selectors.len())),
            Reading::Bad { words, .. } => prop_assert!(!words.is_empty()),
            Reading::NotOurs | Reading::Refresh(_) => prop_assert!(!is_purge_method(method)),
        }
    }

    #[test]
    fn a_target_that_a_response_may_be_stored_under_is_purged_whatever_it_is_taken_for(
        method in prop::sample::select(vec!["PURGE", "BAN", "URIBAN"]),
        purge_method in prop::sample::select(vec!["default", "exact", "regex", ""]),
        target in "/[a-c.*?\\[\\]\\\\|^$+(){}/]{0,12}",
    ) {
        let fields = HeaderMap::from_iter([(
            HeaderName::from_static("x-purge-method"),
            HeaderValue::from_static(purge_method),
        )]);
        let request = PurgeRequest { method, target: &target, fields: &fields, location: None };
        let Reading::Wanted(wanted) = read(&request) else {
            return Err(TestCaseError::fail("refused"));
        };
        let covers = |selector: &Selector| match selector {
            Selector::All => true,
            Selector::Here(url) => **url == *target,
            Selector::Prefix { host: None, path } => target.starts_with(&**path),
            Selector::Pattern(PatternText { target: Some(expression), .. }) => {
                regex::Regex::new(&format!("^(?:{})", expression.text)).is_ok_and(|regex| regex.is_match(&target))
            }
            _ => false,
        };
        prop_assert!(wanted.selectors.iter().any(covers), "{:?}", wanted.selectors);
    }
}
