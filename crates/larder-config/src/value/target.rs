//! Targeted fields (RFC 9213): Cache-Control for some caches only, under a name of its own.
//!
//! The suffix `-Cache-Control` is a convention and no rule, so any name goes that has no meaning yet. A field that has
//! one is refused: read as directives it would switch off what the origin says in Cache-Control.

use http::HeaderName;

use crate::schema::{DEFAULT, Text, TextSetting};
use crate::value::meaning::has_meaning;

/// The name of a targeted field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetField(HeaderName);

impl TargetField {
    /// The field's name.
    pub fn name(&self) -> &HeaderName {
        &self.0
    }

    /// The one that is read unless the config says otherwise: `CDN-Cache-Control`.
    pub(crate) fn defaults() -> Vec<Self> {
        vec![Self::built_in()]
    }

    fn built_in() -> Self {
        Self(HeaderName::from_static("cdn-cache-control"))
    }
}

impl TextSetting for TargetField {
    const TEXT: Text = Text {
        noun: "a targeted field's name",
        examples: r#""CDN-Cache-Control", "Larder-Cache-Control""#,
        about: "Letter case does not matter. Fields that mean something else (Cache-Control itself, Set-Cookie, Vary and \
                their kind) are refused. `\"default\"` stands for CDN-Cache-Control.",
        pattern: HeaderName::TEXT.pattern,
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text == DEFAULT {
            return Ok(Self::built_in());
        }
        let name = HeaderName::from_text(text)?;
        let hint = match name.as_str() {
            "cache-control" => "it is what a targeted field replaces, and is read anyway",
            "surrogate-control" => "it has a key of its own: `surrogate_control`",
            "x-accel-expires" => "it has a key of its own: `x_accel_expires`",
            "x-reverse-proxy-ttl" => "it has a key of its own: `x_reverse_proxy_ttl`",
            _ if has_meaning(&name) => {
                "it means something else: a targeted field has the directives of Cache-Control under its own name"
            }
            _ => return Ok(Self(name)),
        };
        Err(Some(hint.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_mean_something_else_are_no_targets() {
        for name in ["CDN-Cache-Control", "larder-cache-control", "Edge-Policy"] {
            assert!(TargetField::from_text(name).is_ok(), "{name}");
        }
        assert_eq!(TargetField::from_text("default"), Ok(TargetField::built_in()));
        for name in [
            "Cache-Control",
            "Surrogate-Control",
            "X-Accel-Expires",
            "X-Reverse-Proxy-TTL",
            "Set-Cookie",
            "Expires",
            "Content-Type",
            "Accept-Ranges",
            "Connection",
            "",
            "a b",
        ] {
            assert!(TargetField::from_text(name).is_err(), "{name}");
        }
    }
}
