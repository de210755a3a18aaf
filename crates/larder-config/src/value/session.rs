//! Names of cookies that mean a session: whole, or a part of one with a `*` at its ends.
//!
//! Letter case is ignored, since applications differ in it and a session that is missed shows one visitor's page to
//! another. For the same reason a `*` at one end is as good as one at both: the part is found anywhere in a name.
//! `"default"` stands for the names that larder knows ([`larder_http::fields::cookie_names`]).

use crate::schema::{DEFAULT, Text, TextSetting};
use crate::value::name::is_cookie_name;

/// Cookies that mean a session, by name. Letter case does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionCookie {
    /// The names that larder knows.
    Known,
    /// The whole name.
    Whole(String),
    /// A part of the name; an empty one is part of every name.
    Part(String),
}

impl TextSetting for SessionCookie {
    const TEXT: Text = Text {
        noun: "a session cookie's name",
        examples: r#""PHPSESSID", "*sess*""#,
        about: "Letters, digits and ``!#$%&'+-.^_`|~``. Letter case does not matter. A `*` at one end or both makes it a \
                part, which may stand anywhere in a name; `\"*\"` alone is every cookie. `\"default\"` stands for the \
                names that larder knows.",
        pattern: Some(r"^(\*|\*?[!#$%&'+.^_`|~0-9A-Za-z-]+\*?)$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text == DEFAULT {
            return Ok(Self::Known);
        }
        if text == "*" {
            return Ok(Self::Part(String::new()));
        }
        let name = text.strip_prefix('*').unwrap_or(text);
        let name = name.strip_suffix('*').unwrap_or(name);
        if name.contains('*') {
            return Err(Some("a `*` stands at the ends only".to_owned()));
        }
        if !is_cookie_name(name) {
            return Err(None);
        }
        Ok(if name.len() == text.len() { Self::Whole(name.to_owned()) } else { Self::Part(name.to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_at_the_ends_make_a_part() {
        let (whole, part) = (
            |name: &str| SessionCookie::Whole(name.to_owned()),
            |name: &str| SessionCookie::Part(name.to_owned()),
        );
        for (text, expected) in [
            ("sid", Some(whole("sid"))),
            ("ASP.NET_SessionId", Some(whole("ASP.NET_SessionId"))),
            ("*sess*", Some(part("sess"))),
            ("wp_*", Some(part("wp_"))),
            ("*_id", Some(part("_id"))),
            ("*", Some(part(""))),
            ("", None),
            ("**", None),
            ("a*b", None),
            ("a b", None),
            ("a=b", None),
            ("default", Some(SessionCookie::Known)),
            ("*default", Some(part("default"))),
        ] {
            assert_eq!(SessionCookie::from_text(text).ok(), expected, "{text}");
        }
    }
}
