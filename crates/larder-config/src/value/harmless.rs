//! Names of cookies that say nothing of whose page a request gets, with one `*` for any text.
//!
//! Letter case counts: a name that only resembles a harmless one is none. `"default"` stands for the names that larder knows
//! ([`larder_http::fields::cookie_names::HARMLESS`]).

use crate::schema::{DEFAULT, Text, TextSetting};
use crate::value::name::is_cookie_name;

/// Cookies by which an application does not make its pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HarmlessCookie {
    /// The names that larder knows.
    Known,
    /// A name; one `*` in it stands for any text.
    Pattern(String),
}

impl TextSetting for HarmlessCookie {
    const TEXT: Text = Text {
        noun: "a harmless cookie's name",
        examples: r#""theme", "_stats_*""#,
        about: "Letters, digits and ``!#$%&'+-.^_`|~``; one `*` stands for any text. Letter case counts. `\"default\"` stands \
                for the names that larder knows.",
        pattern: Some(
            r"^([!#$%&'+.^_`|~0-9A-Za-z-]+\*?[!#$%&'+.^_`|~0-9A-Za-z-]*|\*[!#$%&'+.^_`|~0-9A-Za-z-]+)$",
        ),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text == DEFAULT {
            return Ok(Self::Known);
        }
        let name = text.replacen('*', "", 1);
        if name.is_empty() && text == "*" {
            return Err(Some("cookies = \"ignore\" makes every cookie harmless".to_owned()));
        }
        if name.contains('*') {
            return Err(Some("one `*` is enough".to_owned()));
        }
        if !is_cookie_name(&name) {
            return Err(None);
        }
        Ok(Self::Pattern(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_star_stands_for_any_text() {
        for text in ["theme", "_ga*", "mp_*_mixpanel", "*_seen"] {
            assert_eq!(HarmlessCookie::from_text(text), Ok(HarmlessCookie::Pattern(text.to_owned())));
        }
        assert_eq!(HarmlessCookie::from_text("default"), Ok(HarmlessCookie::Known));
        for text in ["", "*", "a*b*", "a b", "a=b", "**"] {
            assert!(HarmlessCookie::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_known_name_could_be_written_in_a_config() {
        for name in larder_http::fields::cookie_names::HARMLESS {
            assert!(matches!(HarmlessCookie::from_text(name), Ok(HarmlessCookie::Pattern(_))), "{name}");
        }
    }
}
