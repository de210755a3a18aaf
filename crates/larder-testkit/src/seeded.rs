//! Bodies derived from a seed, so that "no wrong byte" is one check everywhere.
//!
//! In: a seed (by default the target as the origin received it) and a position. Out: the byte there. Each block of
//! eight bytes depends on the seed and its number alone, so any range can be made without what precedes it. The
//! mixing is SplitMix64; it is no hash for anything but tests.

use bytes::Bytes;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn number_of(seed: &str) -> u64 {
    seed.bytes().fold(0xcbf2_9ce4_8422_2325, |n, byte| (n ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The `length` bytes from position `first` of the endless body that belongs to `seed`.
pub fn bytes_of(seed: &str, first: u64, length: u64) -> Bytes {
    let seed = number_of(seed);
    let end = first.saturating_add(length);
    let mut out = Vec::with_capacity(usize::try_from(length).unwrap_or(0).saturating_add(16));
    for block in first / 8..end.div_ceil(8) {
        let word = mix(seed.wrapping_add(block.wrapping_add(1).wrapping_mul(GOLDEN)));
        out.extend_from_slice(&word.to_le_bytes());
    }
    let skip = usize::try_from(first % 8).unwrap_or(0).min(out.len());
    let mut out = Bytes::from(out).split_off(skip);
    out.truncate(usize::try_from(length).unwrap_or(usize::MAX));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_the_same_bytes_as_in_the_whole() {
        let whole = bytes_of("/a?b=1", 0, 1000);
        assert_eq!(whole.len(), 1000);
        for (first, length) in [(0, 0), (0, 1), (7, 2), (8, 8), (13, 900), (999, 1)] {
            let part = bytes_of("/a?b=1", first, length);
            assert_eq!(part, whole.slice(first as usize..(first + length) as usize), "{first}+{length}");
        }
    }

    #[test]
    fn another_seed_gives_another_body() {
        assert_ne!(bytes_of("/a", 0, 64), bytes_of("/b", 0, 64));
    }
}
