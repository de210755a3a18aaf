//! What each API reads, and what it refuses, with the place of each problem.
#![allow(clippy::unwrap_used)]

use http::{HeaderValue, Version};
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::target::Target;

use larder_cache::purge::{Mode, Selector};

use super::question::PurgeQuestion;
use super::wanted::NAMES_MAX;
use super::*;
use crate::endpoints::line::Endpoint;

/// Where the requests go.
const HOST: &[u8] = b"[::1]:8081";

fn head(method: &str, target: &str, fields: &[(&'static str, &str)]) -> RequestHead {
    let fields = fields
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
    RequestHead {
        method: Method::from_bytes(method.as_bytes()).unwrap(),
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(HOST), Scheme::Http).unwrap(),
        target: Target::parse(Bytes::copy_from_slice(target.as_bytes())).unwrap(),
        version: Version::HTTP_11,
        fields: fields.collect(),
    }
}

fn read(target: &str, fields: &[(&'static str, &str)], content: &str) -> Result<PurgeQuestion, Vec<Problem>> {
    let head = head("POST", target, fields);
    let api = Endpoint::at(head.target.path()).unwrap().purge_api().unwrap();
    api.read(&head, content.as_bytes()).map(|wanted| wanted.question)
}

fn tag(name: &str) -> Selector {
    Selector::Tag(name.as_bytes().into())
}

#[test]
fn the_api_takes_everything_at_once() {
    let asked = read(
        "/api/v1/purges",
        &[],
        r#"{"urls": ["http://a/x"], "tags": ["t"], "prefixes": ["https://a:8080/img/", "/css/"], "hosts": ["b"],
            "patterns": [{"url": "x.*y"}], "groups": [{"origin": "https://a", "name": "g"}], "all": true, "soft": true,
            "site": "a", "wait": 2.5, "by": "cli"}"#,
    )
    .unwrap();
    assert_eq!(asked.wait, Some(std::time::Duration::from_millis(2500)));
    assert_eq!((asked.mode, asked.site.as_deref(), asked.dialect), (Mode::Soft, Some("a"), "cli"));
    let prefix =
        |host: Option<&str>, path: &str| Selector::Prefix { host: host.map(Into::into), path: path.into() };
    for expected in [
        Selector::Url("http://a/x".into()),
        tag("t"),
        prefix(Some("a"), "/img/"),
        prefix(None, "/css/"),
        Selector::Host("b".into()),
        Selector::Group { scheme: Scheme::Https, authority: "a".into(), name: "g".into() },
        Selector::All,
    ] {
        assert!(asked.selectors.contains(&expected), "{expected:?}");
    }
    assert_eq!(asked.selectors.len(), 8);
}

#[test]
fn every_problem_is_told_with_its_path() {
    let problems = |content: &str| {
        let problems = read("/api/v1/purges", &[], content).unwrap_err();
        problems.into_iter().map(|problem| problem.path).collect::<Vec<_>>()
    };
    assert_eq!(problems("{"), [""]);
    assert_eq!(problems("[]"), [""]);
    assert_eq!(problems("{}"), [""]);
    for wait in ["0", "-1", "61", "1e300", "\"10s\""] {
        assert_eq!(problems(&format!("{{\"all\": true, \"wait\": {wait}}}")), ["wait"], "{wait}");
    }
    assert_eq!(
        problems(
            r#"{"urls": "x", "tags": ["a", 1], "prefixes": ["a", "a/b"], "patterns": [{}, {"x": "y"}], "all": 1, "colour": 2}"#
        ),
        ["all", "colour", "patterns[0]", "patterns[1]", "prefixes[0]", "prefixes[1]", "tags[1]", "urls"]
    );
    let many = format!(r#"{{"tags": [{}"x"]}}"#, r#""x","#.repeat(NAMES_MAX));
    assert_eq!(problems(&many), ["tags[10000]"]);
}

#[test]
fn fastlys_paths_are_understood() {
    let asked = |target: &str, fields: &[(&'static str, &str)], content: &str| {
        let asked = read(target, fields, content).unwrap();
        (asked.selectors, asked.mode, asked.site)
    };
    let shop = || Some("shop.example".to_owned());
    let soft = [("fastly-soft-purge", "1")];
    assert_eq!(asked("/service/shop.example/purge/a%2Fb", &[], ""), (vec![tag("a/b")], Mode::Hard, shop()));
    assert_eq!(asked("/service/all/purge_all", &soft, ""), (vec![Selector::All], Mode::Soft, None));
    let keys = [("surrogate-key", "a b")];
    assert_eq!(asked("/service/all/purge", &keys, ""), (vec![tag("a"), tag("b")], Mode::Hard, None));
    let json = r#"{"surrogate_keys": ["a", "b"]}"#;
    assert_eq!(asked("/service/all/purge", &[], json), (vec![tag("a"), tag("b")], Mode::Hard, None));
    let url = || vec![Selector::Url("https://shop.example/x?y".into())];
    assert_eq!(asked("/purge/shop.example/x?y", &[], ""), (url(), Mode::Hard, None));
    assert_eq!(asked("/purge/https%3A%2F%2Fshop.example/x?y", &[], ""), (url(), Mode::Hard, None));
    for content in ["", "{}", r#"{"surrogate_keys": [1]}"#] {
        assert!(read("/service/all/purge", &[], content).is_err(), "{content}");
    }
    let many = [("surrogate-key", &*"a ".repeat(257))];
    assert!(read("/service/all/purge", &many, "").is_err());
}

#[test]
fn cloudflares_path_is_understood() {
    let path = "/client/v4/zones/shop.example/purge_cache";
    let asked = read(
        path,
        &[],
        r#"{"files": ["http://a/x", {"url": "http://a/y", "headers": {}}], "tags": ["t"], "hosts": ["a"], "prefixes": ["a/b"]}"#,
    )
    .unwrap();
    assert_eq!(asked.site.as_deref(), Some("shop.example"));
    for expected in [
        Selector::Url("http://a/x".into()),
        Selector::Url("http://a/y".into()),
        tag("t"),
        Selector::Host("a".into()),
        Selector::Prefix { host: Some("a".into()), path: "/b/".into() },
    ] {
        assert!(asked.selectors.contains(&expected), "{expected:?}");
    }
    assert_eq!(read(path, &[], r#"{"purge_everything": true}"#).unwrap().selectors, [Selector::All]);
    for content in ["", "{}", r#"{"files": [1]}"#, r#"{"purge_everything": false}"#, r#"{"x": []}"#] {
        assert!(read(path, &[], content).is_err(), "{content}");
    }
}

#[test]
fn no_page_of_another_site_can_send_what_is_taken() {
    let may =
        |method: &str, fields: &[(&'static str, &str)]| may_change(&head(method, "/api/v1/purges", fields));
    assert!(may("POST", &[("content-type", "application/json; charset=utf-8")]));
    assert!(may("POST", &[("fastly-key", "x")]) && may("POST", &[("authorization", "Bearer x")]));
    assert!(!may("POST", &[]) && !may("POST", &[("content-type", "text/plain")]));
    assert!(may("POST", &[("content-type", "application/json"), ("origin", "http://[::1]:8081")]));
    for origin in [
        "https://evil.example",
        "null",
        "http://[::1]",
        "http://[::1]:3000",
        "http://127.0.0.1:8081",
        "http://[::1]:8081.evil.example",
    ] {
        assert!(!may("POST", &[("content-type", "application/json"), ("origin", origin)]), "{origin}");
    }
}
