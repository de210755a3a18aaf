//! String literals (RFC 7541 5.2, RFC 9204 4.1.2).
//!
//! In: a reader at a string, or octets. Out: the octets, plain from the block or decoded into the caller's buffer.
//! Deliberately absent: allocation beyond that buffer.

use super::integer::{self, Reader};
use super::{CodingError, huffman};

/// The flag of Huffman's code above a prefix of seven bits.
const HUFFMAN: u8 = 0x80;

/// The string at `reader`, of at most `len_max` octets. What is encoded is decoded into `scratch`.
///
/// # Errors
/// A block that ends early, a false code, or a longer string.
#[inline]
pub fn read<'a, 'block: 'a>(
    reader: &mut Reader<'block>,
    len_max: usize,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], CodingError> {
    let first = reader.octet().ok_or(CodingError::Truncated)?;
    let len = reader.integer(first, 7)?;
    let octets = reader.take(len as usize).ok_or(CodingError::Truncated)?;
    if first & HUFFMAN != 0 {
        scratch.clear();
        huffman::decode(octets, len_max, scratch)?;
        return Ok(scratch);
    }
    if octets.len() > len_max { Err(CodingError::Long) } else { Ok(octets) }
}

/// Appends `text`, in Huffman's code where that is shorter.
pub fn write(text: &[u8], out: &mut Vec<u8>) {
    let coded = huffman::len(text);
    if coded < text.len() {
        integer::write(u32::try_from(coded).unwrap_or(u32::MAX), 7, HUFFMAN, out);
        huffman::encode(text, out);
    } else {
        integer::write(u32::try_from(text.len()).unwrap_or(u32::MAX), 7, 0, out);
        out.extend_from_slice(text);
    }
}
