//! How the key of a value is made of a request: text with parts in braces.
//!
//! In: `page:{host}{target}`. Out: its parts. A brace that is no part's is refused, so that a misspelt part is never taken for text.

use http::HeaderName;

use crate::document::source::shorten;
use crate::reading::nearest;
use crate::schema::{Text, TextSetting};
use crate::value::name::CookieName;

/// The longest template, in bytes.
const BYTES_MAX: usize = 1024;

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueKeyPart {
    /// As it stands there.
    Text(String),
    /// `{scheme}`
    Scheme,
    /// `{host}`
    Host,
    /// `{path}`
    Path,
    /// `{query}`
    Query,
    /// `{target}`
    Target,
    /// `{cookie:NAME}`
    Cookie(CookieName),
    /// `{field:NAME}`
    Field(HeaderName),
    /// `{version}`
    Version,
}

/// How keys of values are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueKey(Vec<ValueKeyPart>);

impl ValueKey {
    /// In their order.
    pub fn parts(&self) -> &[ValueKeyPart] {
        &self.0
    }

    /// Whether hosts have keys of their own.
    pub fn has_host(&self) -> bool {
        self.0.contains(&ValueKeyPart::Host)
    }

    /// Whether a value has another key with each version.
    pub fn has_version(&self) -> bool {
        self.0.contains(&ValueKeyPart::Version)
    }

    /// Its cookies, by name.
    pub fn cookies(&self) -> impl Iterator<Item = &CookieName> {
        self.0.iter().filter_map(|part| if let ValueKeyPart::Cookie(name) = part { Some(name) } else { None })
    }

    /// Its request fields.
    pub fn fields(&self) -> impl Iterator<Item = &HeaderName> {
        self.0.iter().filter_map(|part| if let ValueKeyPart::Field(name) = part { Some(name) } else { None })
    }
}

/// The parts without a name of their own.
const PLAIN: [(&str, ValueKeyPart); 6] = [
    ("scheme", ValueKeyPart::Scheme),
    ("host", ValueKeyPart::Host),
    ("path", ValueKeyPart::Path),
    ("query", ValueKeyPart::Query),
    ("target", ValueKeyPart::Target),
    ("version", ValueKeyPart::Version),
];
/// The name of a part that is several others.
const URL: &str = "url";
const SCHEME_END: &str = "://";

impl TextSetting for ValueKey {
    const TEXT: Text = Text {
        noun: "a key of values",
        examples: r#""{target}", "page:{host}{target}", "{path}:{cookie:lang}""#,
        about: "Text with parts in braces: `{scheme}`, `{host}`, `{path}`, `{query}`, `{target}` (path and query), `{url}` \
                (scheme, `://`, host, target), `{cookie:NAME}`, `{field:NAME}`, and `{version}`, which is that of the rule's \
                `versions`. Path and query are as the origin gets them. The host is in lower case, with its \
                port where that is not the scheme's own.",
        pattern: Some("\\{(scheme|host|path|query|target|url|version|(cookie|field):[^{}]+)\\}"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let parts = parts_of(text)?;
        let is_path = |part: &ValueKeyPart| matches!(part, ValueKeyPart::Path | ValueKeyPart::Target);
        match parts.iter().any(is_path) {
            true => Ok(Self(parts)),
            false => Err(Some("without {path} or {target} all URLs would share one value".to_owned())),
        }
    }
}

/// The parts of a template.
pub(super) fn parts_of(text: &str) -> Result<Vec<ValueKeyPart>, Option<String>> {
    if text.len() > BYTES_MAX {
        return Err(Some(format!("at most {BYTES_MAX} bytes")));
    }
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        let (front, behind) = rest.split_at(at);
        parts.extend((!front.is_empty()).then(|| ValueKeyPart::Text(front.to_owned())));
        let inner = behind.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let Some((name, behind)) = inner else {
            return Err(Some("a brace begins or ends a part, such as {target}".to_owned()));
        };
        match name {
            URL => parts.extend([
                ValueKeyPart::Scheme,
                ValueKeyPart::Text(SCHEME_END.to_owned()),
                ValueKeyPart::Host,
                ValueKeyPart::Target,
            ]),
            name => parts.push(part(name)?),
        }
        rest = behind;
    }
    parts.extend((!rest.is_empty()).then(|| ValueKeyPart::Text(rest.to_owned())));
    match text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(parts),
        false => Err(Some("printable ASCII without blanks".to_owned())),
    }
}

fn part(name: &str) -> Result<ValueKeyPart, Option<String>> {
    if let Some((_, part)) = PLAIN.into_iter().find(|(plain, _)| *plain == name) {
        return Ok(part);
    }
    match name.split_once(':') {
        Some(("cookie", name)) => match CookieName::from_text(name) {
            Ok(name) => Ok(ValueKeyPart::Cookie(name)),
            Err(_) => Err(Some(format!("\"{}\" is no name of a cookie", shorten(name)))),
        },
        Some(("field", name)) => match HeaderName::from_text(name) {
            Ok(name) if name == http::header::COOKIE => {
                Err(Some("name single cookies: {cookie:lang}".to_owned()))
            }
            Ok(name) if name == http::header::AUTHORIZATION => {
                Err(Some("its responses are not shared".to_owned()))
            }
            Ok(name) => Ok(ValueKeyPart::Field(name)),
            Err(_) => Err(Some(format!("\"{}\" is no name of a field", shorten(name)))),
        },
        _ => {
            let near = nearest(name, PLAIN.map(|(plain, _)| plain));
            Err(near.map(|near| format!("did you mean {{{near}}}?")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_text_and_parts_in_braces() {
        let read = |text| ValueKey::from_text(text).map(|key| key.0);
        let text = |text: &str| ValueKeyPart::Text(text.to_owned());
        let lang = CookieName::from_text("lang").map(ValueKeyPart::Cookie);
        assert_eq!(read("{target}"), Ok(vec![ValueKeyPart::Target]));
        assert_eq!(
            read("page:{host}{target}"),
            Ok(vec![text("page:"), ValueKeyPart::Host, ValueKeyPart::Target])
        );
        assert_eq!(
            read("{scheme}://{path}?{query}#{cookie:lang}.{field:Accept-Language}"),
            Ok(vec![
                ValueKeyPart::Scheme,
                text("://"),
                ValueKeyPart::Path,
                text("?"),
                ValueKeyPart::Query,
                text("#"),
                lang.unwrap_or(ValueKeyPart::Scheme),
                text("."),
                ValueKeyPart::Field(http::header::ACCEPT_LANGUAGE),
            ])
        );
    }

    #[test]
    fn what_is_no_key_is_told_why() {
        let brace = "a brace begins or ends a part, such as {target}";
        for (text, hint) in [
            ("{targets}", Some("did you mean {target}?")),
            ("{target}{", Some(brace)),
            ("{target", Some(brace)),
            ("target}", Some(brace)),
            ("{target}{uri}", None),
            ("{host}", Some("without {path} or {target} all URLs would share one value")),
            ("", Some("without {path} or {target} all URLs would share one value")),
            ("{target} x", Some("printable ASCII without blanks")),
            ("{target}{cookie:a b}", Some("\"a b\" is no name of a cookie")),
            ("{target}{field:a b}", Some("\"a b\" is no name of a field")),
            ("{target}{field:Cookie}", Some("name single cookies: {cookie:lang}")),
            ("{target}{field:authorization}", Some("its responses are not shared")),
        ] {
            assert_eq!(ValueKey::from_text(text), Err(hint.map(str::to_owned)), "{text}");
        }
        assert!(ValueKey::from_text(&format!("{{target}}{}", "a".repeat(BYTES_MAX))).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[{}a-z:/]{0,24}|\\PC{0,12}") {
            let _ = ValueKey::from_text(&text);
        }
    }
}
