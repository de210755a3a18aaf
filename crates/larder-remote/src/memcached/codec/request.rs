//! How requests are written.
//!
//! In: a request with a key that memcached takes (`RemoteKey::of_memcached`). Out: its bytes. Nothing in such a key
//! can end a line or a word, so a request is always one request. Flags are the application's, and larder writes none.

use bytes::{BufMut, BytesMut};

use super::LINE_END;
use crate::request::Request;

/// Which commands a server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// It answers `mn`: memcached since 1.6.
    Meta,
    /// It does not: older ones, and many proxies.
    Classic,
}

impl Request {
    /// Appends the request to `out`.
    pub(crate) fn write(&self, dialect: Dialect, out: &mut BytesMut) {
        match self {
            Self::Get(key) => {
                out.put_slice(if dialect == Dialect::Meta { b"mg " } else { b"get " });
                out.put_slice(key.as_bytes());
                if dialect == Dialect::Meta {
                    out.put_slice(b" k v f t");
                }
            }
            Self::Set { key, expires, value } | Self::Claim { key, expires, value } => {
                out.reserve(key.as_bytes().len() + value.len() + 64);
                out.put_slice(if matches!(self, Self::Set { .. }) { b"set " } else { b"add " });
                out.put_slice(key.as_bytes());
                out.put_slice(format!(" 0 {expires} {}", value.len()).as_bytes());
                out.put_slice(LINE_END);
                out.put_slice(value);
            }
            Self::Delete(key) => {
                out.put_slice(b"delete ");
                out.put_slice(key.as_bytes());
            }
            // memcached counts what is read, and nothing else without a lifetime. It has no clusters.
            Self::Touch(_) | Self::NoOp | Self::Asking(_) => out.put_slice(b"mn"),
        }
        out.put_slice(LINE_END);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::key::RemoteKey;

    fn check(request: &Request, dialect: Dialect, written: &[u8]) {
        let mut out = BytesMut::new();
        request.write(dialect, &mut out);
        assert_eq!(out.escape_ascii().to_string(), written.escape_ascii().to_string());
    }

    #[test]
    fn requests_are_written_as_the_protocol_has_them() {
        let key = || RemoteKey::of_memcached(&b"/a?b=1"[..]);
        check(&Request::Get(key()), Dialect::Meta, b"mg /a?b=1 k v f t\r\n");
        check(&Request::Get(key()), Dialect::Classic, b"get /a?b=1\r\n");
        let set = Request::Set { key: key(), expires: 60, value: Bytes::from_static(b"a\r\nb") };
        for dialect in [Dialect::Meta, Dialect::Classic] {
            check(&set, dialect, b"set /a?b=1 0 60 4\r\na\r\nb\r\n");
            let claim = Request::Claim { key: key(), expires: 2, value: Bytes::from_static(b"me") };
            check(&claim, dialect, b"add /a?b=1 0 2 2\r\nme\r\n");
            check(&Request::Delete(key()), dialect, b"delete /a?b=1\r\n");
            check(&Request::NoOp, dialect, b"mn\r\n");
        }
    }

    /// The requests that a server reads, by the protocol's description and not by the code above.
    fn read(mut bytes: &[u8]) -> Vec<Request> {
        let mut requests = Vec::new();
        while !bytes.is_empty() {
            let end = bytes.windows(2).position(|pair| pair == b"\r\n").expect("a line ends");
            let (line, rest) = (&bytes[..end], &bytes[end + 2..]);
            let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
            let number = |at: usize| std::str::from_utf8(words[at]).unwrap().parse::<u64>().unwrap();
            let key = || RemoteKey::of_memcached(words[1].to_vec());
            bytes = rest;
            requests.push(match words[0] {
                b"mg" => {
                    assert_eq!(words[2..], [&b"k"[..], b"v", b"f", b"t"]);
                    Request::Get(key())
                }
                b"get" => Request::Get(key()),
                b"delete" => Request::Delete(key()),
                b"mn" => Request::NoOp,
                b"set" => {
                    let length = number(4) as usize;
                    let value = Bytes::copy_from_slice(&rest[..length]);
                    assert_eq!(&rest[length..length + 2], b"\r\n");
                    bytes = &rest[length + 2..];
                    assert_eq!(number(2), 0);
                    Request::Set { key: key(), expires: number(3), value }
                }
                other => panic!("no command: {other:?}"),
            });
        }
        requests
    }

    fn key() -> impl Strategy<Value = RemoteKey> {
        // What is a replacement already stays one when it is read again, so keys are such as memcached takes.
        proptest::collection::vec(prop_oneof![0x21_u8..=0x7e, 0x80_u8..=0xff], 1..=250)
            .prop_map(RemoteKey::of_memcached)
            .prop_filter("a replacement", |key| !key.as_bytes().starts_with(b"sha256-"))
    }

    fn request() -> impl Strategy<Value = Request> {
        prop_oneof![
            key().prop_map(Request::Get),
            key().prop_map(Request::Delete),
            Just(Request::NoOp),
            (key(), any::<u64>(), proptest::collection::vec(any::<u8>(), 0..200))
                .prop_map(|(key, expires, value)| Request::Set { key, expires, value: value.into() }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same_requests(
            requests in proptest::collection::vec(request(), 0..8),
            is_meta: bool,
        ) {
            let dialect = if is_meta { Dialect::Meta } else { Dialect::Classic };
            let mut out = BytesMut::new();
            requests.iter().for_each(|request| request.write(dialect, &mut out));
            prop_assert_eq!(read(&out), requests);
        }
    }
}
