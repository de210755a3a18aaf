//! How the name of a value is made: the template that the application and larder share.
//!
//! In: a request, or a URL alone. Out: the name under which its value lies. A cookie or a field that the request has twice makes no
//! name, since nobody knows which of them the application meant. A template with cookies or fields makes none of a URL alone either.
//! **Invariant**: two requests with one cache key have one name; [`KeyTemplate::fits`] is what a rule has to hold for that.

use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderName;
use larder_cache::CachePolicy;
use larder_http::fields::cookie;
use larder_http::message::{RequestHead, Scheme};
use larder_tier::{CacheKey, TargetUri};
use smallvec::SmallVec;

/// A part of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// As it stands there.
    Text(String),
    /// `http` or `https`.
    Scheme,
    /// In lower case, with its port where that is not the scheme's own.
    Host,
    /// As the origin gets it.
    Path,
    /// Likewise, without its `?`; empty where there is none.
    Query,
    /// Path and query.
    Target,
    /// The value of a cookie; empty where there is none.
    Cookie(String),
    /// The value of a request field; empty where there is none.
    Field(HeaderName),
}

/// How names are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTemplate(Vec<KeyPart>);

impl KeyTemplate {
    /// Of these parts, in their order.
    pub fn new(parts: Vec<KeyPart>) -> Self {
        Self(parts)
    }

    /// Whether what tells hosts apart is part of it.
    pub fn has_host(&self) -> bool {
        self.0.contains(&KeyPart::Host)
    }

    /// Whether a URL alone makes a name.
    pub(crate) fn is_of_uri(&self) -> bool {
        !self.0.iter().any(|part| matches!(part, KeyPart::Cookie(_) | KeyPart::Field(_)))
    }

    fn cookies(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter_map(|part| if let KeyPart::Cookie(name) = part { Some(name.as_str()) } else { None })
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &HeaderName> {
        self.0.iter().filter_map(|part| if let KeyPart::Field(name) = part { Some(name) } else { None })
    }

    /// Whether names tell apart what the cache key of such a rule does, and nothing else. Where the key had more, one
    /// name would stand for several keys. Where it had less, memory would give one visitor the copy of another's value.
    pub(crate) fn fits(&self, policy: &CachePolicy) -> bool {
        let has_cookie = |name: &str| policy.keyed_cookies.iter().any(|keyed| keyed == name);
        let is_keyed =
            self.cookies().all(has_cookie) && self.fields().all(|name| policy.keyed_fields.contains(name));
        is_keyed
            && policy.keyed_cookies.iter().all(|keyed| self.cookies().any(|name| name == keyed))
            && policy.keyed_fields.iter().all(|keyed| self.fields().any(|name| name == keyed))
    }

    /// The name for a request.
    pub(crate) fn of_request(&self, request: &RequestHead) -> Option<Bytes> {
        self.name(&TargetUri::of(request), |part, name| match part {
            KeyPart::Cookie(wanted) => {
                let pairs = cookie::pairs(&request.fields).filter(|(other, _)| *other == wanted.as_bytes());
                append_one(pairs.map(|(_, value)| value), name)
            }
            KeyPart::Field(wanted) => {
                let values = request.fields.get_all(wanted).iter();
                append_one(values.map(http::HeaderValue::as_bytes), name)
            }
            _ => Some(()),
        })
    }

    /// The name for a URL.
    pub(crate) fn of_uri(&self, uri: &TargetUri<'_>) -> Option<Bytes> {
        self.name(uri, |_, _| None)
    }

    /// The names for whatever lies under a base; none where a URL alone makes none.
    pub(crate) fn of_base(&self, key: &CacheKey) -> SmallVec<[Bytes; 2]> {
        let schemes = match self.0.contains(&KeyPart::Scheme) {
            true => &[Scheme::Http, Scheme::Https][..],
            false => &[Scheme::Http],
        };
        schemes.iter().filter_map(|scheme| self.of_uri(&TargetUri::of_base(key, *scheme)?)).collect()
    }

    /// `of_request` appends what only a request has.
    fn name(
        &self,
        uri: &TargetUri<'_>,
        of_request: impl Fn(&KeyPart, &mut BytesMut) -> Option<()>,
    ) -> Option<Bytes> {
        let mut name = BytesMut::new();
        for part in &self.0 {
            match part {
                KeyPart::Text(text) => name.put_slice(text.as_bytes()),
                KeyPart::Scheme => name.put_slice(uri.scheme.as_str().as_bytes()),
                KeyPart::Host => name.put_slice(uri.authority.as_bytes()),
                KeyPart::Path => name.put_slice(uri.path.as_bytes()),
                KeyPart::Query => name.put_slice(uri.query.unwrap_or_default().as_bytes()),
                KeyPart::Target => {
                    name.put_slice(uri.path.as_bytes());
                    if let Some(query) = uri.query {
                        name.put_u8(b'?');
                        name.put_slice(query.as_bytes());
                    }
                }
                KeyPart::Cookie(_) | KeyPart::Field(_) => of_request(part, &mut name)?,
            }
        }
        Some(name.freeze())
    }
}

/// Appends the only one of `values`, or nothing where there is none.
fn append_one<'a>(mut values: impl Iterator<Item = &'a [u8]>, name: &mut BytesMut) -> Option<()> {
    let first = values.next();
    if values.next().is_some() {
        return None;
    }
    name.put_slice(first.unwrap_or_default());
    Some(())
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT_LANGUAGE, COOKIE};

    use super::KeyPart::{Cookie, Field, Host, Path, Query, Scheme as OfScheme, Target, Text};
    use super::*;
    use crate::tests::request;

    fn template(parts: &[KeyPart]) -> KeyTemplate {
        KeyTemplate::new(parts.to_vec())
    }

    fn check(parts: &[KeyPart], request: &RequestHead, expected: Option<&str>) {
        let name = template(parts).of_request(request);
        let name = name.map(|name| name.escape_ascii().to_string());
        assert_eq!(name.as_deref(), expected, "{parts:?}");
    }

    #[test]
    fn a_name_is_made_of_the_parts_of_a_request() {
        let asked = request("/a/b?x=1&y", &[(COOKIE, "lang=de; theme=dark"), (ACCEPT_LANGUAGE, "de")]);
        check(&[Target], &asked, Some("/a/b?x=1&y"));
        check(&[Text("page:".into()), Host, Path], &asked, Some("page:example.com:8080/a/b"));
        check(&[OfScheme, Text("|".into()), Query], &asked, Some("http|x=1&y"));
        check(&[Path, Text("#".into()), Query], &request("/a", &[]), Some("/a#"));
        check(&[Target, Cookie("lang".into())], &asked, Some("/a/b?x=1&yde"));
        check(&[Target, Cookie("none".into()), Field(ACCEPT_LANGUAGE)], &asked, Some("/a/b?x=1&yde"));
    }

    #[test]
    fn a_cookie_or_a_field_that_is_there_twice_makes_no_name() {
        let cookies = request("/", &[(COOKIE, "lang=de; lang=en")]);
        check(&[Target, Cookie("lang".into())], &cookies, None);
        let fields = request("/", &[(ACCEPT_LANGUAGE, "de"), (ACCEPT_LANGUAGE, "en")]);
        check(&[Target, Field(ACCEPT_LANGUAGE)], &fields, None);
        check(&[Target], &fields, Some("/"));
    }

    #[test]
    fn a_url_alone_makes_names_for_both_schemes_where_they_differ() {
        let key = CacheKey::new("example.com", "/a?b");
        let names = |parts: &[KeyPart]| -> Vec<String> {
            let names = template(parts).of_base(&key).into_iter();
            names.map(|name| name.escape_ascii().to_string()).collect()
        };
        assert_eq!(names(&[Target]), ["/a?b"]);
        assert_eq!(names(&[OfScheme, Target]), ["http/a?b", "https/a?b"]);
        assert!(names(&[Target, Cookie("lang".into())]).is_empty());
    }

    #[test]
    fn a_template_fits_a_key_that_tells_apart_the_same() {
        let policy = |cookies: &[&str], fields: &[HeaderName]| CachePolicy {
            keyed_cookies: cookies.iter().map(|name| (*name).to_owned()).collect(),
            keyed_fields: fields.to_vec(),
            ..CachePolicy::default()
        };
        let plain = template(&[Target]);
        let both = template(&[Target, Cookie("lang".into()), Field(ACCEPT_LANGUAGE)]);
        assert!(plain.fits(&policy(&[], &[])) && both.fits(&policy(&["lang"], &[ACCEPT_LANGUAGE])));
        for policy in [
            policy(&["lang"], &[]),
            policy(&[], &[ACCEPT_LANGUAGE]),
            policy(&["a", "lang"], &[ACCEPT_LANGUAGE]),
        ] {
            assert!(!plain.fits(&policy) && !both.fits(&policy), "{policy:?}");
        }
        assert!(!both.fits(&policy(&[], &[])), "memory would give one visitor's copy to another");
    }
}
