//! The rows of a static table, and the way from a name to them.
//!
//! In: names and values. Out: the typed fields, and a hash table of names with a chain through the rows of each, all computed
//! by the compiler. Deliberately absent: the rows.

/// Slots of the hash table of names: a power of two, at least twice the number of names.
pub(super) const SLOTS: usize = 256;
/// No row.
const NONE: u8 = u8::MAX;

/// From a name to its rows.
#[derive(Debug)]
pub(super) struct NameIndex {
    pub(super) slots: [u8; SLOTS],
    pub(super) next: [u8; 128],
}

impl NameIndex {
    pub(super) const fn of(rows: &[(&str, &str)]) -> Self {
        let mut index = Self { slots: [NONE; SLOTS], next: [NONE; 128] };
        let mut row = 0;
        while row < rows.len() {
            let name = rows[row].0.as_bytes();
            let mut slot = slot_of(name);
            while index.slots[slot] != NONE && !is_same(rows[index.slots[slot] as usize].0.as_bytes(), name) {
                slot = (slot + 1) % SLOTS;
            }
            if index.slots[slot] == NONE {
                index.slots[slot] = row as u8;
            } else {
                let mut last = index.slots[slot] as usize;
                while index.next[last] != NONE {
                    last = index.next[last] as usize;
                }
                index.next[last] = row as u8;
            }
            row += 1;
        }
        index
    }
}

/// A name's first slot: its length and three of its octets spread all names of both tables well.
pub(super) const fn slot_of(name: &[u8]) -> usize {
    let len = name.len();
    if len == 0 {
        return 0;
    }
    let mixed = len * 7 + name[0] as usize * 31 + name[len / 2] as usize * 5 + name[len - 1] as usize * 131;
    mixed % SLOTS
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The constants of one table, from its rows.
macro_rules! table {
    ($rows:literal: $(($name:literal, $value:literal)),* $(,)?) => {
        pub(super) const ROWS: [(&str, &str); $rows] = [$(($name, $value)),*];
        pub(super) static FIELDS: [($crate::field_block::name::Name, http::HeaderValue); $rows] =
            [$(($crate::field_block::name::Name::of_row($name), http::HeaderValue::from_static($value))),*];
        pub(super) static INDEX: $crate::field_block::static_table::rows::NameIndex = $crate::field_block::static_table::rows::NameIndex::of(&ROWS);
    };
}
pub(super) use table;
