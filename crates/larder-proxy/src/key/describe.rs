//! The key part by part, for people who ask why two requests do not share one.
//!
//! In: the same head and settings that [`key`](super::key) makes a key of. Out: names and values, those of the URL first,
//! and what the rule did to the query before. Requests have the same description exactly where they have the same key; a
//! property test holds the two together. Values are escaped, so that nothing in them reaches a terminal.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use larder_http::fields::cookie;
use larder_http::message::RequestHead;
use larder_http::target::Target;

use crate::settings::KeySettings;
use crate::versions::RequestVersions;

/// A part of a key: its name, and its value where the request has one.
pub(crate) type KeyComponent = (String, Option<String>);

/// The parts of the key of a request whose target is already normalised.
pub(crate) fn describe(
    head: &RequestHead,
    settings: &KeySettings,
    versions: Option<&RequestVersions>,
) -> Vec<KeyComponent> {
    let mut parts = vec![
        ("scheme".to_owned(), Some(head.scheme.as_str().to_owned())),
        ("host".to_owned(), Some(head.authority.as_str().to_owned())),
        ("path".to_owned(), Some(head.target.path().to_owned())),
        ("query".to_owned(), head.target.query().map(str::to_owned)),
    ];
    parts.extend(versions.map(|versions| ("version".to_owned(), Some(versions.told()))));
    for name in &settings.cookies {
        let pairs = cookie::pairs(&head.fields).filter(|(other, _)| *other == name.as_bytes());
        push_all(&mut parts, &format!("cookie {name}"), pairs.map(|(_, value)| value));
    }
    for name in &settings.fields {
        push_field(&mut parts, &head.fields, name);
    }
    parts
}

/// The parts that the content of a QUERY adds, in the order of [`push_content`](super::push_content).
pub(crate) fn describe_content(fields: &HeaderMap, content: &[u8]) -> Vec<KeyComponent> {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, content);
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let length = if content.len() == 1 { "1 byte".to_owned() } else { format!("{} bytes", content.len()) };
    let mut parts = vec![("content".to_owned(), Some(format!("sha-256 {hex}, {length}")))];
    for name in [CONTENT_TYPE, CONTENT_ENCODING] {
        push_field(&mut parts, fields, &name);
    }
    parts
}

/// The parameters that a rule took out of a target, and whether the order of the others is another.
pub(crate) fn query_changes(raw: &Target, normal: &Target) -> (Vec<String>, bool) {
    fn pairs(target: &Target) -> Vec<&str> {
        target.query().map(|query| query.split('&').collect()).unwrap_or_default()
    }
    let mut left = pairs(normal);
    let (mut dropped, mut kept) = (Vec::new(), Vec::new());
    for pair in pairs(raw) {
        match left.iter().position(|other| *other == pair) {
            Some(place) => kept.push(left.swap_remove(place)),
            None if pair.is_empty() => {}
            None => dropped.push(pair.to_owned()),
        }
    }
    let reordered = kept != pairs(normal);
    (dropped, reordered)
}

fn push_field(parts: &mut Vec<KeyComponent>, fields: &HeaderMap, name: &http::HeaderName) {
    push_all(parts, &format!("field {name}"), fields.get_all(name).iter().map(HeaderValue::as_bytes));
}

fn push_all<'a>(parts: &mut Vec<KeyComponent>, name: &str, values: impl Iterator<Item = &'a [u8]>) {
    let before = parts.len();
    parts.extend(values.map(|value| (name.to_owned(), Some(value.escape_ascii().to_string()))));
    if parts.len() == before {
        parts.push((name.to_owned(), None));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::key;
    use crate::settings::QueryParts;

    fn target(text: &str) -> Target {
        Target::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn check(raw: &str, settings: &KeySettings, dropped: &[&str], reordered: bool) {
        let raw = target(raw);
        let normal = key::normalise(&raw, settings).unwrap_or_else(|| raw.clone());
        let found = query_changes(&raw, &normal);
        assert_eq!(found, (dropped.iter().map(|&pair| pair.to_owned()).collect(), reordered), "{raw}");
    }

    #[test]
    fn what_a_rule_does_to_a_query_is_told() {
        let except = QueryParts::Except(vec!["utm_*".to_owned()]);
        let sort = KeySettings { query: except, sort: true, ..KeySettings::default() };
        check("/", &sort, &[], false);
        check("/?a=1", &sort, &[], false);
        check("/?b=1&a=2&utm_x=3", &sort, &["utm_x=3"], true);
        check("/?a=2&utm_x=3&b=1&utm_x=3", &sort, &["utm_x=3", "utm_x=3"], false);
        check(
            "/?a=1&b",
            &KeySettings { query: QueryParts::None, ..KeySettings::default() },
            &["a=1", "b"],
            false,
        );
    }

    #[test]
    fn an_absent_value_is_told_apart_from_an_empty_one() {
        let settings = KeySettings { cookies: vec!["lang".to_owned()], ..KeySettings::default() };
        let mut head = crate::testing::request("/?");
        let lang = |head: &RequestHead| describe(head, &settings, None).pop().unwrap();
        assert_eq!(lang(&head), ("cookie lang".to_owned(), None));
        head.fields.insert(http::header::COOKIE, HeaderValue::from_bytes(b"lang=; lang=\xff").unwrap());
        let described = describe(&head, &settings, None);
        assert_eq!(described[3], ("query".to_owned(), Some(String::new())));
        assert_eq!(described[4], ("cookie lang".to_owned(), Some(String::new())));
        assert_eq!(described[5], ("cookie lang".to_owned(), Some("\\xff".to_owned())));
    }

    fn any_head() -> impl Strategy<Value = RequestHead> {
        let cookies = proptest::option::of("(a|b)=[xy]{0,2}(; (a|b)=[xy]{0,2}){0,2}");
        ("/[ab]{0,2}(\\?[ab=&]{0,4})?", cookies, proptest::collection::vec("[xy,]{0,2}", 0..3)).prop_map(
            |(path, cookies, values)| {
                let mut head = crate::testing::request("/");
                head.target = target(&path);
                let cookies = cookies.map(|cookies| HeaderValue::from_str(&cookies).unwrap());
                head.fields.extend(cookies.map(|cookies| (http::header::COOKIE, cookies)));
                for value in values {
                    head.fields.append("x-a", HeaderValue::from_str(&value).unwrap());
                }
                head
            },
        )
    }

    proptest! {
        #[test]
        fn requests_have_one_description_exactly_where_they_have_one_key(
            one in any_head(), other in any_head(), content in "[xy]{0,1}",
        ) {
            let settings = KeySettings {
                cookies: vec!["a".to_owned(), "b".to_owned()],
                fields: vec![http::HeaderName::from_static("x-a")],
                ..KeySettings::default()
            };
            let all = |head: &RequestHead, content: &str| {
                let mut head = head.clone();
                head.method = http::Method::from_bytes(b"QUERY").unwrap();
                let key = key::key(&head, &settings, None, content.as_bytes());
                let mut parts = describe(&head, &settings, None);
                parts.extend(describe_content(&head.fields, content.as_bytes()));
                (key, parts)
            };
            let (one, other) = (all(&one, &content), all(&other, "x"));
            prop_assert_eq!(one.0 == other.0, one.1 == other.1);
        }
    }
}
