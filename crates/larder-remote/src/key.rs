//! Keys as servers take them.
//!
//! In: the bytes that a template of keys has made of a request. Out: a key that the server takes. Redis takes any. memcached takes 250
//! bytes without blanks and controls; what is longer, empty, or has one of those is replaced by `sha256-` and the 64 hex
//! digits of its SHA-256. A text that looks like such a replacement is replaced as well. Else a client could ask for a
//! target that is spelt like the replacement of another one, and would reach its value.

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;

/// The longest key that memcached takes.
const BYTES_MAX: usize = 250;
/// What replacements begin with.
const REPLACED: &[u8] = b"sha256-";
/// Hex digits of a replacement.
const DIGITS: usize = 64;

/// A key that its server takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoteKey(Bytes);

impl RemoteKey {
    /// The key for `text` in Redis: just that.
    pub fn of_redis(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }

    /// The key for `text` in memcached: `text` itself where that takes it, else a hash of it. It has 1 to 250 bytes without blanks
    /// and controls.
    pub fn of_memcached(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        if is_fit(&text) && !is_replacement(&text) {
            return Self(text);
        }
        let hash = digest(&SHA256, &text);
        let mut key = Vec::with_capacity(REPLACED.len() + DIGITS);
        key.extend_from_slice(REPLACED);
        for byte in hash.as_ref() {
            key.extend(
                [byte >> 4, byte & 15].map(|half| if half < 10 { b'0' + half } else { b'a' + half - 10 }),
            );
        }
        Self(key.into())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn is_fit(text: &[u8]) -> bool {
    !text.is_empty() && text.len() <= BYTES_MAX && !text.iter().any(|byte| *byte <= b' ' || *byte == 0x7f)
}

fn is_replacement(text: &[u8]) -> bool {
    let digits = text.strip_prefix(REPLACED);
    digits.is_some_and(|digits| digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], is_kept: bool) {
        let key = RemoteKey::of_memcached(text.to_vec());
        assert_eq!(key.as_bytes() == text, is_kept, "{text:?}");
        assert!(is_fit(key.as_bytes()));
        assert!(is_kept || is_replacement(key.as_bytes()));
    }

    #[test]
    fn what_memcached_takes_is_kept_and_all_else_is_replaced() {
        check(b"/", true);
        check(b"/page?x=1&y=%20", true);
        check("/caf\u{e9}".as_bytes(), true);
        check(&[b'a'; 250], true);
        check(&[b'a'; 251], false);
        check(b"", false);
        for unfit in [0, b'\t', b'\n', b'\r', b' ', 0x1f, 0x7f] {
            check(&[b'/', unfit, b'a'], false);
        }
    }

    #[test]
    fn redis_takes_any_text() {
        for text in [&b""[..], b"a b\r\n", &[0xff; 300]] {
            assert_eq!(RemoteKey::of_redis(text.to_vec()).as_bytes(), text);
        }
    }

    #[test]
    fn a_replacement_is_the_hash_in_hex() {
        let key = RemoteKey::of_memcached(&b"a b"[..]);
        // echo -n 'a b' | sha256sum
        let expected = "sha256-c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65";
        assert_eq!(key.as_bytes(), expected.as_bytes());
    }

    #[test]
    fn no_text_reaches_the_value_of_another_by_looking_like_its_replacement() {
        let long = RemoteKey::of_memcached(vec![b'a'; 300]);
        check(long.as_bytes(), false);
        check(&long.as_bytes().to_ascii_uppercase(), true);
        check(b"sha256-0123", true);
    }
}
