//! Integers with a prefix (RFC 7541 5.1, RFC 9204 4.1.1).
//!
//! In: a [`Reader`] on a whole block, or a number. Out: the number, or its octets behind the flags of the first one.
//! Values above `u32` and more than five octets of continuation are refused, so no sum overflows.
//! Deliberately absent: reading in parts. A block is joined before it is decoded.

use super::CodingError;

/// Octets that may follow the prefix. Five hold every `u32`.
const CONTINUATION_MAX: u32 = 5;

/// A position in a block. It only moves forward.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the beginning of `block`.
    pub fn new(block: &'a [u8]) -> Self {
        Self { rest: block }
    }

    /// Whether every octet was read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next octet.
    #[inline]
    pub fn octet(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// The next `len` octets.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// The number whose first octet, already read, is `first`, with a prefix of `bits` (1 to 8).
    ///
    /// # Errors
    /// The block ends within the number, or the number does not fit.
    #[inline]
    pub fn integer(&mut self, first: u8, bits: u32) -> Result<u32, CodingError> {
        let mask = 0xff_u8 >> (8 - bits);
        let prefix = first & mask;
        if prefix < mask { Ok(u32::from(prefix)) } else { self.continued(u64::from(prefix)) }
    }

    fn continued(&mut self, prefix: u64) -> Result<u32, CodingError> {
        let mut value = prefix;
        for octets in 0..CONTINUATION_MAX {
            let octet = self.octet().ok_or(CodingError::Truncated)?;
            value += u64::from(octet & 0x7f) << (7 * octets);
            if octet & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| CodingError::Integer);
            }
        }
        Err(CodingError::Integer)
    }
}

/// Appends `value` with a prefix of `bits` (1 to 8); `flags` are the bits above the prefix.
#[inline]
pub fn write(value: u32, bits: u32, flags: u8, out: &mut Vec<u8>) {
    let mask = 0xff_u8 >> (8 - bits);
    if value < u32::from(mask) {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | mask);
    let mut rest = value - u32::from(mask);
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(octets: &[u8], bits: u32) -> Result<u32, CodingError> {
        let mut reader = Reader::new(octets);
        let first = reader.octet().ok_or(CodingError::Truncated)?;
        reader.integer(first, bits)
    }

    #[test]
    fn examples_of_appendix_c_1() {
        for (value, bits, octets) in [(10, 5, &[10][..]), (1337, 5, &[31, 154, 10]), (42, 8, &[42])] {
            let mut out = Vec::new();
            write(value, bits, 0, &mut out);
            assert_eq!(out, octets);
            assert_eq!(read(octets, bits), Ok(value));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(read(&[0x7f, 0x80, 0xff, 0xff, 0xff, 0x0f], 7), Ok(u32::MAX));
        assert_eq!(read(&[0x7f, 0x81, 0xff, 0xff, 0xff, 0x0f], 7), Err(CodingError::Integer));
        assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], 7), Err(CodingError::Integer));
        assert_eq!(read(&[0x7f, 0x80], 7), Err(CodingError::Truncated));
        assert_eq!(read(&[0x7f], 7), Err(CodingError::Truncated));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value: u32, bits in 1_u32..=8) {
            let mut out = Vec::new();
            write(value, bits, 0, &mut out);
            prop_assert_eq!(read(&out, bits), Ok(value));
        }
    }
}
