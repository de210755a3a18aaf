//! Names and values of fields (RFC 9110 5).
//!
//! Fields that frame a message or belong to one connection are not a rule's to match, key or edit: larder consumes
//! them and writes its own. Host is the site's affair.

use http::{HeaderName, HeaderValue};
use larder_http::connection::is_connection_level;

use crate::schema::{Text, TextSetting};
use crate::told::sound::sounds_secret;

/// The longest value that may be set, in bytes.
const VALUE_BYTES_MAX: usize = 8192;

impl TextSetting for HeaderName {
    const TEXT: Text = Text {
        noun: "a field's name",
        examples: r#""Accept-Language", "X-Device""#,
        about: "Letter case does not matter. Fields of the connection and its framing (Connection, Upgrade, \
                Transfer-Encoding, Content-Length and their kind) and Host are refused.",
        pattern: Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let name = HeaderName::try_from(text).map_err(|_| None)?;
        match name.as_str() {
            "host" => Err(Some("the host decides the site (`hosts`), and goes on as it came".to_owned())),
            "content-length" => Err(Some("larder frames messages itself".to_owned())),
            _ if is_connection_level(&name) => {
                Err(Some("it belongs to the connection: larder consumes it and writes its own".to_owned()))
            }
            _ => Ok(name),
        }
    }

    fn hides_value(&self) -> bool {
        sounds_secret(self.as_str())
    }
}

impl TextSetting for HeaderValue {
    const TEXT: Text = Text {
        noun: "a field's value",
        examples: r#""no-store", "max-age=60, public""#,
        about: "At most 8192 bytes, without controls, and without blanks at its ends.",
        pattern: None,
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text.len() > VALUE_BYTES_MAX {
            return Err(Some(format!("at most {VALUE_BYTES_MAX} bytes")));
        }
        if text.trim_matches([' ', '\t']) != text {
            return Err(Some("blanks at the ends are not part of a value (RFC 9110 5.5)".to_owned()));
        }
        HeaderValue::from_bytes(text.as_bytes())
            .map_err(|_| Some("line breaks and other controls would end the field early".to_owned()))
    }
}
