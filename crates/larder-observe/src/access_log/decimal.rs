//! Numbers and addresses as digits, without the machinery of `core::fmt`, which costs more than the rest of a line.
//!
//! What is short is made in a register or a small array, and all of that is appended, since a length that the compiler
//! knows needs no call; what was too much is taken off again.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

/// The first number that has more digits than [`eight_digits`] gives.
const EIGHT_DIGITS: u64 = 100_000_000;

pub(crate) fn integer(number: u64, out: &mut Vec<u8>) {
    if number >= EIGHT_DIGITS {
        out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        return;
    }
    let digits = eight_digits(number);
    // The last digit stays, also where it is a zero.
    let zeros = (digits | 1 << 56).trailing_zeros() / 8;
    append(ascii(digits) >> (8 * zeros), 8 - zeros as usize, out);
}

/// Seconds with six digits after the point.
#[inline]
pub(crate) fn seconds(time: Duration, out: &mut Vec<u8>) {
    let (seconds, micros) = (time.as_secs(), eight_digits(time.subsec_micros().into()));
    // The first two of the eight are zeros: the place for the point, and for one digit before it.
    let with_point = ascii(micros) & !0xffff | u64::from(b'.') << 8;
    if seconds < 10 {
        out.extend_from_slice(&(with_point | (u64::from(b'0') + seconds)).to_le_bytes());
    } else {
        integer(seconds, out);
        append(with_point >> 8, 7, out);
    }
}

/// The digits of a number below [`EIGHT_DIGITS`], the first in the lowest byte: all pairs of them are taken apart at
/// once, by multiplications in lanes.
#[inline(always)]
const fn eight_digits(number: u64) -> u64 {
    // Two lanes of four digits, then four of two, then eight of one. 10486 / 2^20 and 103 / 2^10 are a hundredth and a
    // tenth, exact enough for as many digits.
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}

#[inline(always)]
const fn ascii(digits: u64) -> u64 {
    digits | 0x3030_3030_3030_3030
}

/// Appends the lowest bytes of `text`, the lowest first.
#[inline(always)]
fn append(text: u64, bytes: usize, out: &mut Vec<u8>) {
    let end = out.len() + bytes;
    out.extend_from_slice(&text.to_le_bytes());
    out.truncate(end);
}

/// A number below 1000, always three digits.
#[inline(always)]
pub(super) fn three_digits(number: u16) -> [u8; 3] {
    let (hundreds, rest) = (number / 100, number % 100);
    [hundreds, rest / 10, rest % 10].map(|digit| b'0' + digit as u8)
}

/// Each octet's digits and a point, and how many bytes that is.
const OCTETS: [([u8; 4], u8); 256] = {
    let mut table = [([0; 4], 0); 256];
    let mut n = 0;
    while n < 256 {
        let [a, b, c] = [n / 100, n / 10 % 10, n % 10];
        let [a, b, c] = [b'0' + a as u8, b'0' + b as u8, b'0' + c as u8];
        table[n] = match n {
            0..10 => ([c, b'.', 0, 0], 2),
            10..100 => ([b, c, b'.', 0], 3),
            _ => ([a, b, c, b'.'], 4),
        };
        n += 1;
    }
    table
};

pub(crate) fn address(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => {
            let mut text = [0; 16];
            let mut end = 0;
            for octet in address.octets() {
                // All four bytes are copied, and the next octet overwrites what is too much.
                let (digits, bytes) = OCTETS[usize::from(octet)];
                if let Some(place) = text.get_mut(end..end + digits.len()) {
                    place.copy_from_slice(&digits);
                }
                end += usize::from(bytes);
            }
            // The last point is one too many.
            let end = out.len() + end.saturating_sub(1);
            out.extend_from_slice(&text);
            out.truncate(end);
        }
        // RFC 5952's shortest form is worth no second writing of it.
        IpAddr::V6(address) => drop(write!(out, "{address}")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_keep_their_zeros() {
        for (micros, expected) in [
            (0, "0.000000"),
            (7, "0.000007"),
            (1_000_250, "1.000250"),
            (9_999_999, "9.999999"),
            (10_000_000, "10.000000"),
            (59_999_999, "59.999999"),
            (u64::MAX, "18446744073709.551615"),
        ] {
            assert_eq!(written(|out| seconds(Duration::from_micros(micros), out)), expected);
        }
        for (ms, expected) in [(0, "000"), (7, "007"), (45, "045"), (999, "999")] {
            assert_eq!(str::from_utf8(&three_digits(ms)), Ok(expected));
        }
    }

    #[test]
    fn digits_are_those_of_the_number() {
        let check = |number: u64| assert_eq!(written(|out| integer(number, out)), number.to_string());
        (0..20_000).for_each(check);
        (0..64).map(|bits| u64::MAX >> bits).for_each(check);
        (0..20)
            .map(|zeros| 10_u64.pow(zeros))
            .for_each(|number| [number - 1, number].into_iter().for_each(check));
    }

    proptest! {
        #[test]
        fn all_eight_digits_are_the_same_as_elsewhere(number in 0..EIGHT_DIGITS) {
            let digits = ascii(eight_digits(number)).to_le_bytes();
            prop_assert_eq!(String::from_utf8_lossy(&digits), format!("{number:08}"));
        }
    }

    #[test]
    fn addresses_are_written_as_everywhere() {
        for text in ["255.255.255.255", "::1", "2001:db8::8:0:1", "::ffff:192.0.2.1"] {
            let parsed: IpAddr = text.parse().unwrap();
            assert_eq!(written(|out| address(parsed, out)), text);
        }
        for octet in 0..=255 {
            let parsed = IpAddr::from([octet, 10, 0, octet]);
            assert_eq!(written(|out| address(parsed, out)), parsed.to_string());
        }
    }
}
