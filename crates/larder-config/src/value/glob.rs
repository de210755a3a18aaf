//! Patterns: globs for paths and values, regular expressions for paths.
//!
//! A glob is anchored at both ends and case-sensitive; `*` stands for any run of bytes, `/` included and empty too;
//! every other character stands for itself. There is no escape for `*`: `path_regex` is there for the rare case.
//! [`glob_to_regex`] is the one definition: what checks a config and what matches requests agree.

use crate::schema::{Text, TextSetting};

/// The longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 4096;

/// What one compiled regular expression may take, in bytes.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// The regular expression (for `regex::bytes`, matching any byte) that `glob` means.
pub fn glob_to_regex(glob: &str) -> String {
    let literal = glob.split('*').map(regex::escape).collect::<Vec<_>>();
    // Neighbouring stars mean no more than one, but would cost a scan each.
    let literal = literal
        .iter()
        .enumerate()
        .filter(|(index, part)| !part.is_empty() || *index == 0 || *index == literal.len() - 1);
    let literal = literal.map(|(_, part)| part.as_str()).collect::<Vec<_>>();
    format!("^(?s-u){}$", literal.join(".*"))
}

/// A glob over canonical paths.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathGlob(String);

impl PathGlob {
    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether every path matches.
    pub fn matches_all(&self) -> bool {
        let rest = self.0.strip_prefix('/').unwrap_or(&self.0);
        !rest.is_empty() && rest.bytes().all(|byte| byte == b'*')
    }
}

impl TextSetting for PathGlob {
    const TEXT: Text = Text {
        noun: "a path pattern",
        examples: r#""/", "/static/*", "*.png""#,
        about: "Matched against the whole path, case-sensitively. `*` stands for any run of characters, also across \
                `/`. Paths are compared in their canonical form: escapes of letters, digits and `-._~` decoded, others \
                in upper case, `.` and `..` resolved, empty segments merged.",
        pattern: Some("^[/*][!-\"$->@-~]*$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let refuse = |hint: &str| Err(Some(hint.to_owned()));
        if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
            return Err(None);
        }
        if !text.starts_with(['/', '*']) {
            return refuse("paths begin with \"/\": write \"/\" or \"*\" first");
        }
        if text.contains('?') {
            return refuse("a path has no query: match parameters with `query`");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return refuse("paths hold visible ASCII only: write other bytes as escapes, such as \"%C3%A9\"");
        }
        if has_escape_that_is_decoded(text) {
            return refuse(
                "paths are compared with escapes of letters, digits and \"-._~\" decoded: write them plain",
            );
        }
        if text.contains("//") || text.split('/').any(|segment| matches!(segment, "." | "..")) {
            return refuse("paths are compared without empty and dot segments: this would never match");
        }
        Ok(Self(text.to_owned()))
    }
}

/// Whether a canonical path can never hold an escape of `text`.
fn has_escape_that_is_decoded(text: &str) -> bool {
    text.split('%').skip(1).any(|after| {
        let Some(digits) =
            after.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        else {
            return false;
        };
        let byte = u8::from_str_radix(digits, 16).unwrap_or(0);
        let is_unreserved = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        is_unreserved || digits.bytes().any(|digit| digit.is_ascii_lowercase())
    })
}

/// A regular expression over canonical paths, not anchored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathRegex(String);

impl PathRegex {
    /// As it is written; it compiles.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TextSetting for PathRegex {
    const TEXT: Text = Text {
        noun: "a regular expression",
        examples: r#"'^/user/[0-9]+$', '\.(css|js)$'"#,
        about: "In the syntax of Rust's `regex` crate: no look-around, no back-references, always linear time. Not \
                anchored: write `^` and `$` where they are meant.",
        pattern: None,
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
            return Err(Some(format!("1 to {PATTERN_BYTES_MAX} bytes")));
        }
        let compiled = regex::bytes::RegexBuilder::new(text).size_limit(COMPILED_BYTES_MAX).build();
        match compiled {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(regex::Error::CompiledTooBig(_)) => {
                Err(Some("it compiles to more than 1 MiB: repeat less".to_owned()))
            }
            Err(error) => {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default().trim();
                Err(Some(last.strip_prefix("error: ").unwrap_or(last).to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_star_crosses_slashes_and_all_else_is_literal() {
        for (glob, text, matches) in [
            ("/", "/", true),
            ("/", "/a", false),
            ("/foo*", "/foo", true),
            ("/foo*", "/foo/bar/baz", true),
            ("*.png", "/a/b.png", true),
            ("*.png", "/a/bxpng", false),
            ("*.png", "/a.PNG", false),
            ("/a**b", "/axxb", true),
            ("/a**b", "/ab", true),
            ("**", "/x", true),
            ("a*", "xa", false),
            ("*", "", true),
            ("", "", true),
            ("*x*", "axb\n", true),
            ("/[a]+(b)", "/[a]+(b)", true),
        ] {
            let regex = regex::bytes::Regex::new(&glob_to_regex(glob)).unwrap();
            assert_eq!(regex.is_match(text.as_bytes()), matches, "{glob} {text}");
        }
        let any = regex::bytes::Regex::new(&glob_to_regex("a*\u{e9}")).unwrap();
        assert!(any.is_match(b"a\xff\xc3\xa9"));
    }

    #[test]
    fn a_pattern_that_can_never_match_is_refused() {
        for good in ["/", "*", "/a/*.png", "/caf%C3%A9", "/100%25", "/a.b/..c"] {
            assert!(PathGlob::from_text(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a",
            "/a?b",
            "/a#b",
            "/a b",
            "/caf\u{e9}",
            "/%7Euser",
            "/%c3%a9",
            "//a",
            "/a/../b",
            "/./a",
            "/a\n",
        ] {
            assert!(PathGlob::from_text(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_glob_compiles_and_matches_itself(glob in "\\PC{0,20}") {
            let regex = regex::bytes::Regex::new(&glob_to_regex(&glob)).unwrap();
            proptest::prop_assert!(regex.is_match(glob.as_bytes()));
        }
    }
}
