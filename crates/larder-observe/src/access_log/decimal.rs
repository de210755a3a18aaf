//! Numbers and addresses as digits, without the machinery of `core::fmt`, which costs more than the rest of a line.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

pub(super) fn integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Seconds with six digits after the point.
pub(super) fn seconds(time: Duration, out: &mut Vec<u8>) {
    integer(time.as_secs(), out);
    // A digit before them keeps the zeros that they begin with.
    let mut digits = itoa::Buffer::new();
    let micros = digits.format(1_000_000 + time.subsec_micros());
    out.push(b'.');
    out.extend_from_slice(micros.get(1..).unwrap_or_default().as_bytes());
}

/// Milliseconds of a second, always three digits.
pub(super) fn millis(ms: u64, out: &mut Vec<u8>) {
    let digit = |n: u64| b'0' + (n % 10) as u8;
    out.extend_from_slice(&[digit(ms / 100), digit(ms / 10), digit(ms)]);
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

pub(super) fn address(address: IpAddr, out: &mut Vec<u8>) {
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
            out.extend_from_slice(text.get(..end.saturating_sub(1)).unwrap_or_default());
        }
        // RFC 5952's shortest form is worth no second writing of it.
        IpAddr::V6(address) => drop(write!(out, "{address}")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_keep_their_zeros() {
        for (micros, expected) in
            [(0, "0.000000"), (7, "0.000007"), (1_000_250, "1.000250"), (59_999_999, "59.999999")]
        {
            assert_eq!(written(|out| seconds(Duration::from_micros(micros), out)), expected);
        }
        for (ms, expected) in [(0, "000"), (7, "007"), (45, "045"), (999, "999")] {
            assert_eq!(written(|out| millis(ms, out)), expected);
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
