//! How the key or the field of a version is made of a request: a template like that of values.
//!
//! In: `versions`, `{target}`, `ver:{host}`. Out: its parts. One without any part is a version of all requests.

use crate::schema::{Text, TextSetting};
use crate::value::value_key::{ValueKeyPart, parts_of};

/// How keys and fields of versions are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionKey(Vec<ValueKeyPart>);

impl VersionKey {
    /// In their order.
    pub fn parts(&self) -> &[ValueKeyPart] {
        &self.0
    }
}

impl TextSetting for VersionKey {
    const TEXT: Text = Text {
        noun: "a key of versions",
        examples: r#""resource_versions", "{target}", "ver:{host}{path}""#,
        about: "Text with parts in braces, as in a key of values, but for `{version}`. Without any part it is one for all requests.",
        pattern: Some("\\{(scheme|host|path|query|target|url|(cookie|field):[^{}]+)\\}"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let parts = parts_of(text)?;
        match () {
            () if parts.is_empty() => Err(Some("an empty name has no version".to_owned())),
            () if parts.contains(&ValueKeyPart::Version) => {
                Err(Some("a version has no version itself: {target} and the like may stand here".to_owned()))
            }
            () => Ok(Self(parts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_versions_may_have_no_part_and_no_version() {
        let read = |text| VersionKey::from_text(text).map(|key| key.0.len());
        assert_eq!(read("resource_versions"), Ok(1));
        assert_eq!(read("ver:{url}"), Ok(5));
        assert!(
            read("").is_err() && read("{version}").is_err() && read("{x}").is_err() && read("a b").is_err()
        );
    }
}
