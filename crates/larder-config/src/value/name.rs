//! Names: of origins, stores and rules, of cookies, of query parameters.

use std::fmt;

use crate::schema::{Text, TextSetting};
use crate::told::sound::sounds_secret;

macro_rules! name {
    ($(#[doc = $about:expr])+ $name:ident, $text:expr, $parse:expr) => {
        name! { $(#[doc = $about])+ $name, $text, $parse, |_: &str| false }
    };
    ($(#[doc = $about:expr])+ $name:ident, $text:expr, $parse:expr, $hides:expr) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// As it is written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TextSetting for $name {
            const TEXT: Text = $text;

            fn from_text(text: &str) -> Result<Self, Option<String>> {
                let check: fn(&str) -> Result<(), Option<String>> = $parse;
                check(text).map(|()| Self(text.to_owned()))
            }

            fn hides_value(&self) -> bool {
                let hides: fn(&str) -> bool = $hides;
                hides(self.as_str())
            }
        }
    };
}

name! {
    /// The name of a member of a fleet.
    MemberName,
    Text {
        noun: "a name",
        examples: r#""web-1", "cache1.example.org""#,
        about: "One to 64 letters, digits, `-`, `_` and `.`.",
        pattern: Some("^[A-Za-z0-9._-]{1,64}$"),
    },
    is_plain_name
}

fn is_plain_name(text: &str) -> Result<(), Option<String>> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let fits = (1..=64).contains(&text.len()) && text.bytes().all(is_plain);
    fits.then_some(()).ok_or_else(|| Some("1 to 64 letters, digits, \"-\", \"_\" and \".\"".to_owned()))
}

name! {
    /// The name of a rule.
    RuleName,
    Text {
        noun: "a name",
        examples: r#""assets", "blog-pages""#,
        about: "One to 64 letters, digits, `-`, `_` and `.`.",
        pattern: Some("^[A-Za-z0-9._-]{1,64}$"),
    },
    is_plain_name
}

name! {
    /// A name of Redis: of a user, or of a master.
    RedisName,
    Text {
        noun: "a name",
        examples: r#""larder", "mymaster""#,
        about: "One to 128 visible ASCII characters.",
        pattern: Some("^[!-~]{1,128}$"),
    },
    |text| {
        let fits = (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then_some(()).ok_or_else(|| Some("1 to 128 visible ASCII characters".to_owned()))
    }
}

name! {
    /// The name of an origin or a store.
    Name,
    Text {
        noun: "a name",
        examples: r#""app", "big-files""#,
        about: "One to 64 letters, digits, `-` and `_`. It labels metrics and log lines.",
        pattern: Some("^[A-Za-z0-9_-]{1,64}$"),
    },
    |text| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let fits = (1..=64).contains(&text.len()) && text.bytes().all(is_plain);
        fits.then_some(()).ok_or_else(|| Some("1 to 64 letters, digits, \"-\" and \"_\"".to_owned()))
    }
}

impl Name {
    /// A name that the code itself gives.
    pub(crate) fn declared(name: &'static str) -> Self {
        Self(name.to_owned())
    }
}

name! {
    /// The name of a cookie. Letter case matters (RFC 6265).
    CookieName,
    Text {
        noun: "a cookie's name",
        examples: r#""lang", "session_id""#,
        about: "Letters, digits and ``!#$%&'*+-.^_`|~``. Letter case matters.",
        pattern: Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"),
    },
    |text| is_cookie_name(text).then_some(()).ok_or(None),
    sounds_secret
}

/// Whether a cookie may have this name: a token (RFC 6265 4.1.1) of at most 256 bytes.
pub(crate) fn is_cookie_name(text: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=256).contains(&text.len()) && text.bytes().all(is_token)
}

name! {
    /// The name of a parameter whose value is not shown, as it is behind percent-encoding; a `*` at an end stands for anything.
    HiddenParameter,
    Text {
        noun: "a parameter's name",
        examples: r#""token", "*_key""#,
        about: "1 to 128 bytes, as the name is behind percent-encoding. A `*` at its beginning or its end stands for anything. \
                Letter case does not count.",
        pattern: Some("^[*]?[^*?&=#;%]*[*]?$"),
    },
    is_hidden_parameter
}

impl HiddenParameter {
    /// Whether a parameter has this name, which is percent-decoded.
    pub(crate) fn covers(&self, name: &str) -> bool {
        let (hidden, name) = (self.0.to_lowercase(), name.to_lowercase());
        match (hidden.strip_prefix('*'), hidden.strip_suffix('*')) {
            (None, None) => name == hidden,
            (Some(end), None) => name.ends_with(end),
            (None, Some(begin)) => name.starts_with(begin),
            (Some(inner), Some(_)) => name.contains(inner.strip_suffix('*').unwrap_or(inner)),
        }
    }
}

fn is_hidden_parameter(text: &str) -> Result<(), Option<String>> {
    if !(1..=128).contains(&text.len()) || text.trim() != text || text.contains(char::is_control) {
        return Err(None);
    }
    if text.contains(['&', '=', '#', ';', '%']) {
        return Err(Some("a name as it is behind percent-encoding, without its value".to_owned()));
    }
    let inner = text.strip_prefix('*').unwrap_or(text);
    match inner.strip_suffix('*').unwrap_or(inner).contains(['*', '?']) {
        true => Err(Some("a `*` stands at an end, and there is no `?`".to_owned())),
        false => Ok(()),
    }
}

name! {
    /// The name of a query parameter as it stands in the query, escapes and all; where parameters are chosen, a `*`
    /// at the end covers every name that begins so.
    ParameterName,
    Text {
        noun: "a parameter's name",
        examples: r#""page", "utm_*""#,
        about: "As it stands in the query, escapes and all. Where parameters are chosen, a `*` at the end covers every \
                name that begins so.",
        pattern: Some("^[!-\"$%'-<>-~]+$"),
    },
    |text| {
        if text.contains(['&', '=', '#']) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Some("a name as it stands in the query, escaped".to_owned()));
        }
        (1..=1024).contains(&text.len()).then_some(()).ok_or(None)
    },
    sounds_secret
}
