//! Names of response fields that carry tags.
//!
//! larder takes such a field out of its answers, so a field that means something to clients or to larder is refused.

use http::HeaderName;

use crate::schema::{DEFAULT, Text, TextSetting};
use crate::value::meaning::has_meaning;

/// The fields that are read unless the config says otherwise: what applications, and the plugins for their caches, send.
pub const TAG_FIELDS: &[&str] = &[
    "Surrogate-Key",
    "xkey",
    "Cache-Tag",
    "Cache-Tags",
    "X-Cache-Tags",
    "Purge-Cache-Tags",
    "Edge-Cache-Tag",
    "X-Magento-Tags",
];

/// A field that carries tags, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TagField {
    /// [`TAG_FIELDS`].
    Known,
    /// This one.
    Named(HeaderName),
}

impl TagField {
    /// The fields that are meant, each once.
    pub(crate) fn names(fields: &[Self]) -> Vec<HeaderName> {
        let mut names = Vec::new();
        for field in fields {
            let meant = match field {
                Self::Known => {
                    TAG_FIELDS.iter().filter_map(|name| HeaderName::try_from(*name).ok()).collect()
                }
                Self::Named(name) => vec![name.clone()],
            };
            names.extend(meant);
        }
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }
}

impl TextSetting for TagField {
    const TEXT: Text = Text {
        noun: "a tag field's name",
        examples: r#""Surrogate-Key", "X-Tags""#,
        about: "Letter case does not matter. Fields that mean something else (Set-Cookie, Vary, Cache-Control, Content-Type and \
                their kind) are refused. `\"default\"` stands for the names that larder knows.",
        pattern: HeaderName::TEXT.pattern,
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text == DEFAULT {
            return Ok(Self::Known);
        }
        let name = HeaderName::from_text(text)?;
        let hint = match name.as_str() {
            "cache-groups" => "larder reads it already: a purge names a cache group as a group",
            other if other.starts_with("x-litespeed-") => "`litespeed = true` in the site reads it",
            other if other.ends_with("cache-control") || IS_READ.contains(&other) => {
                "it is not a list of tags: larder reads directives or a time in it"
            }
            _ if has_meaning(&name) => {
                "it means something else, and larder takes a tag field out of its answers"
            }
            _ => return Ok(Self::Named(name)),
        };
        Err(Some(hint.to_owned()))
    }
}

/// Further fields that larder reads in responses.
const IS_READ: [&str; 5] =
    ["larder-purge", "surrogate-control", "x-accel-expires", "x-accel-redirect", "x-reverse-proxy-ttl"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_fields_could_be_named_one_by_one() {
        let named: Result<Vec<_>, _> = TAG_FIELDS.iter().map(|name| TagField::from_text(name)).collect();
        assert_eq!(named.map(|named| TagField::names(&named)), Ok(TagField::names(&[TagField::Known])));
        assert_eq!(TagField::names(&[TagField::Known]).len(), TAG_FIELDS.len());
    }

    #[test]
    fn each_field_is_there_once_in_the_order_of_the_list() {
        let list: Result<Vec<_>, _> =
            ["X-Tags", "XKEY", "default", "x-tags"].map(TagField::from_text).into_iter().collect();
        let names = list.map(|list| TagField::names(&list)).unwrap_or_default();
        let names: Vec<_> = names.iter().map(HeaderName::as_str).collect();
        let begin = ["x-tags", "xkey", "surrogate-key", "cache-tag"];
        assert_eq!((names.get(..4), names.len()), (Some(&begin[..]), 9), "{names:?}");
    }

    #[test]
    fn fields_that_mean_something_else_carry_no_tags() {
        for name in ["CDN-Tag", "X-Tags", "TYPO3-Pid", "X-Cache-Tag"] {
            assert!(matches!(TagField::from_text(name), Ok(TagField::Named(_))), "{name}");
        }
        for name in [
            "Set-Cookie",
            "Vary",
            "Cache-Control",
            "CDN-Cache-Control",
            "Content-Type",
            "Content-Security-Policy",
            "ETag",
            "Cache-Groups",
            "X-LiteSpeed-Tag",
            "X-Robots-Tag",
            "X-Frame-Options",
            "Surrogate-Control",
            "Transfer-Encoding",
            "",
            "a b",
        ] {
            assert!(TagField::from_text(name).is_err(), "{name}");
        }
    }
}
