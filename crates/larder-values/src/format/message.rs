//! A response message (RFC 9112 4) in one piece, as nginx's srcache writes it and an application can.
//!
//! In: bytes. Out: status, end-to-end fields and body, or nothing: what is not just such a message is not mended. Lines end with CRLF,
//! no line is folded, and the body is all that follows the empty line. A Content-Length has to be its length; a Transfer-Encoding
//! would mean that the bytes are something else. Fields of a connection go (RFC 9110 7.6.1).

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// The longest head, in bytes, and the most fields: as of an origin's.
const HEAD_BYTES_MAX: usize = 128 * 1024;
const FIELDS_MAX: usize = 256;

/// What a value holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Bytes,
}

/// Reads a message.
pub(crate) fn read(value: &Bytes) -> Option<Message> {
    let head_end = value.windows(4).take(HEAD_BYTES_MAX).position(|end| end == b"\r\n\r\n")?;
    let body = value.slice(head_end + 4..);
    let mut lines = Lines(value.get(..head_end + 2)?);
    let status = status(lines.next()?)?;
    let mut fields = HeaderMap::new();
    for line in lines {
        if fields.len() >= FIELDS_MAX {
            return None;
        }
        let (name, text) = field(line)?;
        fields.try_append(name, text).ok()?;
    }
    if fields.contains_key(TRANSFER_ENCODING) || !is_length(&fields, body.len()) {
        return None;
    }
    drop_connection_fields(&mut fields);
    fields.remove(CONTENT_LENGTH);
    Some(Message { status, fields, body })
}

/// Lines that each end with CRLF; none of them has another CR or LF.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.windows(2).position(|pair| pair == b"\r\n")?;
        let (line, rest) = self.0.split_at(end);
        self.0 = rest.get(2..).unwrap_or_default();
        Some(line)
    }
}

/// `HTTP/1.1 200 OK`, or 1.0; the reason may be left out. A final status.
fn status(line: &[u8]) -> Option<StatusCode> {
    let rest = line.strip_prefix(b"HTTP/1.1 ").or_else(|| line.strip_prefix(b"HTTP/1.0 "))?;
    let (code, reason) = rest.split_at_checked(3)?;
    let is_reason = match reason {
        [] => true,
        [b' ', text @ ..] => HeaderValue::from_bytes(text).is_ok(),
        _ => false,
    };
    let status = StatusCode::from_bytes(code).ok()?;
    (is_reason && !status.is_informational()).then_some(status)
}

fn field(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at(colon);
    let value = value.get(1..)?.trim_ascii();
    Some((HeaderName::from_bytes(name).ok()?, HeaderValue::from_bytes(value).ok()?))
}

fn is_length(fields: &HeaderMap, length: usize) -> bool {
    let is_it = |value: &HeaderValue| {
        let text = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        text.and_then(|text| text.parse().ok()) == Some(length)
    };
    fields.get_all(CONTENT_LENGTH).iter().all(is_it)
}

fn drop_connection_fields(fields: &mut HeaderMap) {
    let named =
        fields.get_all(CONNECTION).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let named: Vec<_> = named.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok()).collect();
    let known = [CONNECTION, TE, TRAILER, UPGRADE];
    let others = ["keep-alive", "proxy-connection"].map(HeaderName::from_static);
    for name in named.iter().chain(&known).chain(&others) {
        fields.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Status, fields and body.
    type Parts<'a> = (u16, &'a [(&'a str, &'a str)], &'a str);

    fn check(value: &str, expected: Option<Parts<'_>>) {
        let read = read(&Bytes::copy_from_slice(value.as_bytes()));
        let expected = expected.map(|(status, fields, body)| Message {
            status: StatusCode::from_u16(status).unwrap_or_default(),
            fields: crate::tests::fields(fields),
            body: Bytes::copy_from_slice(body.as_bytes()),
        });
        assert_eq!(read, expected, "{value:?}");
    }

    #[test]
    fn a_message_is_a_status_fields_and_all_that_follows() {
        let html = [("content-type", "text/html")];
        check(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>\r\n\r\n",
            Some((200, &html, "<p>\r\n\r\n")),
        );
        check("HTTP/1.0 404 Not Found\r\n\r\n", Some((404, &[], "")));
        check("HTTP/1.1 200\r\n\r\nbody", Some((200, &[], "body")));
        check("HTTP/1.1 200 OK\r\nX-A:1 \r\nx-a:\t2\r\n\r\n", Some((200, &[("x-a", "1"), ("x-a", "2")], "")));
        check("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", Some((200, &[], "body")));
        let dropped =
            "Connection: x-hop, close\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nUpgrade: h2c\r\nTE: trailers\r\n";
        check(&format!("HTTP/1.1 200 OK\r\n{dropped}\r\nbody"), Some((200, &[], "body")));
    }

    #[test]
    fn what_is_not_just_that_is_nothing() {
        for value in [
            "",
            "<p>a body</p>",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\n\nbody",
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 200 O\u{1}K\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno field\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX A: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX-A: 1\r\n folded\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX-A: 1\nX-B: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\n: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbody",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody",
            "HTTP/1.1 200 OK\r\nContent-Length: +4\r\n\r\nbody",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ] {
            check(value, None);
        }
        let many = "X-A: 1\r\n".repeat(FIELDS_MAX + 1);
        check(&format!("HTTP/1.1 200 OK\r\n{many}\r\n"), None);
        let long = "a".repeat(HEAD_BYTES_MAX);
        check(&format!("HTTP/1.1 200 OK\r\nX-A: {long}\r\n\r\n"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&value.into());
        }

        #[test]
        fn what_is_written_is_read(
            fields in proptest::collection::vec(("x-[a-z]{1,8}", "([!-~][ -~]{0,8}[!-~])?"), 0..9), body in ".{0,40}"
        ) {
            let lines: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let fields = crate::tests::fields(&lines);
            let mut written = b"HTTP/1.1 200 OK\r\n".to_vec();
            larder_http::message::write_http1_fields(&fields, &mut written);
            written.extend_from_slice(b"\r\n");
            written.extend_from_slice(body.as_bytes());
            let expected = Message { status: StatusCode::OK, fields, body: body.into() };
            prop_assert_eq!(read(&written.into()), Some(expected));
        }
    }
}
