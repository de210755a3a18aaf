//! MD5 (RFC 1321), for the ring of libmemcached and for nothing else.
//!
//! In: a name or a key. Out: 16 bytes that place it. It protects nothing here; clients of the field have chosen it, and a
//! key is found only where they have put it. No library of the build has it, and it is short.

/// How far each step rotates, four times in a row for each round.
const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The digest of `message`.
pub(super) fn md5(message: &[u8]) -> [u8; 16] {
    let bits = (message.len() as u64).wrapping_mul(8).to_le_bytes();
    let mut padded = message.to_vec();
    padded.push(0x80);
    let whole = (padded.len() + bits.len()).next_multiple_of(64);
    padded.resize(whole - bits.len(), 0);
    padded.extend_from_slice(&bits);
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded.chunks_exact(64) {
        add_block(&mut state, block);
    }
    let mut digest = [0; 16];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

fn add_block(state: &mut [u32; 4], block: &[u8]) {
    let mut words = [0_u32; 16];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..64 {
        let (mixed, word) = match step / 16 {
            0 => (d ^ (b & (c ^ d)), step),
            1 => (c ^ (d & (b ^ c)), 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        // RFC 1321 3.4: the integer part of 2^32 times the absolute sine.
        let constant = (4_294_967_296.0 * f64::from(step as u32 + 1).sin().abs()) as u32;
        let sum = a.wrapping_add(mixed).wrapping_add(constant).wrapping_add(words[word % 16]);
        (a, d, c) = (d, c, b);
        b = b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4]));
    }
    for (word, change) in state.iter_mut().zip([a, b, c, d]) {
        *word = word.wrapping_add(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, digest: &str) {
        let hex: String = md5(message.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, digest, "{message:?}");
    }

    #[test]
    fn digests_of_rfc_1321_and_around_the_ends_of_blocks() {
        check("", "d41d8cd98f00b204e9800998ecf8427e");
        check("a", "0cc175b9c0f1b6a831c399e269772661");
        check("abc", "900150983cd24fb0d6963f7d28e17f72");
        check("message digest", "f96b697d7cb7938d525a2f31aaf161d0");
        check("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b");
        check(&"1234567890".repeat(8), "57edf4a22be3c955ac49da2e2107b67a");
        // The others by md5sum.
        check(&"a".repeat(55), "ef1772b6dff9a122358552954ad0df65");
        check(&"a".repeat(56), "3b0c8ac703f828b04c6c197006d17218");
        check(&"a".repeat(63), "b06521f39153d618550606be297466d5");
        check(&"a".repeat(64), "014842d480b571495a4a0363793f7367");
        check(&"a".repeat(119), "8a7bd0732ed6a28ce75f6dabc90e1613");
        check(&"a".repeat(120), "5f61c0ccad4cac44c75ff505e1f1e537");
    }
}
