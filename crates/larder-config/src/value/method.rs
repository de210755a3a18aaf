//! Methods (RFC 9110 9): case-sensitive tokens, never folded.

use http::Method;

use crate::schema::{Text, TextSetting};

impl TextSetting for Method {
    const TEXT: Text = Text {
        noun: "a method",
        examples: r#""GET", "HEAD", "POST""#,
        about: "Letter case matters. CONNECT and TRACE are never served.",
        pattern: Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "QUERY"];
        if let Some(upper) = known.iter().find(|known| **known != text && known.eq_ignore_ascii_case(text)) {
            return Err(Some(format!("methods are case-sensitive: did you mean \"{upper}\"?")));
        }
        match text {
            "CONNECT" | "TRACE" => Err(Some("it is never served".to_owned())),
            _ => Method::from_bytes(text.as_bytes()).map_err(|_| None),
        }
    }
}
