//! The cache key of a request, and the target as the origin will see it.
//!
//! Key = canonical authority, raw path, raw query (the base), then scheme and the parts that the rule adds (the
//! variant). A rule that leaves parameters out of the key, or sorts them, changes the target itself: the origin
//! receives exactly what was keyed, so a page made for one query is never found under another.
//! Versions of a rule stand behind the scheme, so a new version is another key under the same base.
//! A QUERY (RFC 10008) adds its content, by a digest that nobody can make collide, and what says how to read it.

mod describe;
mod query;
mod read;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use larder_http::fields::cookie;
use larder_http::message::RequestHead;
use larder_http::target::Target;
use larder_store::CacheKey;

use crate::settings::KeySettings;
use crate::versions::RequestVersions;
pub(crate) use describe::{describe, describe_content, query_changes};
pub(crate) use read::values;

/// The target with the rule's normalisation of the query applied; `None` where it changes nothing.
pub(crate) fn normalise(target: &Target, settings: &KeySettings) -> Option<Target> {
    let query = target.query()?;
    let normal = query::normalise(query, settings)?;
    let text = match normal.as_str() {
        "" => target.path().to_owned(),
        normal => format!("{}?{normal}", target.path()),
    };
    // Parameters of a valid target, fewer or in another order, make a valid target.
    Target::parse(text.into()).ok()
}

/// The key of a request whose target is already normalised. `versions` are those of its rule, where it has some. `content` is that of
/// a QUERY; no other method has any here.
pub(crate) fn key(
    head: &RequestHead,
    settings: &KeySettings,
    versions: Option<&[u8]>,
    content: &[u8],
) -> CacheKey {
    let mut key = CacheKey::new(head.authority.as_str(), head.target.as_str());
    key.push_part(head.scheme.as_str().as_bytes());
    if let Some(versions) = versions {
        key.push_versions(versions);
    }
    for name in &settings.cookies {
        // Every one of that name: applications differ in which of them they believe.
        let pairs = cookie::pairs(&head.fields).filter(|(other, _)| *other == name.as_bytes());
        push_all(&mut key, pairs.map(|(_, value)| value));
    }
    for name in &settings.fields {
        push_all(&mut key, head.fields.get_all(name).iter().map(HeaderValue::as_bytes));
    }
    if head.method.as_str() == "QUERY" {
        push_content(&mut key, &head.fields, content);
    }
    key
}

/// Adds the content of a QUERY to its key, with its type and coding (RFC 10008 2.7).
fn push_content(key: &mut CacheKey, fields: &HeaderMap, content: &[u8]) {
    key.push_part(b"query");
    key.push_part(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, content).as_ref());
    for name in [CONTENT_TYPE, CONTENT_ENCODING] {
        push_all(key, fields.get_all(name).iter().map(HeaderValue::as_bytes));
    }
}

/// The key as people read it: what `key` in Cache-Status says.
pub(crate) fn text(head: &RequestHead, settings: &KeySettings, versions: Option<&RequestVersions>) -> String {
    let mut text = format!("{}://{}{}", head.scheme.as_str(), head.authority.as_str(), head.target.as_str());
    if let Some(versions) = versions {
        text.push_str(&format!(" version {}", versions.told()));
    }
    let mut push = |kind: &str, name: &str, value: &[u8]| {
        text.push_str(&format!(" {kind} {name}={}", String::from_utf8_lossy(value)));
    };
    for name in &settings.cookies {
        for (_, value) in cookie::pairs(&head.fields).filter(|(other, _)| *other == name.as_bytes()) {
            push("cookie", name, value);
        }
    }
    for name in &settings.fields {
        for value in head.fields.get_all(name) {
            push("field", name.as_str(), value.as_bytes());
        }
    }
    text
}

/// `-;` where there is none, else `=` before each and `;` behind the last: an absent value and an empty one are different
/// keys. Read from the front, each mark says what follows, so no two lists look alike.
fn push_all<'a>(key: &mut CacheKey, mut values: impl Iterator<Item = &'a [u8]>) {
    let Some(first) = values.next() else {
        return key.push_marks(b"-;");
    };
    for value in std::iter::once(first).chain(values) {
        key.push_marks(b"=");
        key.push_part(value);
    }
    key.push_marks(b";");
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE;

    use super::*;

    #[test]
    fn the_content_of_a_query_and_how_it_is_to_be_read_count() {
        let key_of = |content: &str, media: Option<&'static str>, coding: Option<&'static str>| {
            let mut head = crate::testing::request("/");
            head.method = http::Method::from_bytes(b"QUERY").unwrap_or_default();
            let fields = [(CONTENT_TYPE, media), (CONTENT_ENCODING, coding)];
            head.fields.extend(
                fields
                    .into_iter()
                    .filter_map(|(name, value)| value.map(|value| (name, HeaderValue::from_static(value)))),
            );
            key(&head, &KeySettings::default(), None, content.as_bytes())
        };
        let one = key_of("q=1", Some("text/plain"), None);
        assert_eq!(one, key_of("q=1", Some("text/plain"), None));
        for other in [
            key_of("q=2", Some("text/plain"), None),
            key_of("q=1", Some("text/html"), None),
            key_of("q=1", None, None),
            key_of("q=1", Some("text/plain"), Some("gzip")),
            key_of("q=1", None, Some("text/plain")),
            key(&crate::testing::request("/"), &KeySettings::default(), None, b""),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn every_cookie_of_a_keyed_name_counts() {
        let settings =
            KeySettings { cookies: vec!["lang".to_owned(), "theme".to_owned()], ..KeySettings::default() };
        let key_of = |cookies: &'static str| {
            let mut head = crate::testing::request("/");
            head.fields.insert(COOKIE, HeaderValue::from_static(cookies));
            key(&head, &settings, None, b"")
        };
        assert_eq!(key_of("lang=en; x=1"), key_of("y=2; lang=en"));
        for other in ["lang=en; lang=de", "lang=de; lang=en", "lang=", "x=1", "theme=en", "lang=en; theme=en"]
        {
            assert_ne!(key_of("lang=en"), key_of(other), "{other}");
        }
    }
}
