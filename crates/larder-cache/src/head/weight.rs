//! What fields weigh in memory.
//!
//! In: maps of fields. Out: bytes, an upper estimate, for the weight of a stored head. What the `http` crate allocates for a map is
//! not to be had from it, so that the sizes of its entries are written here.

use http::HeaderMap;
use larder_http::message::PreparedFields;

/// Reference counts of a shared piece.
const SHARED: usize = 64;

/// Bytes of a map, apart from the struct and the values.
fn fields_bytes(map: &HeaderMap) -> usize {
    /// Name, value, hash and links of one entry, and its share of the map's index.
    const ENTRY: usize = 112;
    /// A further value of the same name.
    const EXTRA: usize = 72;
    let own_names: usize = map.keys().map(|name| name.as_str().len() + 16).sum();
    map.capacity() * ENTRY + (map.len() - map.keys_len()) * EXTRA + own_names
}

/// Bytes of prepared fields, the struct included. Their values are part of their lines.
pub(super) fn prepared_bytes(fields: &PreparedFields) -> usize {
    size_of::<PreparedFields>() + SHARED + fields_bytes(&fields.map) + fields.http1.len()
}

/// Bytes of a map that has its values to itself, the struct included.
pub(super) fn map_bytes(map: &HeaderMap) -> usize {
    let values: usize = map.values().map(|value| value.len() + SHARED).sum();
    size_of::<HeaderMap>() + fields_bytes(map) + values
}
