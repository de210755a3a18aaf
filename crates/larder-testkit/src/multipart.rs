//! Reading the body of a 206 with several ranges (RFC 9110 15.3.7.2, RFC 2046 5.1.1), strictly.
//!
//! In: Content-Type and body of a response. Out: its parts, or what is wrong with it. The body has to be used up to its
//! last byte: after the closing delimiter there may be one line end and nothing else.

use crate::wire::{self, Fields};

/// One part.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its own fields.
    pub fields: Fields,
    /// Its content.
    pub body: Vec<u8>,
}

/// The parts, in order.
///
/// # Errors
/// One sentence.
pub fn parts(content_type: Option<&str>, body: &[u8]) -> Result<Vec<Part>, String> {
    let boundary = boundary(content_type.unwrap_or_default())
        .ok_or_else(|| format!("not multipart/byteranges with a boundary: {content_type:?}"))?;
    let delimiter = format!("--{boundary}");
    let between = format!("\r\n{delimiter}");
    let body = body.strip_prefix(b"\r\n").unwrap_or(body);
    let mut rest = body.strip_prefix(delimiter.as_bytes()).ok_or("it does not begin with the boundary")?;
    let mut parts = Vec::new();
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let head = wire::find(part, b"\r\n\r\n").ok_or("a part's head does not end")?;
        let (block, content) = part.split_at(head + 2);
        let fields = Fields::parse(block).map_err(|error| error.to_string())?;
        let content = content.get(2..).unwrap_or_default();
        let end = wire::find(content, between.as_bytes()).ok_or("a part does not end")?;
        let (content, after) = content.split_at(end);
        parts.push(Part { fields, body: content.to_vec() });
        rest = after.get(between.len()..).unwrap_or_default();
    }
    match rest {
        b"--" | b"--\r\n" => Ok(parts),
        _ => Err(format!("it does not end with the boundary: {}", rest.escape_ascii())),
    }
}

fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameter) = content_type.split_once(';')?;
    let value = parameter.trim().strip_prefix("boundary=")?;
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    let kind = kind.trim().eq_ignore_ascii_case("multipart/byteranges");
    (kind && (1..=70).contains(&value.len())).then_some(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TYPE: Option<&str> = Some("multipart/byteranges; boundary=xy");

    #[test]
    fn parts_come_in_their_order_and_byte_for_byte() {
        let body = b"--xy\r\nA: 1\r\nB: 2\r\n\r\n\r\n-\r\n--xy\r\nA: 3\r\n\r\n\r\n--xy--\r\n";
        let found = parts(TYPE, body).unwrap();
        let bodies: Vec<&[u8]> = found.iter().map(|part| &*part.body).collect();
        assert_eq!(bodies, [&b"\r\n-"[..], b""]);
        assert_eq!(found[0].fields.first("b"), Some("2"));
        assert_eq!(found[1].fields.first("a"), Some("3"));
        assert_eq!(parts(Some("Multipart/Byteranges;boundary=\"xy\""), b"\r\n--xy--").unwrap().len(), 0);
    }

    #[test]
    fn what_is_left_over_is_an_error() {
        for body in [
            "",
            "xy",
            "--xy\r\n",
            "--xy\r\nA: 1\r\n\r\nbody",
            "--xy\r\nA: 1\r\n\r\nbody\r\n--xy",
            "--xy\r\nA: 1\r\n\r\nbody\r\n--xy--\r\nmore",
            "--xy\r\nnot a field\r\n\r\nbody\r\n--xy--",
        ] {
            assert!(parts(TYPE, body.as_bytes()).is_err(), "{body:?}");
        }
        for content_type in [None, Some("text/plain"), Some("multipart/mixed; boundary=xy")] {
            assert!(parts(content_type, b"--xy--").is_err(), "{content_type:?}");
        }
    }
}
