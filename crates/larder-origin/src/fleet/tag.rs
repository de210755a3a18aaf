//! A server's name for a cookie, and the hash that choices rest on; both are the same after a restart.
//!
//! In: the server's address and its place. Out: 64 bits. The tag hides nothing from somebody who can guess addresses;
//! it only spares them from being read off.

use std::fmt;
use std::str::FromStr;

use crate::place::Place;
use crate::settings::ServerAddress;

/// Names one address of one server, the same in every process and after every restart. Prints as 16 hexadecimal
/// digits and is parsed from them; meant for a cookie that keeps a client at its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ServerTag(pub(crate) u64);

impl ServerTag {
    pub(crate) fn new(server: &ServerAddress, place: &Place) -> Self {
        Self(stable_hash(format!("{server} {place}").as_bytes()))
    }
}

impl fmt::Display for ServerTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Not a server's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a server's tag")]
pub struct NotATag;

impl FromStr for ServerTag {
    type Err = NotATag;

    fn from_str(text: &str) -> Result<Self, NotATag> {
        let is_hex = text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let value = is_hex.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        value.map(Self).ok_or(NotATag)
    }
}

/// A hash that is the same in every process and after every restart: FNV-1a, then mixed, so that it is spread over all
/// bits and defined by this page rather than by a library's version. For [`Affinity`](crate::Affinity).
pub fn stable_hash(bytes: &[u8]) -> u64 {
    mix(bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    }))
}

/// The finaliser of SplitMix64: each bit of the input changes half of the output's.
pub(crate) fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_survives_restarts_and_is_read_strictly() {
        let server = ServerAddress::parse("http://127.0.0.1:3000").unwrap();
        let tag = ServerTag::new(&server, &server.fixed_place().unwrap());
        // Written down: a release that changes it sends every client to another server.
        assert_eq!(tag.to_string(), "072adc9f54475530");
        assert_eq!(tag.to_string().parse(), Ok(tag));
        for text in [
            "",
            "+123456789abcdef",
            "0123456789ABCDEF",
            "0123456789abcde",
            "0123456789abcdef0",
            "é23456789abcdef",
        ] {
            assert_eq!(text.parse::<ServerTag>(), Err(NotATag), "{text}");
        }
    }
}
