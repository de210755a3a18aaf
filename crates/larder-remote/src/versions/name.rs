//! What a version is called: a key of the server, and a field where that is a hash.
//!
//! In: bytes that a template has made of a request. Out: a name, or none where they are too long or would not be one line. One run of
//! bytes, so that a look takes no allocation for the names that are usual.

use std::fmt;

use smallvec::SmallVec;

/// The longest key, and the longest field, in bytes.
const BYTES_MAX: usize = 1024;
/// Between key and field. Neither may have it.
const BETWEEN: u8 = 0;

/// See the head of the file.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct VersionName(SmallVec<[u8; 128]>);

impl VersionName {
    /// Of a field of a hash, or of a key of its own. `None` where either is empty, has more than 1 KiB, or has a NUL or an end of a line.
    pub fn new(key: &[u8], field: Option<&[u8]>) -> Option<Self> {
        let is_fit = |bytes: &[u8]| {
            (1..=BYTES_MAX).contains(&bytes.len())
                && !bytes.iter().any(|byte| matches!(byte, b'\0' | b'\r' | b'\n'))
        };
        if !is_fit(key) || !field.is_none_or(is_fit) {
            return None;
        }
        let mut bytes = SmallVec::from_slice(key);
        if let Some(field) = field {
            bytes.push(BETWEEN);
            bytes.extend_from_slice(field);
        }
        Some(Self(bytes))
    }

    /// All of it, as no other name is.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        Self(SmallVec::from_slice(bytes))
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        self.0.split(|byte| *byte == BETWEEN).next().unwrap_or_default()
    }

    /// The field, where it is one of a hash.
    pub fn field(&self) -> Option<&[u8]> {
        self.0.get(self.key().len() + 1..)
    }
}

impl fmt::Display for VersionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key().escape_ascii())?;
        match self.field() {
            Some(field) => write!(f, " {}", field.escape_ascii()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for VersionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn keys_and_fields_are_told_apart() {
        let field = VersionName::new(b"versions", Some(b"/a?b")).unwrap();
        assert_eq!((field.key(), field.field()), (&b"versions"[..], Some(&b"/a?b"[..])));
        let key = VersionName::new(b"ver:/a", None).unwrap();
        assert_eq!((key.key(), key.field()), (&b"ver:/a"[..], None));
        assert_eq!(format!("{field} {key}"), "versions /a?b ver:/a");
        assert_eq!(VersionName::of_bytes(field.bytes()), field);
    }

    #[test]
    fn what_is_no_line_or_too_long_is_no_name() {
        for (key, field) in [
            (&b""[..], None),
            (b"k", Some(&b""[..])),
            (b"k\0", None),
            (b"k", Some(b"a\rb")),
            (b"k\n", Some(b"a")),
            (&[b'a'; 1025], None),
            (b"k", Some(&[b'a'; 1025])),
        ] {
            assert_eq!(VersionName::new(key, field), None);
        }
        assert!(VersionName::new(&[b'a'; 1024], Some(&[b'b'; 1024])).is_some());
    }
}
