//! Fields of a response that are encoded once and sent on many connections.
//!
//! In: fields. Out: a [`FieldBlock`]: each field as HPACK's literal without indexing, its name by static index where there
//! is one, or as a static index alone. Each has a hash, by which an encoder finds it in its dynamic table, and its
//! [`Keeping`]. A whole block is valid by itself, on any connection and beside any table.
//! The hash needs no secret: an encoder compares the octets too, so a collision costs octets and nothing else.
//! Deliberately absent: the status, and fields that differ from answer to answer.

use http::header::{self, HeaderName, HeaderValue};

use super::static_table::{Found, HPACK};
use super::{integer, string};

/// The flag of a static or dynamic index (RFC 7541 6.1).
const INDEXED: u8 = 0x80;
/// The flag of a literal that is never indexed (RFC 7541 6.2.3).
const NEVER_INDEXED: u8 = 0x10;

/// Whether a connection may remember a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// It is a static index already.
    Static,
    /// It may enter the dynamic table.
    Welcome,
    /// It changes too often to be worth a place.
    Passing,
    /// It is a secret that no table may hold, here or behind the next hop.
    Never,
}

impl Keeping {
    /// What holds for fields of this name that no static index stands for.
    #[inline]
    pub fn of(name: &HeaderName) -> Self {
        match *name {
            header::AUTHORIZATION | header::COOKIE | header::SET_COOKIE => Self::Never,
            header::AGE | header::DATE | header::CONTENT_LENGTH | header::ETAG | header::LAST_MODIFIED => {
                Self::Passing
            }
            _ if name.as_str() == "cache-status" => Self::Passing,
            _ => Self::Welcome,
        }
    }
}

/// Fields, encoded once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldBlock {
    octets: Box<[u8]>,
    fields: Box<[Place]>,
}

/// Where one field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    hash: u64,
    /// The end of the octets. They begin where the field before ends.
    end: u32,
    /// What the field counts for in a dynamic table: name, value and 32.
    size: u32,
    /// Octets of the flags and of the name's index, before the strings.
    prefix: u8,
    /// The static index of the name; 0 where the name is a string.
    name: u8,
    keeping: Keeping,
}

/// One encoded field.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<'a> {
    /// The hash of name and value.
    pub hash: u64,
    /// The whole field.
    pub octets: &'a [u8],
    /// Octets before the strings.
    pub prefix: u8,
    /// The static index of the name; 0 where the name is a string.
    pub name: u8,
    /// Its size in a dynamic table (RFC 7541 4.1).
    pub size: u32,
    /// Whether a table may have it.
    pub keeping: Keeping,
}

impl FieldBlock {
    /// Encodes `fields` in their order.
    pub fn new<'a>(fields: impl IntoIterator<Item = (&'a HeaderName, &'a HeaderValue)>) -> Self {
        let mut octets = Vec::with_capacity(512);
        let mut places = Vec::with_capacity(16);
        for (name, value) in fields {
            let mut place = encode_literal(name, value, &mut octets);
            if place.keeping == Keeping::Welcome {
                place.hash = hash(name.as_str().as_bytes(), value.as_bytes());
            }
            places.push(place.at(octets.len()));
        }
        Self { octets: octets.into(), fields: places.into() }
    }

    /// All fields as one valid block.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether it has no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Each field by itself.
    #[inline]
    pub fn fields(&self) -> impl Iterator<Item = Encoded<'_>> {
        let mut start = 0;
        self.fields.iter().map(move |place| {
            let end = place.end as usize;
            let octets = self.octets.get(start..end).unwrap_or_default();
            start = end;
            let Place { hash, size, prefix, name, keeping, .. } = *place;
            Encoded { hash, octets, prefix, name, size, keeping }
        })
    }
}

/// What [`encode_literal`] tells of the field that it wrote.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// The hash, where the caller has computed it.
    pub hash: u64,
    /// Octets before the strings.
    pub prefix: u8,
    /// The static index of the name, or 0.
    pub name: u8,
    /// The size in a dynamic table.
    pub size: u32,
    /// Whether a table may have it.
    pub keeping: Keeping,
}

impl Written {
    fn at(self, end: usize) -> Place {
        let Self { hash, prefix, name, size, keeping } = self;
        Place { hash, end: u32::try_from(end).unwrap_or(u32::MAX), size, prefix, name, keeping }
    }
}

/// Appends one field that no dynamic table has a part in: by static index, or as a literal.
pub fn encode_literal(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) -> Written {
    let text = name.as_str();
    let size = u32::try_from(text.len() + value.len() + 32).unwrap_or(u32::MAX);
    let static_name = match HPACK.find(text, value.as_bytes()) {
        Some(Found::Field(index)) => {
            integer::write(index, 7, INDEXED, out);
            return Written { hash: 0, prefix: 1, name: index as u8, size, keeping: Keeping::Static };
        }
        Some(Found::Name(index)) => index,
        None => 0,
    };
    let keeping = if value.is_sensitive() { Keeping::Never } else { Keeping::of(name) };
    let start = out.len();
    integer::write(static_name, 4, if keeping == Keeping::Never { NEVER_INDEXED } else { 0 }, out);
    let prefix = (out.len() - start) as u8;
    if static_name == 0 {
        string::write(text.as_bytes(), out);
    }
    string::write(value.as_bytes(), out);
    Written { hash: 0, prefix, name: static_name as u8, size, keeping }
}

/// The hash of a field, for an encoder's memory. It is never 0.
pub fn hash(name: &[u8], value: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut mixed = (name.len() as u64) << 32 ^ value.len() as u64 ^ FACTOR;
    let mut mix = |word: u64| {
        let product = u128::from(mixed ^ word) * u128::from(FACTOR);
        mixed = (product as u64) ^ (product >> 64) as u64;
        mixed = mixed.rotate_left(23) ^ word;
    };
    for part in [name, value] {
        let mut words = part.chunks_exact(8);
        for word in &mut words {
            mix(word.iter().fold(0, |sum, &octet| sum << 8 | u64::from(octet)));
        }
        mix(words.remainder().iter().fold(1, |sum, &octet| sum << 8 | u64::from(octet)));
    }
    mix(0);
    mixed | 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_the_shortest_that_needs_no_table() {
        let block = [
            ("accept-encoding", "gzip, deflate"),
            ("cache-control", "private"),
            ("x-a", "~~"),
            ("set-cookie", "a=1"),
            ("age", "3"),
        ]
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let block = FieldBlock::new(block.iter().map(|(name, value)| (name, value)));
        let fields: Vec<_> = block.fields().collect();
        let kept: Vec<_> = fields.iter().map(|field| field.keeping).collect();
        use Keeping::{Never, Passing, Static, Welcome};
        assert_eq!(kept, [Static, Welcome, Welcome, Never, Passing]);
        assert_eq!(fields[0].octets, [0x90]);
        assert_eq!(fields[1].octets, [0x0f, 0x09, 0x85, 0xae, 0xc3, 0x77, 0x1a, 0x4b]);
        assert_eq!((fields[1].prefix, fields[1].name, fields[1].size), (2, 24, 52));
        assert_eq!(fields[2].octets, [&[0, 3][..], b"x-a", &[2], b"~~"].concat());
        assert_eq!(fields[3].octets[0], 0x1f);
        assert_eq!(fields.iter().flat_map(|field| field.octets).copied().collect::<Vec<_>>(), block.octets());
        assert_eq!(block.len(), 5);
    }

    #[test]
    fn a_hash_tells_name_from_value() {
        assert_ne!(hash(b"ab", b"c"), hash(b"a", b"bc"));
        assert_ne!(hash(b"a", b"12345678"), hash(b"a", b"12345679"));
        assert_ne!(hash(b"a", b""), 0);
    }
}
