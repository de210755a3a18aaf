//! Media types (RFC 9110 8.3.1): one that a response gets, and patterns or names for those that responses have.
//!
//! A pattern is for type and subtype alone. Parameters such as `charset` are no part of what is compared, so a pattern
//! that has some would never match, and is refused.

use crate::document::source::shorten;
use crate::schema::{Text, TextSetting};

/// The longest type or pattern, in bytes.
const BYTES_MAX: usize = 255;

/// A pattern for media types, in lower case; `*` stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MediaPattern(String);

impl MediaPattern {
    /// The pattern, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TextSetting for MediaPattern {
    const TEXT: Text = Text {
        noun: "a media type pattern",
        examples: r#""video/*", "application/json", "*/*+xml""#,
        about: "Compared with type and subtype in Content-Type, without parameters and without regard to case; `*` stands \
                for any run of characters.",
        pattern: Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text.contains(';') {
            return Err(Some("types are compared without their parameters".to_owned()));
        }
        if text == "*" {
            return Err(Some("did you mean \"*/*\"?".to_owned()));
        }
        match text.split_once('/') {
            Some((kind, subtype)) if is_token(kind) && is_token(subtype) && text.len() <= BYTES_MAX => {
                Ok(Self(text.to_ascii_lowercase()))
            }
            None if is_token(text) => Err(Some(format!("did you mean \"{}/*\"?", shorten(text)))),
            _ => Err(None),
        }
    }
}

/// A media type with its parameters, as Content-Type has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MediaType(String);

impl MediaType {
    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TextSetting for MediaType {
    const TEXT: Text = Text {
        noun: "a media type",
        examples: r#""application/json", "text/html; charset=utf-8""#,
        about: "As Content-Type has it, parameters and all.",
        pattern: Some("^[!#$%&'+.^_`|~0-9A-Za-z-]+/[!#$%&'+.^_`|~0-9A-Za-z-]+([ ]*;.*)?$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let essence = text.split(';').next().unwrap_or_default().trim_end_matches(' ');
        if essence.contains('*') {
            return Err(Some("one type, not a pattern".to_owned()));
        }
        let is_type =
            essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
        let is_plain = text.len() <= BYTES_MAX && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let is_trimmed = !text.ends_with([' ', ';']);
        (is_type && is_plain && is_trimmed).then(|| Self(text.to_owned())).ok_or(None)
    }
}

/// Type and subtype, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BareMediaType(String);

impl BareMediaType {
    /// In lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TextSetting for BareMediaType {
    const TEXT: Text = Text {
        noun: "a media type without parameters",
        examples: r#""text/html", "application/xhtml+xml""#,
        about: "Compared with type and subtype in Content-Type, without parameters and without regard to case.",
        pattern: Some("^[!#$%&'+.^_`|~0-9A-Za-z-]+/[!#$%&'+.^_`|~0-9A-Za-z-]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text.contains(';') {
            return Err(Some("types are compared without their parameters".to_owned()));
        }
        MediaType::from_text(text).map(|MediaType(text)| Self(text.to_ascii_lowercase()))
    }
}

/// Whether `text` is a token (RFC 9110 5.6.2), of which a `*` may be a part.
fn is_token(text: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_a_type_and_a_subtype_and_nothing_else() {
        for (text, expected) in [
            ("video/*", Ok("video/*")),
            ("Application/JSON", Ok("application/json")),
            ("*/*+xml", Ok("*/*+xml")),
            ("video", Err(Some("did you mean \"video/*\"?"))),
            ("*", Err(Some("did you mean \"*/*\"?"))),
            ("text/html; charset=utf-8", Err(Some("types are compared without their parameters"))),
            ("text/", Err(None)),
            ("/html", Err(None)),
            ("a/b/c", Err(None)),
            ("text/ht ml", Err(None)),
            ("", Err(None)),
        ] {
            let read = MediaPattern::from_text(text).map(|pattern| pattern.as_str().to_owned());
            let expected = expected.map(str::to_owned).map_err(|hint: Option<&str>| hint.map(str::to_owned));
            assert_eq!(read, expected, "{text}");
        }
        assert!(MediaPattern::from_text(&format!("a/{}", "b".repeat(BYTES_MAX))).is_err());
    }

    #[test]
    fn a_bare_type_has_neither_parameters_nor_a_star() {
        for (text, expected) in [
            ("text/html", Ok("text/html")),
            ("Application/XHTML+xml", Ok("application/xhtml+xml")),
            ("text/html; charset=utf-8", Err(Some("types are compared without their parameters"))),
            ("text/*", Err(Some("one type, not a pattern"))),
            ("text/html ", Err(None)),
            ("html", Err(None)),
        ] {
            let read = BareMediaType::from_text(text).map(|bare| bare.as_str().to_owned());
            let expected = expected.map(str::to_owned).map_err(|hint: Option<&str>| hint.map(str::to_owned));
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn a_type_may_have_parameters_and_no_star() {
        for (text, expected) in [
            ("application/json", Ok(())),
            ("text/html; charset=utf-8", Ok(())),
            ("text/html;charset=\"utf-8\"", Ok(())),
            ("text/*", Err(Some("one type, not a pattern"))),
            ("json", Err(None)),
            ("a/b/c", Err(None)),
            ("text/html;", Err(None)),
            (" text/html", Err(None)),
            ("text/html\r\nSet-Cookie: a=b", Err(None)),
            ("text/html; charset=\u{e9}", Err(None)),
            ("", Err(None)),
        ] {
            let read = MediaType::from_text(text).map(|_| ());
            assert_eq!(read, expected.map_err(|hint: Option<&str>| hint.map(str::to_owned)), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_type_can_be_a_fields_value(text in "\\PC{0,12}|[a-z]{1,3}/[a-z]{1,3}[; =\"a-z]{0,8}") {
            if let Ok(media_type) = MediaType::from_text(&text) {
                proptest::prop_assert!(http::HeaderValue::from_str(media_type.as_str()).is_ok());
            }
        }

        #[test]
        fn what_is_read_reads_back(text in "\\PC{0,12}|[a-zA-Z*+./;-]{0,16}") {
            if let Ok(pattern) = MediaPattern::from_text(&text) {
                proptest::prop_assert_eq!(MediaPattern::from_text(pattern.as_str()), Ok(pattern));
            }
        }
    }
}
