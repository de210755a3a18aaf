//! Times, fields and names as they are told.
//!
//! In: values as the proxy has them. Out: numbers and text that survive JSON, and that no terminal takes for a command.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

use super::Field;

/// Fields, in their order.
pub(super) fn fields_of(fields: &HeaderMap) -> Vec<Field> {
    let field = |(name, value): (&http::HeaderName, &HeaderValue)| Field {
        name: name.to_string(),
        value: printable(value),
    };
    fields.iter().map(field).collect()
}

/// A length of time as it is told: to the microsecond, which is short enough to be the same number after JSON.
pub(super) fn seconds(of: Duration) -> f64 {
    of.as_micros() as f64 / 1e6
}

/// A value with nothing in it that a terminal could take for a command.
pub(super) fn printable(value: &HeaderValue) -> String {
    visible(value.as_bytes())
}

/// The same of any bytes.
pub(super) fn visible(bytes: &[u8]) -> String {
    match bytes.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        true => String::from_utf8_lossy(bytes).into_owned(),
        false => bytes.escape_ascii().to_string(),
    }
}
