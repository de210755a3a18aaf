//! The encoder of field blocks (RFC 7541 6).
//!
//! In: a status, stored [`FieldBlock`]s, and fields of one answer. Out: a block for the client.
//! A field enters the table at its second use on the connection, and costs an index from then on. Which fields were met is
//! remembered in a small fixed set of hashes; a hash leads to an entry, whose octets are compared before it is used.
//! Secrets and passing fields never enter it ([`Keeping`]), nor does what would take more than a quarter of the table.
//! Deliberately absent: any order of eviction but by age, as RFC 7541 has it.

use std::collections::VecDeque;
use std::sync::OnceLock;

use http::{HeaderName, HeaderValue, StatusCode};
use larder_http::field_block::static_table::{Found, HPACK};
use larder_http::field_block::{Encoded, FieldBlock, Keeping, encode_literal, hash, integer, string};

use super::decode::TABLE_BYTES_DEFAULT;

/// Sets of the memory, a power of two.
const SETS: usize = 64;
/// A larger entry would push out too many others.
const ENTRY_SHARE: usize = 4;
/// From this length on, a string's needs more than an octet (RFC 7541 5.1, with a prefix of seven bits).
const LENGTH_OCTET: usize = 127;
const INDEXED: u8 = 0x80;
const INSERTED: u8 = 0x40;
const SIZE_UPDATE: u8 = 0x20;

/// A hash that was met.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    hash: u64,
    /// Which insertion of the connection its entry is, from 1; 0 where it has none.
    insertion: u64,
}

/// An entry as the client's table has it.
#[derive(Debug)]
struct Entry {
    /// The field as a literal without indexing.
    octets: Box<[u8]>,
    size: usize,
}

/// The encoder of one connection.
#[derive(Debug)]
pub struct Encoder {
    /// The newest entry first.
    entries: VecDeque<Entry>,
    size: usize,
    capacity: usize,
    insertions: u64,
    met: Box<[[Met; 2]; SETS]>,
    /// The smallest capacity since the last block, where it has changed.
    lowest: Option<usize>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            capacity: TABLE_BYTES_DEFAULT as usize,
            insertions: 0,
            met: Box::new([[Met::default(); 2]; SETS]),
            lowest: None,
        }
    }
}

impl Encoder {
    /// Takes over the client's SETTINGS_HEADER_TABLE_SIZE, up to the default. The next block announces it.
    pub fn set_table_size(&mut self, bytes: u32) {
        let capacity = bytes.min(TABLE_BYTES_DEFAULT) as usize;
        if capacity == self.capacity {
            return;
        }
        self.lowest = Some(self.lowest.unwrap_or(capacity).min(capacity));
        self.capacity = capacity;
        self.evict_to(capacity);
    }

    /// Size and number of the entries.
    pub fn table(&self) -> (usize, usize) {
        (self.size, self.entries.len())
    }

    /// Begins a block at the end of `out`.
    pub fn begin<'a>(&'a mut self, out: &'a mut Vec<u8>) -> Block<'a> {
        if let Some(lowest) = self.lowest.take() {
            if lowest < self.capacity {
                integer::write(lowest as u32, 5, SIZE_UPDATE, out);
            }
            integer::write(self.capacity as u32, 5, SIZE_UPDATE, out);
        }
        Block { encoder: self, out }
    }

    /// The index of a field that was met and is in the table still; else whether it was met.
    #[inline]
    fn look(&mut self, hash: u64, octets: &[u8]) -> Look {
        let insertions = self.insertions;
        let live_from = insertions - self.entries.len() as u64;
        let set = &mut self.met[hash as usize % SETS];
        for met in set.iter() {
            if met.hash != hash {
                continue;
            }
            if met.insertion <= live_from {
                return Look::Met;
            }
            let place = (insertions - met.insertion) as usize;
            let is_same = self.entries.get(place).is_some_and(|entry| *entry.octets == *octets);
            return if is_same { Look::Entry(place as u32 + HPACK.end()) } else { Look::Other };
        }
        // The new one takes the second place; what was there stays if the first one is worth less.
        let [first, second] = set;
        if first.insertion <= live_from || first.insertion < second.insertion {
            *first = *second;
        }
        *second = Met { hash, insertion: 0 };
        Look::New
    }

    /// The field enters the table, which may push out others.
    fn insert(&mut self, hash: u64, octets: &[u8], size: usize) {
        self.evict_to(self.capacity.saturating_sub(size));
        self.size += size;
        self.insertions += 1;
        self.entries.push_front(Entry { octets: octets.into(), size });
        let insertion = self.insertions;
        if let Some(met) = self.met[hash as usize % SETS].iter_mut().find(|met| met.hash == hash) {
            met.insertion = insertion;
        }
    }

    fn evict_to(&mut self, size_max: usize) {
        while self.size > size_max {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.size -= oldest.size;
        }
    }
}

/// The name of a field without indexing, encoded once.
#[derive(Debug)]
pub struct PassingName {
    name: &'static str,
    octets: OnceLock<Box<[u8]>>,
}

impl PassingName {
    /// In lower case.
    pub const fn new(name: &'static str) -> Self {
        Self { name, octets: OnceLock::new() }
    }

    fn octets(&self) -> &[u8] {
        self.octets.get_or_init(|| {
            let mut octets = Vec::new();
            match HPACK.find_name(self.name) {
                Some(index) => integer::write(index, 4, 0, &mut octets),
                None => {
                    octets.push(0);
                    string::write(self.name.as_bytes(), &mut octets);
                }
            }
            octets.into()
        })
    }
}

enum Look {
    /// In the table, at this index.
    Entry(u32),
    /// Met, without an entry.
    Met,
    /// Another field has its hash.
    Other,
    New,
}

/// A block in the making. Fields are appended in the order of the calls.
#[derive(Debug)]
pub struct Block<'a> {
    encoder: &'a mut Encoder,
    out: &'a mut Vec<u8>,
}

impl Block<'_> {
    /// The status, which comes first.
    pub fn status(&mut self, status: StatusCode) {
        match HPACK.find(":status", status.as_str().as_bytes()) {
            Some(Found::Field(index)) => integer::write(index, 7, INDEXED, self.out),
            Some(Found::Name(index)) => {
                integer::write(index, 4, 0, self.out);
                string::write(status.as_str().as_bytes(), self.out);
            }
            None => debug_assert!(false, "the static table has :status"),
        }
    }

    /// All fields of a stored response.
    pub fn stored(&mut self, block: &FieldBlock) {
        for field in block.fields() {
            if field.keeping == Keeping::Welcome {
                self.welcome(&field);
            } else {
                self.out.extend_from_slice(field.octets);
            }
        }
    }

    /// A field of this answer.
    pub fn field(&mut self, name: &HeaderName, value: &HeaderValue) {
        let start = self.out.len();
        let written = encode_literal(name, value, self.out);
        if written.keeping != Keeping::Welcome {
            return;
        }
        let octets = self.out.split_off(start);
        self.welcome(&Encoded {
            hash: hash(name.as_str().as_bytes(), value.as_bytes()),
            octets: &octets,
            prefix: written.prefix,
            name: written.name,
            size: written.size,
            keeping: written.keeping,
        });
    }

    /// A field of this name that changes too often for a table, written by `write`. Its value is plain: Huffman's code would save a few octets, and cost
    /// more than all else of the field.
    pub fn passing(&mut self, name: &PassingName, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.extend_from_slice(name.octets());
        let start = self.out.len();
        // Nearly always one octet is enough.
        self.out.push(0);
        write(self.out);
        let length = self.out.len() - start - 1;
        if length < LENGTH_OCTET {
            if let Some(place) = self.out.get_mut(start) {
                *place = length as u8;
            }
        } else {
            let text = self.out.split_off(start + 1);
            self.out.truncate(start);
            integer::write(u32::try_from(length).unwrap_or(u32::MAX), 7, 0, self.out);
            self.out.extend_from_slice(&text);
        }
    }

    /// The same of a number.
    pub fn number(&mut self, name: &PassingName, number: u64) {
        let mut text = itoa::Buffer::new();
        let text = text.format(number).as_bytes();
        self.out.extend_from_slice(name.octets());
        self.out.push(text.len() as u8);
        self.out.extend_from_slice(text);
    }

    #[inline]
    fn welcome(&mut self, field: &Encoded<'_>) {
        let size = field.size as usize;
        if size > self.encoder.capacity / ENTRY_SHARE {
            self.out.extend_from_slice(field.octets);
            return;
        }
        match self.encoder.look(field.hash, field.octets) {
            Look::Entry(index) => integer::write(index, 7, INDEXED, self.out),
            Look::Met => {
                integer::write(u32::from(field.name), 6, INSERTED, self.out);
                self.out.extend_from_slice(field.octets.get(usize::from(field.prefix)..).unwrap_or_default());
                self.encoder.insert(field.hash, field.octets, size);
            }
            Look::Other | Look::New => self.out.extend_from_slice(field.octets),
        }
    }
}
