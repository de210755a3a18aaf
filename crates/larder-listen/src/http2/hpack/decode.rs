//! The decoder of field blocks (RFC 7541 3, 6).
//!
//! In: whole blocks, in the order of the connection, with limits. Out: each field, typed, to a sink; and how many there were.
//! A field is typed when it enters the table, so an index costs no parse, and two clones at most. A field that no message may carry keeps
//! its place in the table, and is told as malformed. Beyond a limit the sink gets nothing more, but the table goes on, so
//! that the connection lives; from four times the limit on the connection ends, for its work is bounded too.
//! Values are copied out of the block: a slice of it would hold all of it as long as the entry lives.
//! Deliberately absent: the order of pseudo fields, fields of a connection, and what a message needs.

use std::collections::VecDeque;

use bytes::Bytes;
use http::HeaderValue;
use larder_http::field_block::integer::Reader;
use larder_http::field_block::static_table::HPACK;
use larder_http::field_block::{CodingError, Name, Pseudo, string};

/// The table that a connection begins with (RFC 9113 6.5.2).
pub(crate) const TABLE_BYTES_DEFAULT: u32 = 4096;
/// What an entry counts for beside its octets (RFC 7541 4.1).
const ENTRY_OVERHEAD: usize = 32;
/// So many times a limit ends the connection.
const EXCESS: usize = 4;

/// What a message may have.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Fields, pseudo fields among them.
    pub fields_max: usize,
    /// The sum of names, values and 32 octets for each field.
    pub bytes_max: usize,
}

/// What a block had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Fields, malformed ones too.
    pub fields: usize,
    /// Their size.
    pub bytes: usize,
    /// Whether a limit was passed: the sink has not seen everything, and the answer is 431.
    pub is_over: bool,
}

/// One field of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodedField<'a> {
    /// A field of a table: who needs it clones it, and who only looks does not.
    Known(&'a Name, &'a HeaderValue),
    /// A pseudo field of this block that no table has.
    Pseudo(Pseudo, &'a [u8]),
    /// A field of this block. A value that may not be indexed is marked as sensitive.
    Field(Name, HeaderValue),
    /// One that makes its message malformed (RFC 9113 8.1.1): a stream error.
    Malformed(Malformed),
}

impl DecodedField<'_> {
    /// Independent of the table.
    pub fn into_owned(self) -> DecodedField<'static> {
        match self {
            Self::Known(name, value) => DecodedField::Field(name.clone(), value.clone()),
            Self::Field(name, value) => DecodedField::Field(name, value),
            Self::Pseudo(pseudo, octets) => match parse_value(octets) {
                Some(value) => DecodedField::Field(Name::Pseudo(pseudo), value),
                None => DecodedField::Malformed(Malformed::Value),
            },
            Self::Malformed(why) => DecodedField::Malformed(why),
        }
    }
}

/// Why a field cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Upper case, no token, or an unknown pseudo field.
    Name,
    /// An octet that no value has, or blanks around it (RFC 9113 8.2.1).
    Value,
}

/// Why the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The coding of an integer or a string: COMPRESSION_ERROR.
    #[error("the coding of a block is false")]
    Coding(#[source] CodingError),
    /// An index that neither table has: COMPRESSION_ERROR.
    #[error("no entry has this index")]
    Index,
    /// A size update behind a field, or above what was allowed: COMPRESSION_ERROR.
    #[error("a size update is not allowed here")]
    SizeUpdate,
    /// Several times the limits: ENHANCE_YOUR_CALM.
    #[error("a block is far beyond its limits")]
    Excess,
}

impl From<CodingError> for DecodeError {
    fn from(error: CodingError) -> Self {
        match error {
            CodingError::Long => Self::Excess,
            other => Self::Coding(other),
        }
    }
}

/// An entry of the dynamic table; what is `None` is malformed.
#[derive(Debug)]
struct Entry {
    name: Option<Name>,
    name_len: usize,
    value: Option<HeaderValue>,
    size: usize,
}

/// The decoder of one connection.
#[derive(Debug)]
pub struct Decoder {
    /// The newest entry first.
    entries: VecDeque<Entry>,
    size: usize,
    capacity: usize,
    /// What the client may set the capacity to.
    capacity_max: usize,
    scratch: Vec<u8>,
}

impl Decoder {
    /// A decoder that allows its peer a table of `table_bytes_max`.
    pub fn new(table_bytes_max: u32) -> Self {
        let capacity = table_bytes_max.min(TABLE_BYTES_DEFAULT) as usize;
        let capacity_max = table_bytes_max as usize;
        Self { entries: VecDeque::new(), size: 0, capacity, capacity_max, scratch: Vec::new() }
    }

    /// Size and number of the entries.
    pub fn table(&self) -> (usize, usize) {
        (self.size, self.entries.len())
    }

    /// Decodes one block.
    ///
    /// # Errors
    /// What ends the connection. The table is no longer in step then.
    pub fn decode(
        &mut self,
        block: &[u8],
        limits: &HeadLimits,
        mut sink: impl FnMut(DecodedField<'_>),
    ) -> Result<Counted, DecodeError> {
        let mut reader = Reader::new(block);
        let mut counted = Counted::default();
        while let Some(first) = reader.octet() {
            let (decoded, size) = if first & 0x80 != 0 {
                self.indexed(reader.integer(first, 7)?)?
            } else if first & 0x40 != 0 {
                self.literal(&mut reader, first, 6, limits, &counted)?
            } else if first & 0x20 != 0 {
                if counted.fields != 0 {
                    return Err(DecodeError::SizeUpdate);
                }
                self.resize(reader.integer(first, 5)?)?;
                continue;
            } else {
                self.literal(&mut reader, first, 4, limits, &counted)?
            };
            counted.fields += 1;
            counted.bytes += size;
            if counted.fields > limits.fields_max || counted.bytes > limits.bytes_max {
                counted.is_over = true;
                let is_excess = counted.fields >= limits.fields_max.saturating_mul(EXCESS).max(1)
                    || counted.bytes >= limits.bytes_max.saturating_mul(EXCESS);
                if is_excess {
                    return Err(DecodeError::Excess);
                }
            } else {
                sink(decoded);
            }
        }
        Ok(counted)
    }

    #[inline]
    fn indexed(&self, index: u32) -> Result<(DecodedField<'_>, usize), DecodeError> {
        if let Some((name, value)) = HPACK.field(index) {
            let size = name.as_str().len() + value.len() + ENTRY_OVERHEAD;
            return Ok((DecodedField::Known(name, value), size));
        }
        let entry = self.entry(index)?;
        let decoded = match (&entry.name, &entry.value) {
            (Some(name), Some(value)) => DecodedField::Known(name, value),
            (None, _) => DecodedField::Malformed(Malformed::Name),
            (_, None) => DecodedField::Malformed(Malformed::Value),
        };
        Ok((decoded, entry.size))
    }

    #[inline]
    fn entry(&self, index: u32) -> Result<&Entry, DecodeError> {
        let place = index.checked_sub(HPACK.end()).ok_or(DecodeError::Index)?;
        self.entries.get(place as usize).ok_or(DecodeError::Index)
    }

    /// A literal; with a prefix of six bits it enters the table.
    fn literal<'a, 'block: 'a>(
        &'a mut self,
        reader: &mut Reader<'block>,
        first: u8,
        bits: u32,
        limits: &HeadLimits,
        counted: &Counted,
    ) -> Result<(DecodedField<'a>, usize), DecodeError> {
        let room = limits.bytes_max.saturating_mul(EXCESS).saturating_sub(counted.bytes);
        let index = reader.integer(first, bits)?;
        let (name, name_len) = if index == 0 {
            let octets = string::read(reader, room, &mut self.scratch)?;
            (Name::parse(octets), octets.len())
        } else if let Some((name, _)) = HPACK.field(index) {
            (Some(name.clone()), name.as_str().len())
        } else {
            let entry = self.entry(index)?;
            (entry.name.clone(), entry.name_len)
        };
        let room = room.saturating_sub(name_len);
        if bits != 6
            && let Some(Name::Pseudo(pseudo)) = name
        {
            let octets = string::read(reader, room, &mut self.scratch)?;
            let size = name_len + octets.len() + ENTRY_OVERHEAD;
            return Ok((
                if is_value(octets) {
                    DecodedField::Pseudo(pseudo, octets)
                } else {
                    DecodedField::Malformed(Malformed::Value)
                },
                size,
            ));
        }
        let octets = string::read(reader, room, &mut self.scratch)?;
        let size = name_len + octets.len() + ENTRY_OVERHEAD;
        let mut value = parse_value(octets);
        if bits == 6 {
            self.insert(Entry { name: name.clone(), name_len, value: value.clone(), size });
        } else if first & 0x10 != 0
            && let Some(value) = &mut value
        {
            value.set_sensitive(true);
        }
        Ok((decoded(name, value), size))
    }

    fn insert(&mut self, entry: Entry) {
        self.evict_to(self.capacity.saturating_sub(entry.size));
        if entry.size <= self.capacity {
            self.size += entry.size;
            self.entries.push_front(entry);
        }
    }

    fn resize(&mut self, capacity: u32) -> Result<(), DecodeError> {
        let capacity = capacity as usize;
        if capacity > self.capacity_max {
            return Err(DecodeError::SizeUpdate);
        }
        self.capacity = capacity;
        self.evict_to(capacity);
        Ok(())
    }

    fn evict_to(&mut self, size_max: usize) {
        while self.size > size_max {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.size -= oldest.size;
        }
    }
}

#[inline]
fn decoded(name: Option<Name>, value: Option<HeaderValue>) -> DecodedField<'static> {
    match (name, value) {
        (Some(name), Some(value)) => DecodedField::Field(name, value),
        (None, _) => DecodedField::Malformed(Malformed::Name),
        (_, None) => DecodedField::Malformed(Malformed::Value),
    }
}

fn has_blanks_around(octets: &[u8]) -> bool {
    let is_blank = |octet: Option<&u8>| matches!(octet, Some(b' ' | b'\t'));
    is_blank(octets.first()) || is_blank(octets.last())
}

/// Whether these octets may be a value (RFC 9113 8.2.1), as [`HeaderValue`] sees it.
fn is_value(octets: &[u8]) -> bool {
    let is_fit = |octet: &u8| (*octet >= b' ' && *octet != 0x7f) || *octet == b'\t';
    !has_blanks_around(octets) && octets.iter().all(is_fit)
}

fn parse_value(octets: &[u8]) -> Option<HeaderValue> {
    if has_blanks_around(octets) {
        return None;
    }
    HeaderValue::from_maybe_shared(Bytes::copy_from_slice(octets)).ok()
}
