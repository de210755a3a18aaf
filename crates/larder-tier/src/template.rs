//! How a name in another program's memory is made: the template that the application and larder share.
//!
//! In: a request, or a URL alone. Out: the name under which its value or its version lies. A cookie or a field that the request has twice makes no
//! name, since it is not known which of them the application meant. A template with cookies, fields or versions makes none of a URL
//! alone either.
//! **Invariant**: two requests with one cache key have one name; [`KeyTemplate::fits`] is what a rule has to hold for that.

use http::HeaderName;
use larder_http::fields::cookie;
use larder_http::message::{RequestHead, Scheme};
use smallvec::SmallVec;

use crate::{CacheKey, TargetUri};

/// A name. Short ones need no allocation.
pub type TemplateName = SmallVec<[u8; 128]>;

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
    /// The versions that the rule has, joined by dots.
    Versions,
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

    /// Whether versions are part of it.
    pub fn has_versions(&self) -> bool {
        self.0.contains(&KeyPart::Versions)
    }

    /// Whether a URL alone makes a name.
    pub fn is_of_uri(&self) -> bool {
        !self.0.iter().any(|part| matches!(part, KeyPart::Cookie(_) | KeyPart::Field(_) | KeyPart::Versions))
    }

    fn cookies(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter_map(|part| if let KeyPart::Cookie(name) = part { Some(name.as_str()) } else { None })
    }

    /// The request fields that are part of it.
    pub fn fields(&self) -> impl Iterator<Item = &HeaderName> {
        self.0.iter().filter_map(|part| if let KeyPart::Field(name) = part { Some(name) } else { None })
    }

    /// Whether names tell apart what a cache key with these cookies and fields does, and nothing else. Where the key had more, one
    /// name would stand for several keys. Where it had less, memory would give one visitor the copy of another's value.
    pub fn fits(&self, cookies: &[String], fields: &[HeaderName]) -> bool {
        let has_cookie = |name: &str| cookies.iter().any(|keyed| keyed == name);
        let is_keyed = self.cookies().all(has_cookie) && self.fields().all(|name| fields.contains(name));
        is_keyed
            && cookies.iter().all(|keyed| self.cookies().any(|name| name == keyed))
            && fields.iter().all(|keyed| self.fields().any(|name| name == keyed))
    }

    /// The name for a request, whose rule has these versions.
    pub fn of_request(&self, versions: Option<&[u8]>, request: &RequestHead) -> Option<TemplateName> {
        self.name(&TargetUri::of(request), |part, name| match part {
            KeyPart::Versions => append_some(versions, name),
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

    /// The name for a URL, of which a response with these versions is stored.
    pub fn of_uri(&self, uri: &TargetUri<'_>, versions: Option<&[u8]>) -> Option<TemplateName> {
        self.name(uri, |part, name| match part {
            KeyPart::Versions => append_some(versions, name),
            _ => None,
        })
    }

    /// The names for whatever lies under a base; none where a URL alone makes none, and `key` has no versions.
    pub fn of_base(&self, key: &CacheKey) -> SmallVec<[TemplateName; 2]> {
        let schemes = match self.0.contains(&KeyPart::Scheme) {
            true => &[Scheme::Http, Scheme::Https][..],
            false => &[Scheme::Http],
        };
        schemes
            .iter()
            .filter_map(|scheme| self.of_uri(&TargetUri::of_base(key, *scheme)?, key.versions()))
            .collect()
    }

    /// `of_request` appends what only a request has.
    fn name(
        &self,
        uri: &TargetUri<'_>,
        of_request: impl Fn(&KeyPart, &mut TemplateName) -> Option<()>,
    ) -> Option<TemplateName> {
        let mut name = TemplateName::new();
        for part in &self.0 {
            match part {
                KeyPart::Text(text) => name.extend_from_slice(text.as_bytes()),
                KeyPart::Scheme => name.extend_from_slice(uri.scheme.as_str().as_bytes()),
                KeyPart::Host => name.extend_from_slice(uri.authority.as_bytes()),
                KeyPart::Path => name.extend_from_slice(uri.path.as_bytes()),
                KeyPart::Query => name.extend_from_slice(uri.query.unwrap_or_default().as_bytes()),
                KeyPart::Target => {
                    name.extend_from_slice(uri.path.as_bytes());
                    if let Some(query) = uri.query {
                        name.push(b'?');
                        name.extend_from_slice(query.as_bytes());
                    }
                }
                KeyPart::Cookie(_) | KeyPart::Field(_) | KeyPart::Versions => of_request(part, &mut name)?,
            }
        }
        Some(name)
    }
}

fn append_some(value: Option<&[u8]>, name: &mut TemplateName) -> Option<()> {
    name.extend_from_slice(value?);
    Some(())
}

/// Appends the only one of `values`, or nothing where there is none.
fn append_one<'a>(mut values: impl Iterator<Item = &'a [u8]>, name: &mut TemplateName) -> Option<()> {
    let first = values.next();
    if values.next().is_some() {
        return None;
    }
    name.extend_from_slice(first.unwrap_or_default());
    Some(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bytes::Bytes;
    use http::header::{ACCEPT_LANGUAGE, COOKIE};
    use http::{HeaderMap, HeaderValue, Method, Version};
    use larder_http::authority::Authority;
    use larder_http::target::Target as RequestTarget;

    use super::KeyPart::{Cookie, Field, Host, Path, Query, Scheme as OfScheme, Target, Text, Versions};
    use super::*;

    fn request(target: &'static str, lines: &[(HeaderName, &'static str)]) -> RequestHead {
        let mut fields = HeaderMap::new();
        for (name, value) in lines {
            fields.append(name, HeaderValue::from_static(value));
        }
        RequestHead {
            method: Method::GET,
            scheme: Scheme::Http,
            authority: Authority::parse(Bytes::from_static(b"example.com:8080"), Scheme::Http).unwrap(),
            target: RequestTarget::parse(Bytes::from_static(target.as_bytes())).unwrap(),
            version: Version::HTTP_11,
            fields,
        }
    }

    fn template(parts: &[KeyPart]) -> KeyTemplate {
        KeyTemplate::new(parts.to_vec())
    }

    fn check(parts: &[KeyPart], request: &RequestHead, expected: Option<&str>) {
        let name = template(parts).of_request(Some(b"7.1"), request);
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
        check(&[Path, Text(":version=".into()), Versions], &asked, Some("/a/b:version=7.1"));
        assert_eq!(template(&[Path, Versions]).of_request(None, &asked), None);
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
        let mut key = CacheKey::new("example.com", "/a?b");
        let names = |parts: &[KeyPart], key: &CacheKey| -> Vec<String> {
            let names = template(parts).of_base(key).into_iter();
            names.map(|name| name.escape_ascii().to_string()).collect()
        };
        assert_eq!(names(&[Target], &key), ["/a?b"]);
        assert_eq!(names(&[OfScheme, Target], &key), ["http/a?b", "https/a?b"]);
        assert!(names(&[Target, Cookie("lang".into())], &key).is_empty());
        assert!(names(&[Target, Versions], &key).is_empty());
        key.push_part(b"http");
        key.push_versions(b"3");
        assert_eq!(names(&[Target, Text("@".into()), Versions], &key), ["/a?b@3"]);
    }

    #[test]
    fn a_template_fits_a_key_that_tells_apart_the_same() {
        let fits = |template: &KeyTemplate, cookies: &[&str], fields: &[HeaderName]| {
            let cookies: Vec<String> = cookies.iter().map(|name| (*name).to_owned()).collect();
            template.fits(&cookies, fields)
        };
        let plain = template(&[Target]);
        let both = template(&[Target, Cookie("lang".into()), Field(ACCEPT_LANGUAGE)]);
        assert!(fits(&plain, &[], &[]) && fits(&both, &["lang"], &[ACCEPT_LANGUAGE]));
        for (cookies, fields) in
            [(&["lang"][..], &[][..]), (&[], &[ACCEPT_LANGUAGE]), (&["a", "lang"], &[ACCEPT_LANGUAGE])]
        {
            assert!(
                !fits(&plain, cookies, fields) && !fits(&both, cookies, fields),
                "{cookies:?} {fields:?}"
            );
        }
        assert!(!fits(&both, &[], &[]), "memory would give one visitor's copy to another");
    }
}
