//! The static tables of HPACK (RFC 7541 appendix A) and QPACK (RFC 9204 appendix A).
//!
//! In: an index, or a field. Out: the typed field at the index, or the index of the field, else of its name.
//! Both directions are computed by the compiler, and neither allocates. The way back is a small hash table of names, with
//! a chain through the rows of one name.
//! Deliberately absent: the dynamic tables, which belong to a connection.

mod hpack;
mod qpack;
mod rows;

use http::HeaderValue;

use super::name::Name;
use rows::{NameIndex, SLOTS, slot_of};

/// A static table. Its rows are counted from 0, as QPACK does; HPACK counts from [`StaticTable::first`].
#[derive(Debug)]
pub struct StaticTable {
    rows: &'static [(&'static str, &'static str)],
    fields: &'static [(Name, HeaderValue)],
    index: &'static NameIndex,
    first: u32,
}

/// What a static table has of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Its name and value, at this index.
    Field(u32),
    /// Its name, at this index.
    Name(u32),
}

/// The static table of HPACK: indices 1 to 61.
pub static HPACK: StaticTable =
    StaticTable { rows: &hpack::ROWS, fields: &hpack::FIELDS, index: &hpack::INDEX, first: 1 };
/// The static table of QPACK: indices 0 to 98.
pub static QPACK: StaticTable =
    StaticTable { rows: &qpack::ROWS, fields: &qpack::FIELDS, index: &qpack::INDEX, first: 0 };

impl StaticTable {
    /// The first index.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The index beyond the last one.
    #[inline]
    pub fn end(&self) -> u32 {
        self.first + self.rows.len() as u32
    }

    /// The field at `index`.
    #[inline]
    pub fn field(&self, index: u32) -> Option<&'static (Name, HeaderValue)> {
        self.fields.get(index.checked_sub(self.first)? as usize)
    }

    /// Where the table has this field, else its name.
    #[inline]
    pub fn find(&self, name: &str, value: &[u8]) -> Option<Found> {
        let first = self.first_row(name)?;
        let mut row = first;
        while let Some((_, known)) = self.rows.get(usize::from(row)) {
            if known.as_bytes() == value {
                return Some(Found::Field(self.first + u32::from(row)));
            }
            row = self.index.next[usize::from(row)];
        }
        Some(Found::Name(self.first + u32::from(first)))
    }

    /// The first index with this name.
    pub fn find_name(&self, name: &str) -> Option<u32> {
        self.first_row(name).map(|row| self.first + u32::from(row))
    }

    #[inline]
    fn first_row(&self, name: &str) -> Option<u8> {
        let mut slot = slot_of(name.as_bytes());
        loop {
            let row = self.index.slots[slot];
            let (known, _) = self.rows.get(usize::from(row))?;
            if *known == name {
                return Some(row);
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_at_its_index() {
        for table in [&HPACK, &QPACK] {
            for index in table.first()..table.end() {
                let (name, value) = table.field(index).unwrap();
                let (name, value) = (name.as_str(), value.as_bytes());
                assert_eq!(table.find(name, value), Some(Found::Field(index)), "{name}");
                let Some(Found::Name(first)) = table.find(name, b"another") else { panic!("{name}") };
                assert!(first <= index && table.field(first).unwrap().0.as_str() == name);
                assert_eq!(table.find_name(name), Some(first));
            }
            assert_eq!(table.field(table.end()), None);
            assert_eq!(table.find("x-larder", b""), None);
            assert_eq!(table.find("", b""), None);
        }
        assert_eq!(HPACK.field(0), None);
    }

    #[test]
    fn rows_of_the_pages() {
        assert_eq!((HPACK.end(), QPACK.end()), (62, 99));
        assert_eq!(HPACK.find(":status", b"500"), Some(Found::Field(14)));
        assert_eq!(HPACK.find("www-authenticate", b""), Some(Found::Field(61)));
        assert_eq!(HPACK.find_name("cookie"), Some(32));
        assert_eq!(HPACK.find_name("location"), Some(46));
        assert_eq!(QPACK.find(":status", b"421"), Some(Found::Field(69)));
        assert_eq!(QPACK.find("x-frame-options", b"sameorigin"), Some(Found::Field(98)));
    }
}
