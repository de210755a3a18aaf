//! Cookies that mean a session or a person, by their names.
//!
//! In: a cookie's name, as a client or an application wrote it. Out: whether applications call a session so, or anything
//! else that belongs to one person. Letter case does not matter, and doubt means yes: who misses a session shows one
//! visitor's page to another.

use larder_http::fields::cookie_names::{
    HARMLESS, SESSION_APPLICATIONS, SESSION_NAMES, SESSION_PARTS, SESSION_TEXTS,
};

use super::split_at_star;

/// Names of cookies that mean a session, as a rule has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionNames {
    /// Those that larder knows.
    pub built_in: bool,
    /// Whole names.
    pub exact: Vec<String>,
    /// Parts of names; an empty part matches every name.
    pub containing: Vec<String>,
}

impl SessionNames {
    /// The names that larder knows and no others.
    pub fn known() -> Self {
        Self { built_in: true, ..Self::default() }
    }

    /// Whether `name` means a session.
    pub fn matches(&self, name: &[u8]) -> bool {
        (self.built_in && is_session(name))
            || self.is_named(name)
            || self.containing.iter().any(|text| contains(name, text))
    }

    /// Whether `name` is one of the whole names.
    pub(crate) fn is_named(&self, name: &[u8]) -> bool {
        self.exact.iter().any(|exact| name.eq_ignore_ascii_case(exact.as_bytes()))
    }
}

/// Whether larder knows `name` as that of a session, a login, a cart or a person.
pub(crate) fn is_session(name: &[u8]) -> bool {
    SESSION_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
        || SESSION_TEXTS.iter().any(|text| contains(name, text))
        || SESSION_PARTS.iter().any(|part| has_part(name, part.as_bytes()))
        || SESSION_APPLICATIONS.iter().any(|pattern| is_like(name, pattern))
        || is_hash(name)
}

/// Whether larder knows `name` as one by which a visitor is followed, or by which a visitor's choice is kept.
pub(crate) fn is_visitors(name: &[u8]) -> bool {
    HARMLESS.iter().any(|pattern| is_like(name, pattern))
}

/// Joomla names a session by the MD5 of its secret.
fn is_hash(name: &[u8]) -> bool {
    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit)
}

fn contains(name: &[u8], text: &str) -> bool {
    text.is_empty() || name.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()))
}

/// Whether `part` stands between the ends of `name`, `-`, `_`, `.` and capital letters.
fn has_part(name: &[u8], part: &[u8]) -> bool {
    let is_mark = |byte: &u8| matches!(byte, b'-' | b'_' | b'.');
    name.windows(part.len()).enumerate().any(|(start, window)| {
        let (before, rest) = name.split_at(start);
        let begins = before.last().is_none_or(is_mark) || rest.first().is_some_and(u8::is_ascii_uppercase);
        let behind = rest.get(part.len());
        let ends = behind.is_none_or(|byte| is_mark(byte) || byte.is_ascii_uppercase());
        begins && ends && window.eq_ignore_ascii_case(part)
    })
}

fn is_like(name: &[u8], pattern: &str) -> bool {
    let (before, after) = split_at_star(pattern);
    let begins = name.get(..before.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(before.as_bytes()));
    match after {
        None => begins && name.len() == before.len(),
        Some(after) => {
            let end = name.len().checked_sub(after.len()).filter(|end| *end >= before.len());
            let ends = end.and_then(|end| name.get(end..));
            begins && ends.is_some_and(|end| end.eq_ignore_ascii_case(after.as_bytes()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_added_name_is_a_whole_part_of_the_cookies() {
        for name in [
            "id",
            "user_id",
            "userId",
            "USERID",
            "my-user",
            "a.cart",
            "shop_cart_2",
            "rememberMe",
            "jwt",
            "JWT",
            "customer",
            "visitorX",
            "DokuWiki",
            "dokuwiki",
            "x_dokuwiki",
        ] {
            assert!(is_session(name.as_bytes()), "{name}");
        }
        for name in ["video", "width", "grid", "carton", "accounting", "users", "juid", "identity", "sider"] {
            assert!(!is_session(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn names_of_sessions_ignore_letter_case() {
        for name in
            ["PHPSESSID", "phpsessid", "connect.sid", "SID", "my_Session", "wp-authx", "xCSRFy", "xlOGINy"]
        {
            assert!(is_session(name.as_bytes()), "{name}");
        }
        for name in ["", "side", "theme", "lang", "_ga", "ses", "a", "size", "currency"] {
            assert!(!is_session(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_hash_is_32_hexadecimal_digits_and_a_pattern_without_star_the_whole_name() {
        for (name, expected) in [
            ("4bcf92ba5a3ea0ddf7cc5c1ac1c5dd43", true),
            ("4BCF92BA5A3EA0DDF7CC5C1AC1C5DD43", true),
            ("4bcf92ba5a3ea0ddf7cc5c1ac1c5dd4", false),
            ("4bcf92ba5a3ea0ddf7cc5c1ac1c5dd434", false),
            ("gbcf92ba5a3ea0ddf7cc5c1ac1c5dd43", false),
            ("mybbuser", true),
            ("KC-Access", true),
            ("kc-accesses", false),
            ("mybbusers", false),
            ("xmybbuser", false),
            ("XF_", true),
            ("xf", false),
        ] {
            assert_eq!(is_session(name.as_bytes()), expected, "{name}");
        }
        assert!(is_like(b"ab", "a*b") && is_like(b"AxB", "a*b") && !is_like(b"a", "a*a"));
    }

    #[test]
    fn a_rules_own_names_count_beside_or_instead() {
        let own = |built_in| SessionNames {
            built_in,
            exact: vec!["theme".to_owned()],
            containing: vec!["lang".to_owned()],
        };
        for (name, alone, beside) in
            [("Theme", true, true), ("xLANGx", true, true), ("sid", false, true), ("themes", false, false)]
        {
            let found = [false, true].map(|built_in| own(built_in).matches(name.as_bytes()));
            assert_eq!(found, [alone, beside], "{name}");
        }
        let every = SessionNames { containing: vec![String::new()], ..SessionNames::default() };
        assert!(every.matches(b"x") && !SessionNames::default().matches(b"sid"));
    }
}
