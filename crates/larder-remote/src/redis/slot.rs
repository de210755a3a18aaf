//! The slot of a key in a Redis Cluster: CRC16 (XMODEM) over the key, or over what stands between its first braces.

/// How many slots there are.
pub(super) const SLOTS: usize = 16_384;

/// The number of one.
pub(crate) type Slot = u16;

/// The slot of `key`.
pub(crate) fn slot_of(key: &[u8]) -> Slot {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = key.get(open + 1..)?;
        let close = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..close).filter(|tag| !tag.is_empty())
    });
    crc(tag.unwrap_or(key)) % SLOTS as Slot
}

fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc: u16, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc(b"123456789"), 0x31c3);
        // `CLUSTER KEYSLOT` of redis-server 7.0.15.
        let slots =
            [("foo", 12_182), ("bar", 5061), ("{user1000}.following", 3443), ("a{}b", 13_694), ("", 0)];
        for (key, slot) in slots {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
        assert_eq!(slot_of(b"x{foo}y"), slot_of(b"foo"));
        assert_eq!(slot_of(b"{{foo}}"), slot_of(b"{foo"));
        assert_eq!(slot_of(b"{foo"), crc(b"{foo") % 16_384);
    }
}
