//! Frames of HTTP/2: their heads, types, flags and error codes (RFC 9113 4, 6, 7).
//!
//! In: octets. Out: the nine octets in front of each frame as a value, and back; what lies within padding and priority fields.
//! Deliberately absent: what a frame does.

/// Octets of a frame's head.
pub(super) const HEAD_BYTES: usize = 9;
/// The longest payload that either side takes unless it says more, and that larder takes at all (RFC 9113 6.5.2).
pub(super) const PAYLOAD_MAX: usize = 16_384;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
/// RFC 9218 7.1.
pub(super) const PRIORITY_UPDATE: u8 = 16;

pub(super) const END_STREAM: u8 = 0x1;
/// Of SETTINGS and PING.
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;
/// HEADERS with the priority fields of RFC 7540, which mean nothing any more.
pub(super) const WITH_PRIORITY: u8 = 0x20;

/// Why a stream or a connection ends (RFC 9113 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ErrorCode {
    NoError = 0,
    Protocol = 1,
    Internal = 2,
    FlowControl = 3,
    StreamClosed = 5,
    FrameSize = 6,
    RefusedStream = 7,
    Cancel = 8,
    Compression = 9,
    EnhanceYourCalm = 11,
}

/// What stands in front of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// Without the reserved bit.
    pub(super) stream: u32,
}

impl FrameHead {
    /// The head at the front of `bytes`; `None` where they are too few.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, kind, flags, s @ ..] = *bytes.first_chunk::<HEAD_BYTES>()?;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        Some(Self { length, kind, flags, stream: u32::from_be_bytes(s) & 0x7fff_ffff })
    }

    pub(super) fn octets(self) -> [u8; HEAD_BYTES] {
        let [_, a, b, c] = u32::try_from(self.length).unwrap_or_default().to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s, t, u, v]
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a whole frame.
pub(super) fn write(out: &mut Vec<u8>, (kind, flags, stream): (u8, u8, u32), payload: &[u8]) {
    out.extend_from_slice(&FrameHead { length: payload.len(), kind, flags, stream }.octets());
    out.extend_from_slice(payload);
}

/// The first four octets as a number; `None` where there are fewer.
pub(super) fn number(payload: &[u8]) -> Option<u32> {
    payload.first_chunk().map(|four| u32::from_be_bytes(*four))
}

/// The payload of HEADERS without padding and priority fields, and the stream that it is said to depend on.
///
/// # Errors
/// The padding or the fields are longer than the payload.
pub(super) fn field_block(head: FrameHead, payload: &[u8]) -> Result<(&[u8], Option<u32>), ErrorCode> {
    let mut block = payload;
    let mut padding = 0;
    if head.has(PADDED) {
        let (length, rest) = block.split_first().ok_or(ErrorCode::FrameSize)?;
        (padding, block) = (usize::from(*length), rest);
    }
    let mut dependency = None;
    if head.has(WITH_PRIORITY) {
        dependency = number(block).map(|stream| stream & 0x7fff_ffff);
        block = block.get(5..).ok_or(ErrorCode::FrameSize)?;
    }
    let end = block.len().checked_sub(padding).ok_or(ErrorCode::Protocol)?;
    Ok((block.get(..end).unwrap_or_default(), dependency))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written_without_the_reserved_bit() {
        let head = FrameHead { length: 0x0a_0b0c, kind: HEADERS, flags: END_STREAM, stream: 0x7fff_fffe };
        let mut octets = head.octets();
        assert_eq!(octets, [0x0a, 0x0b, 0x0c, 1, 1, 0x7f, 0xff, 0xff, 0xfe]);
        octets[5] |= 0x80;
        assert_eq!(FrameHead::read(&octets), Some(head));
        assert_eq!(FrameHead::read(&octets[..8]), None);
    }

    #[test]
    fn padding_and_priority_are_no_part_of_a_block() {
        let head = |flags| FrameHead { length: 0, kind: HEADERS, flags, stream: 1 };
        let both = PADDED | WITH_PRIORITY;
        assert_eq!(field_block(head(0), b"ab"), Ok((&b"ab"[..], None)));
        assert_eq!(field_block(head(PADDED), b"\x02abxx"), Ok((&b"ab"[..], None)));
        assert_eq!(field_block(head(both), b"\x01\x80\0\0\x07\xffabx"), Ok((&b"ab"[..], Some(7))));
        assert_eq!(field_block(head(PADDED), b""), Err(ErrorCode::FrameSize));
        assert_eq!(field_block(head(PADDED), b"\x03ab"), Err(ErrorCode::Protocol));
        assert_eq!(field_block(head(WITH_PRIORITY), b"\0\0\0\x03"), Err(ErrorCode::FrameSize));
    }
}
