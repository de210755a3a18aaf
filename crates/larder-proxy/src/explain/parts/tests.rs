//! Whole pages over fragments that a function knows: what is asked for, in which order it is told, and what the page would be.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};
use larder_assemble::compile;
use larder_http::authority::Authority;
use larder_http::body::Body;
use larder_http::message::Scheme;
use larder_http::target::Target;
use larder_http::template::Language;

use super::*;
use crate::explain::assembled::{ExplainedInclude, ExplainedPage};
use crate::explain::explanation::Course;
use crate::explain::reason::Reason;

/// What a fragment is to a test.
enum Is {
    Body(&'static str),
    Ssi(&'static str),
    Esi(&'static str),
    /// Under a rule that takes no problem.
    StrictEsi(&'static str),
    OnDisk(&'static str),
    Missing,
    Failing(IncludeFailure),
    Refused(IncludeFailure),
}

fn uri(target: &'static str) -> DocumentUri {
    DocumentUri {
        scheme: Scheme::Http,
        authority: Authority::parse("a.example".into(), Scheme::Http).unwrap(),
        target: Target::parse(target.into()).unwrap(),
    }
}

fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let line = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    lines.iter().map(line).collect()
}

fn said(cache_control: &'static str) -> PartSaid {
    let fields = fields(&[("cache-control", cache_control)]);
    PartSaid::of(&fields, Some(10), Some(50), false, WallTime::from_secs(1000))
}

fn template(language: Language, uri: DocumentUri, text: &str) -> TemplateAtHand {
    let program = compile(language, uri, text.as_bytes());
    TemplateAtHand {
        program,
        body: Bytes::copy_from_slice(text.as_bytes()),
        last_modified: None,
        arrives: false,
        is_strict: false,
        owner: None,
    }
}

fn told(in_memory: bool) -> ExplainedFragment {
    ExplainedFragment {
        site: "a.example".to_owned(),
        rule: None,
        key: None,
        store: "default".to_owned(),
        verdict: Course::Hit,
        reason: Reason::new("hit", "", ""),
        in_memory,
        status: None,
        body_bytes: None,
        age_seconds: None,
        ttl_seconds: None,
        language: None,
    }
}

fn looked(is: &Is, uri: &DocumentUri) -> LookedUp {
    let at_once = matches!(is, Is::Body(_) | Is::Ssi(_) | Is::Esi(_));
    let there = |body: &'static str, template| FoundPart::There {
        said: said("max-age=30"),
        is_at_once: at_once,
        is_empty: body.is_empty(),
        body: Some(PartBody::new(Body::from(Bytes::from_static(body.as_bytes())))),
        template,
    };
    let part = match is {
        Is::Body(body) | Is::OnDisk(body) => there(body, None),
        Is::Ssi(text) => there(text, Some(template(Language::Ssi, uri.clone(), text))),
        Is::Esi(text) => there(text, Some(template(Language::Esi, uri.clone(), text))),
        Is::StrictEsi(text) => {
            let template = template(Language::Esi, uri.clone(), text);
            there(text, Some(TemplateAtHand { is_strict: true, ..template }))
        }
        Is::Missing => FoundPart::Missing,
        Is::Failing(reason) => FoundPart::Failing(*reason),
        Is::Refused(reason) => return LookedUp::Refused(*reason),
    };
    LookedUp::Found(Box::new(FoundFragment { told: Some(told(at_once)), detail: None, part }))
}

/// The page of a template, and the targets that were looked up for it.
fn page(language: Language, text: &str, fragments: &[(&str, Is)]) -> (ExplainedPage, Vec<String>) {
    let (request, settings) = (fields(&[("cookie", "group=beta")]), FragmentSettings::default());
    let facts = RequestFacts {
        fields: &request,
        method: &Method::GET,
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        scheme: Scheme::Http,
        version: Version::HTTP_11,
        now: WallTime::from_secs(1000),
    };
    let of_template = (template(language, uri("/page"), text), said("max-age=60"));
    let mut parts = Parts::new(uri("/page"), of_template, facts, (&settings, true));
    let mut asked = Vec::new();
    while let Some(WantedFragment { uri, takes_errors }) = parts.next() {
        // The first is asked for by the page's own template.
        assert!(!asked.is_empty() || takes_errors == (language == Language::Ssi));
        let target = uri.target.to_string();
        let (_, is) = fragments.iter().find(|(known, _)| *known == target).expect("a fragment that is known");
        parts.give(looked(is, &uri));
        asked.push(target);
    }
    let own = fields(&[("cache-control", "max-age=60")]);
    (parts.told(Reason::new("rule", "", ""), &own, false).unwrap(), asked)
}

/// Each include: where it goes, in which include, and why it fails or is left out.
fn lines(page: &ExplainedPage) -> Vec<String> {
    let line = |include: &ExplainedInclude| {
        let path = include.url.as_deref().map_or("-", |url| url.trim_start_matches("http://a.example"));
        let inside = include.inside.map(|outer| format!(" in {outer}")).unwrap_or_default();
        let failed = include.failed.as_ref().map(|failed| format!(" {}", failed.token)).unwrap_or_default();
        let alternative = if include.is_alternative { " instead" } else { "" };
        let discarded = if include.discarded { " discarded" } else { "" };
        format!("{path}{inside}{alternative}{failed}{discarded}")
    };
    page.includes.iter().map(line).collect()
}

fn token(page: &ExplainedPage) -> (&str, Option<&str>, Option<usize>) {
    (&page.state.token, page.ground.as_ref().map(|ground| &*ground.token), page.decided_by)
}

#[test]
fn a_page_of_stored_parts_is_whole_and_ends_with_the_part_that_ends_first() {
    let text = "a\n<!--#include virtual=\"/b\" -->\n<!--#include virtual='/c'--><!--#include virtual='/b'-->";
    let (page, asked) = page(Language::Ssi, text, &[("/b", Is::Body("b")), ("/c", Is::Body(""))]);
    assert_eq!(asked, ["/b", "/c"], "the same is looked up once");
    assert_eq!(lines(&page), ["/b", "/c", "/b"]);
    assert_eq!(token(&page), ("whole", Some("ends-first"), Some(1)));
    let control = page.fields.iter().find(|field| field.name == "cache-control").unwrap();
    assert_eq!((control.value.as_str(), page.ttl_seconds), ("max-age=30", Some(50)));
    let first = &page.includes[0];
    assert_eq!((first.line, first.column, first.depth), (2, 1, 1));
    assert_eq!(first.directive, "<!--#include virtual=\"/b\" -->");
    assert_eq!(first.on_failure[0].token, "error-text");
    assert!(page.depends_on.is_empty() && page.problems.is_empty());
}

#[test]
fn what_has_to_be_fetched_makes_a_page_that_is_open() {
    for is in [Is::Missing, Is::OnDisk("b")] {
        let (page, _) = page(Language::Ssi, "<!--#include virtual='/b'-->", &[("/b", is)]);
        assert_eq!(token(&page), ("open", Some("open"), None));
        assert_eq!(page.fields[0].value, "private, no-cache");
    }
}

#[test]
fn an_include_is_told_with_the_branch_that_led_to_it() {
    let text = "<!--#if expr=\"$cookie_group = alpha\" --><!--#include virtual='/a'-->\n\
                <!--#elif expr=\"$cookie_group = beta\" --><!--#include virtual='/b'--><!--#endif -->";
    let (page, asked) = page(Language::Ssi, text, &[("/b", Is::Body("b"))]);
    assert_eq!(asked, ["/b"]);
    let within: Vec<_> =
        page.includes[0].within.iter().map(|level| (&*level.kind, level.line, &*level.directive)).collect();
    assert_eq!(within, [("else-if", 2, "<!--#elif expr=\"$cookie_group = beta\" -->")]);
    assert_eq!(page.depends_on, ["cookie"]);
    assert_eq!(token(&page), ("whole", Some("personal"), None));
}

#[test]
fn a_failure_is_told_with_what_stands_in_for_it() {
    let text = "x<esi:include src='/a' alt='/b'/><esi:include src='/c' onerror='continue'/>\
                <esi:try><esi:attempt><esi:include src='/d'/><esi:include src='/e'/></esi:attempt>\
                <esi:except><esi:include src='/f'/></esi:except></esi:try>";
    let failing = || Is::Failing(IncludeFailure::Status);
    let fragments = [
        ("/a", failing()),
        ("/b", Is::Body("b")),
        ("/c", Is::Refused(IncludeFailure::Climbing)),
        ("/d", Is::Body("d")),
        ("/e", failing()),
        ("/f", Is::Body("f")),
    ];
    let (page, _) = page(Language::Esi, text, &fragments);
    let expected = ["/a status", "/b instead", "/c climbing", "/d discarded", "/e status discarded", "/f"];
    assert_eq!(lines(&page), expected);
    let tried: Vec<Vec<&str>> = page
        .includes
        .iter()
        .map(|include| include.on_failure.iter().map(|tried| &*tried.token).collect())
        .collect();
    assert_eq!(
        tried,
        [vec!["alt", "fail"], vec!["fail"], vec!["continue"], vec!["except"], vec!["except"], vec!["fail"]]
    );
    assert_eq!(token(&page), ("whole", Some("failed"), None));
}

#[test]
fn a_failure_without_anything_in_its_place_ends_the_page() {
    let fragments = || [("/a", Is::Failing(IncludeFailure::Redirect))];
    for (text, state) in
        [("<esi:include src='/a'/>x", "fragment-failed"), ("x<esi:include src='/a'/>", "cut")]
    {
        let (page, _) = page(Language::Esi, text, &fragments());
        assert_eq!(page.state.token, state);
    }
}

#[test]
fn a_fragment_that_is_a_template_is_followed_by_its_own_includes() {
    let fragments = [
        ("/a", Is::Esi("<esi:include src='/b'/>")),
        ("/b", Is::Ssi("\n <!--#include virtual='/c'-->")),
        ("/c", Is::Body("c")),
        ("/d", Is::Body("d")),
    ];
    let text = "<esi:try><esi:attempt><esi:include src='/a'/></esi:attempt><esi:except>e</esi:except></esi:try>\
                <esi:include src='/d'/>";
    let (page, _) = page(Language::Esi, text, &fragments);
    assert_eq!(lines(&page), ["/a", "/b in 1", "/c in 2", "/d"]);
    let place = &page.includes[2];
    assert_eq!((place.line, place.column, place.depth), (2, 2, 3));
    let tried = &page.includes[1].on_failure[0];
    assert_eq!(tried.sentence, "The attempt around this fragment is discarded, and its except runs.");
}

#[test]
fn a_template_with_a_problem_fails_where_its_own_rule_is_strict() {
    let fragments = [
        ("/good", Is::StrictEsi("<esi:vars>g</esi:vars>")),
        ("/bad", Is::StrictEsi("<esi:inline>x</esi:inline>")),
        ("/lax", Is::Esi("<esi:inline>x</esi:inline>")),
    ];
    let text = "<esi:include src='/good'/><esi:include src='/bad' onerror='continue'/><esi:include src='/lax'/>\
                <esi:include src='/bad' dca='none'/>";
    let (page, _) = page(Language::Esi, text, &fragments);
    assert_eq!(lines(&page), ["/good", "/bad invalid", "/lax", "/bad"]);
}

#[test]
fn what_is_refused_is_told_without_a_url() {
    let fragments =
        [("/a", Is::Esi("<esi:include src='/page' onerror='continue'/><esi:include src='/../b'/>x"))];
    let (page, asked) = page(Language::Esi, "x<esi:include src='/a'/>", &fragments);
    assert_eq!(asked, ["/a"]);
    assert_eq!(lines(&page), ["/a", "- in 1 loop", "- in 1 climbing"]);
    assert_eq!(page.state.token, "cut");
}

#[test]
fn a_fragment_that_becomes_a_variable_decides_what_follows() {
    let fragments = [
        ("/which", Is::Ssi("<!--#echo var='cookie_group' encoding='none'-->")),
        ("/beta", Is::Body("b")),
        ("/plain", Is::Body("q")),
        ("/q", Is::Missing),
    ];
    let text = "<!--#include virtual='/which' set='w'--><!--#include virtual='/plain' set='p'-->\
                <!--#include virtual='/$w'--><!--#include virtual='/$p'-->";
    let (page, asked) = page(Language::Ssi, text, &fragments);
    assert_eq!(asked, ["/which", "/plain", "/beta", "/q"]);
    assert_eq!(page.includes[0].on_failure[0].token, "empty");
    assert_eq!(page.state.token, "open");
}

#[test]
fn a_template_without_a_directive_is_no_page() {
    let (page, _) = page(Language::Esi, "text", &[]);
    assert_eq!(token(&page), ("plain", None, None));
    assert!(page.fields.is_empty());
}

#[test]
fn problems_are_told_with_their_place() {
    let (page, _) = page(Language::Esi, "a\n <esi:inline name='x'/>", &[]);
    let problem = &page.problems[0];
    assert_eq!((problem.line, problem.column, &*problem.problem), (2, 2, "unknown"));
}
