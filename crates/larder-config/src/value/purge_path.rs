//! The path below which a GET is a purge.

use crate::schema::{Text, TextSetting};
use crate::value::glob::PathGlob;

/// A path without a slash at its end, and never `/` alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgePath(String);

impl PurgePath {
    /// The path. What is purged follows it and begins with a slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TextSetting for PurgePath {
    const TEXT: Text = Text {
        noun: "a path to purge below",
        examples: r#""/purge", "/cache/purge""#,
        about: "A path in its canonical form, as for a path pattern but without `*`. A slash at its end does not matter.",
        pattern: Some("^/[!-\"$-)+->@-~]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let refuse = |hint: &str| Err(Some(hint.to_owned()));
        if text.is_empty() {
            return Err(None);
        }
        if !text.starts_with('/') {
            return refuse("a path begins with \"/\"");
        }
        if text == "/" {
            return refuse("every GET would be a purge: take a path that the site does not have");
        }
        if text.contains('*') {
            return refuse("everything below the path is meant: leave the `*` out");
        }
        if text.contains('?') {
            return refuse("a path has no query");
        }
        PathGlob::from_text(text)?;
        Ok(Self(text.strip_suffix('/').unwrap_or(text).to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_canonical_and_not_the_root() {
        for (text, path) in
            [("/purge", "/purge"), ("/purge/", "/purge"), ("/a/b", "/a/b"), ("/%C3%A9", "/%C3%A9")]
        {
            assert_eq!(PurgePath::from_text(text), Ok(PurgePath(path.to_owned())), "{text}");
        }
        for (text, hint) in [
            ("", None),
            ("purge", Some("a path begins with \"/\"")),
            ("/", Some("every GET would be a purge: take a path that the site does not have")),
            ("/purge/*", Some("everything below the path is meant: leave the `*` out")),
            ("/purge?a", Some("a path has no query")),
            ("//", Some("paths are compared without empty and dot segments: this would never match")),
            (
                "/purge/../a",
                Some("paths are compared without empty and dot segments: this would never match"),
            ),
        ] {
            assert_eq!(PurgePath::from_text(text), Err(hint.map(str::to_owned)), "{text}");
        }
    }
}
