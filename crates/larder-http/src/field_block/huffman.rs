//! The Huffman code of strings (RFC 7541 5.2 and appendix B).
//!
//! In: octets. Out: their code, or what a code stands for. The code is canonical, so the lengths of its 257 symbols are
//! enough: the compiler computes the codes and the decoder's table from them.
//! The decoder looks at eight bits a step, which hold every common character. Longer codes are compared with the
//! first code beyond each length.
//! Deliberately absent: a decoder by states. Its table would be larger than a processor's first cache.

use super::CodingError;

/// Bits of each symbol's code; the last one is EOS.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];
const EOS: usize = 256;
const LENGTH_MAX: usize = 30;
/// Bits that one look at the table takes.
const STEP: u32 = 8;

/// The code of each symbol, in the order of lengths, then of symbols.
const CODES: [u32; 257] = codes();
/// For each length, the first code beyond it, at the left end of 32 bits.
const BEYOND: [u64; LENGTH_MAX + 1] = beyond();
/// Symbols in the order of their codes.
const ORDER: [u16; 257] = order();
/// For each length, what a code minus this is in [`ORDER`].
const BASE: [i64; LENGTH_MAX + 1] = base();
/// For the next eight bits: the symbol and the length of its code, which is 0 where the code is longer than that.
static SHORT: [(u8, u8); 256] = short();

const fn codes() -> [u32; 257] {
    let mut codes = [0; 257];
    let mut next = 0_u32;
    let mut length = 1;
    while length <= LENGTH_MAX {
        let mut symbol = 0;
        while symbol <= EOS {
            if LENGTHS[symbol] as usize == length {
                codes[symbol] = next;
                next += 1;
            }
            symbol += 1;
        }
        next <<= 1;
        length += 1;
    }
    codes
}

const fn order() -> [u16; 257] {
    let mut order = [0; 257];
    let (mut at, mut length) = (0, 1);
    while length <= LENGTH_MAX {
        let mut symbol = 0;
        while symbol <= EOS {
            if LENGTHS[symbol] as usize == length {
                order[at] = symbol as u16;
                at += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    order
}

const fn beyond() -> [u64; LENGTH_MAX + 1] {
    let mut beyond = [0; LENGTH_MAX + 1];
    let mut at = 0;
    while at < 257 {
        let symbol = ORDER[at] as usize;
        let length = LENGTHS[symbol] as usize;
        beyond[length] = (CODES[symbol] as u64 + 1) << (32 - length);
        at += 1;
    }
    beyond
}

const fn base() -> [i64; LENGTH_MAX + 1] {
    let mut base = [0; LENGTH_MAX + 1];
    let mut at = 257;
    while at > 0 {
        at -= 1;
        let symbol = ORDER[at] as usize;
        base[LENGTHS[symbol] as usize] = CODES[symbol] as i64 - at as i64;
    }
    base
}

const fn short() -> [(u8, u8); 256] {
    let mut short = [(0, 0); 256];
    let mut symbol = 0;
    while symbol < EOS {
        let length = LENGTHS[symbol] as u32;
        if length <= STEP {
            let first = (CODES[symbol] << (STEP - length)) as usize;
            let mut tail = 0;
            while tail < 1 << (STEP - length) {
                short[first + tail] = (symbol as u8, length as u8);
                tail += 1;
            }
        }
        symbol += 1;
    }
    short
}

/// Octets of the code of `text`.
#[inline]
pub fn len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&octet| usize::from(LENGTHS[usize::from(octet)])).sum();
    bits.div_ceil(8)
}

/// Appends the code of `text`, padded with ones.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut held) = (0_u64, 0_u32);
    for &octet in text {
        let length = u32::from(LENGTHS[usize::from(octet)]);
        bits = bits << length | u64::from(CODES[usize::from(octet)]);
        held += length;
        if held >= 32 {
            held -= 32;
            out.extend_from_slice(&((bits >> held) as u32).to_be_bytes());
        }
    }
    let padding = held.wrapping_neg() % 8;
    bits = bits << padding | ((1 << padding) - 1);
    held += padding;
    while held > 0 {
        held -= 8;
        out.push((bits >> held) as u8);
    }
}

/// Appends what `code` stands for, at most `len_max` octets of it.
///
/// # Errors
/// EOS, a padding that is longer than seven bits or has a zero, or more than `len_max` octets.
pub fn decode(code: &[u8], len_max: usize, out: &mut Vec<u8>) -> Result<(), CodingError> {
    // The shortest code has five bits.
    out.reserve((code.len().saturating_mul(8) / 5).min(len_max));
    let mut input = code.iter();
    let mut room = len_max;
    let (mut bits, mut held) = (0_u64, 0_u32);
    loop {
        // At least 32 bits are held, or everything that is left.
        if held < 32 {
            if let Some((four, _)) = input.as_slice().split_first_chunk::<4>() {
                bits |= u64::from(u32::from_be_bytes(*four)) << (32 - held);
                held += 32;
                input = input.as_slice()[4..].iter();
            } else {
                for &octet in input.by_ref() {
                    bits |= u64::from(octet) << (56 - held);
                    held += 8;
                }
            }
        }
        let (symbol, length) = match SHORT[(bits >> 56) as usize] {
            (_, 0) => long(bits)?,
            (symbol, length) => (symbol, u32::from(length)),
        };
        if length > held {
            break;
        }
        if room == 0 {
            return Err(CodingError::Long);
        }
        room -= 1;
        out.push(symbol);
        bits <<= length;
        held -= length;
    }
    let ones = if held == 0 { 0 } else { u64::MAX << (64 - held) };
    if held < 8 && bits == ones { Ok(()) } else { Err(CodingError::Huffman) }
}

/// The symbol at the left end of `bits` whose code is longer than a step.
#[cold]
fn long(bits: u64) -> Result<(u8, u32), CodingError> {
    let window = bits >> 32;
    let mut length = STEP as usize + 1;
    while length < LENGTH_MAX && window >= BEYOND[length] {
        length += 1;
    }
    let at = (window >> (32 - length)) as i64 - BASE[length];
    let symbol = usize::try_from(at).ok().and_then(|at| ORDER.get(at)).ok_or(CodingError::Huffman)?;
    let symbol = u8::try_from(*symbol).map_err(|_| CodingError::Huffman)?;
    Ok((symbol, length as u32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(code: &[u8]) -> Result<Vec<u8>, CodingError> {
        let mut out = Vec::new();
        decode(code, 1 << 16, &mut out).map(|()| out)
    }

    #[test]
    fn codes_are_those_of_appendix_b() {
        let of_the_page = [
            (b'0', 0x0, 5),
            (b' ', 0x14, 6),
            (b'!', 0x3f8, 10),
            (b'a', 0x3, 5),
            (b'z', 0x7b, 7),
            (b'A', 0x21, 6),
            (b'&', 0xf8, 8),
            (b'X', 0xfc, 8),
            (b'Z', 0xfd, 8),
            (b'?', 0x3fc, 10),
            (b'\'', 0x7fa, 11),
            (b'#', 0xffa, 12),
            (b'$', 0x1ff9, 13),
            (b'^', 0x3ffc, 14),
            (b'<', 0x7ffc, 15),
            (b'\\', 0x7fff0, 19),
            (195, 0x7fff1, 19),
            (128, 0xfffe6, 20),
            (153, 0x1fffdc, 21),
            (129, 0x3fffd2, 22),
            (1, 0x7fffd8, 23),
            (9, 0xffffea, 24),
            (199, 0x1ffffec, 25),
            (192, 0x3ffffe0, 26),
            (203, 0x7ffffde, 27),
            (2, 0xfffffe2, 28),
            (10, 0x3ffffffc, 30),
            (0, 0x1ff8, 13),
            (255, 0x3ffffee, 26),
            (22, 0x3ffffffe, 30),
        ];
        for (symbol, code, length) in of_the_page {
            assert_eq!(
                (CODES[usize::from(symbol)], LENGTHS[usize::from(symbol)]),
                (code, length),
                "{symbol}"
            );
        }
        assert_eq!(CODES[EOS], 0x3fff_ffff);
        let kraft: u64 = LENGTHS.iter().map(|&length| 1_u64 << (LENGTH_MAX - usize::from(length))).sum();
        assert_eq!(kraft, 1 << LENGTH_MAX, "a full code");
    }

    #[test]
    fn examples_of_appendix_c_4() {
        let code = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(decoded(&code).unwrap(), b"www.example.com");
        let mut out = Vec::new();
        encode(b"www.example.com", &mut out);
        assert_eq!(out, code);
    }

    #[test]
    fn every_octet_alone() {
        for octet in 0..=255 {
            let mut out = Vec::new();
            encode(&[octet], &mut out);
            assert_eq!(decoded(&out).unwrap(), [octet]);
        }
    }

    #[test]
    fn eos_and_false_padding_are_refused() {
        for code in [
            &[0xff, 0xff, 0xff, 0xff][..],
            &[0x3f, 0xff, 0xff, 0xff, 0xff],
            &[0xff],
            &[0x00],
            &[0x1f, 0xff],
            &[0x1e],
            &[0xf8, 0xff],
        ] {
            assert_eq!(decoded(code), Err(CodingError::Huffman), "{code:x?}");
        }
        assert_eq!(decoded(&[]), Ok(Vec::new()));
        assert_eq!(decoded(&[0x1f]), Ok(b"a".to_vec()));
    }

    #[test]
    fn no_more_than_the_caller_takes() {
        let mut out = Vec::new();
        assert_eq!(decode(&[0; 5], 7, &mut out), Err(CodingError::Long));
        assert_eq!(out.len(), 7);
        out.clear();
        assert_eq!(decode(&[0; 5], 8, &mut out), Ok(()));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text: Vec<u8>) {
            let mut out = Vec::new();
            encode(&text, &mut out);
            prop_assert_eq!(out.len(), len(&text));
            prop_assert_eq!(decoded(&out).unwrap(), text);
        }

        #[test]
        fn what_is_decoded_has_one_code(code: Vec<u8>) {
            if let Ok(text) = decoded(&code) {
                let mut out = Vec::new();
                encode(&text, &mut out);
                prop_assert_eq!(out, code);
            }
        }
    }
}
