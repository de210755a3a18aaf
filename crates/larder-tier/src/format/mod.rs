//! What files of larder's own are made of: heads with a checksum, and the entries of journals.
//!
//! In and out: bytes; each `write` and `read` are each other's inverse. All numbers are little-endian. Every file begins with a magic of its own, the version, and a checksum; whatever does
//! not check is not larder's, or no longer. Reading takes any bytes and never panics: lengths are compared with what is
//! there before anything is taken. Checksums are CRC-32 (the one of Ethernet and zip), which finds what breaks by
//! accident; whoever can write to the folder can write a checksum too.

pub mod entry;
pub mod log;

/// The version of every file. Another one is not read: a cache begins anew then.
pub const VERSION: u32 = 1;

/// The checksum of everything.
pub fn crc(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// Takes numbers from the front of bytes.
pub struct Take<'a>(
    /// What is left of them.
    pub &'a [u8],
);

impl<'a> Take<'a> {
    /// So many bytes.
    pub fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// One byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Puts numbers to the end of bytes.
pub trait Put {
    /// Four bytes.
    fn put_u32(&mut self, number: u32);
    /// Eight bytes.
    fn put_u64(&mut self, number: u64);
}

impl Put for Vec<u8> {
    fn put_u32(&mut self, number: u32) {
        self.extend_from_slice(&number.to_le_bytes());
    }

    fn put_u64(&mut self, number: u64) {
        self.extend_from_slice(&number.to_le_bytes());
    }
}

/// The head of a file: magic, version, fields, and the checksum of all that.
pub fn write_file_head(magic: &[u8; 8], fields: &[u64]) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.put_u32(VERSION);
    fields.iter().for_each(|field| bytes.put_u64(*field));
    let crc = crc(&bytes);
    bytes.put_u32(crc);
    bytes
}

/// The length of such a head, in bytes.
pub const fn file_head_bytes(fields: usize) -> usize {
    8 + 4 + fields * 8 + 4
}

/// The fields of such a head, if everything about it is right.
pub fn read_file_head<const N: usize>(magic: &[u8; 8], bytes: &[u8]) -> Option<[u64; N]> {
    let head = bytes.get(..file_head_bytes(N))?;
    let (checked, sum) = head.split_at_checked(head.len() - 4)?;
    let mut take = Take(checked);
    let is_right = take.bytes(8)? == magic && take.u32()? == VERSION && Take(sum).u32()? == crc(checked);
    let mut fields = [0; N];
    for field in &mut fields {
        *field = take.u64()?;
    }
    is_right.then_some(fields)
}
