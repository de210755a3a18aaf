//! What records are called in Redis.
//!
//! In: keys of the cache, and the values of a request by which responses vary. Out: names. A name has a hash of the key, since URLs
//! are long and may have anything in them. The key itself is in the record, and is compared: a hash is not believed.
//!
//! | name | what lies there |
//! |---|---|
//! | `PREFIX:1:STORE:r:{KEY}` | the record of a response that does not vary, or by which fields those vary that are there |
//! | `PREFIX:1:STORE:r:{KEY}:VALUES` | the record of one that does |
//! | `PREFIX:1:STORE:l:{KEY}`, `PREFIX:1:STORE:l:{KEY}:VALUES` | who fetches it, or that each larder does |
//! | `PREFIX:1:STORE:b:{KEY}:ID:NUMBER` | a piece of a body; the id is drawn for each record |
//!
//! The braces stand there as well: what belongs to one key lies at one node of a cluster, so that it is written in order.

use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use larder_tier::CacheKey;

/// Bytes of a hash in a name.
const HASH_BYTES: usize = 16;
/// The format of names. Another one is another name space.
const FORMAT: u8 = 1;

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Names {
    begin: String,
}

impl Names {
    pub(crate) fn new(prefix: &str, store: &str) -> Self {
        Self { begin: format!("{prefix}:{FORMAT}:{store}:") }
    }

    /// Of what lies there under a key.
    pub(crate) fn of_key(&self, key: &CacheKey) -> Bytes {
        let mut name = format!("{}r:{{", self.begin).into_bytes();
        push_hash(&mut name, &[key.base(), key.variant()]);
        name.push(b'}');
        name.into()
    }

    /// What Redis matches with all names of records, and no others.
    pub(crate) fn pattern_of_records(&self) -> Vec<u8> {
        let mut pattern = Vec::new();
        for byte in self.begin.bytes() {
            if matches!(byte, b'*' | b'?' | b'[' | b']' | b'^' | b'\\') {
                pattern.push(b'\\');
            }
            pattern.push(byte);
        }
        pattern.extend_from_slice(b"r:*");
        pattern
    }

    /// Of a response under a key that varies, for requests with these values.
    pub(crate) fn of_variant(&self, key: &CacheKey, values: &[u8]) -> Bytes {
        let mut name = self.of_key(key).to_vec();
        name.push(b':');
        push_hash(&mut name, &[values]);
        name.into()
    }

    /// Of the right to fetch what lies under the name of a record.
    pub(crate) fn of_lease(&self, record: &[u8]) -> Bytes {
        let kind = self.begin.len();
        let mut name = record.to_vec();
        // Records have an `r` there.
        name.get_mut(kind).into_iter().for_each(|kind| *kind = b'l');
        name.into()
    }

    /// Of a piece of the body of a record, by the record's name.
    pub(crate) fn of_piece(&self, record: &[u8], id: u128, number: usize) -> Bytes {
        let mut name = format!("{}b:", self.begin).into_bytes();
        // Behind the `r:` of a record stands what it shares with its pieces.
        name.extend(record.iter().skip(name.len()).take(2 * HASH_BYTES + 2));
        name.extend_from_slice(format!(":{id:032x}:{number}").as_bytes());
        name.into()
    }
}

/// Puts the hash of several strings to the end of a name. No two lists of strings are hashed alike.
fn push_hash(name: &mut Vec<u8>, parts: &[&[u8]]) {
    let mut hash = Context::new(&SHA256);
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    for byte in hash.finish().as_ref().iter().take(HASH_BYTES) {
        name.extend(
            [byte >> 4, byte & 15].map(|half| if half < 10 { b'0' + half } else { b'a' + half - 10 }),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_keys_values_and_pieces_apart() {
        let names = Names::new("larder", "main");
        let of = |target: &str, variant: &[u8]| {
            let key = CacheKey::of_levels(format!("a{target}").as_bytes(), variant);
            (names.of_key(&key), names.of_variant(&key, b"gzip"), names.of_variant(&key, b""))
        };
        let (plain, varying, other) = of("/x", b"http");
        let text = String::from_utf8_lossy(&plain).into_owned();
        assert!(
            text.starts_with("larder:1:main:r:{") && text.len() == "larder:1:main:r:{}".len() + 32,
            "{text}"
        );
        assert!(varying.starts_with(&plain) && varying != other && varying.len() == plain.len() + 33);
        assert_eq!(names.of_lease(&plain), text.replace(":r:", ":l:").as_bytes());
        assert_eq!(names.pattern_of_records(), b"larder:1:main:r:*");
        assert_eq!(Names::new("a*", "m?").pattern_of_records(), br"a\*:1:m\?:r:*");
        // Nothing can be moved from one part to the next.
        assert_ne!(of("/xh", b"ttp").0, of("/x", b"http").0);
        let piece = text.replace(":r:", ":b:") + ":00000000000000000000000000000007:3";
        assert_eq!(names.of_piece(&plain, 7, 3), piece);
        assert_eq!(names.of_piece(&varying, 7, 3), piece, "the id tells variants apart");
    }
}
