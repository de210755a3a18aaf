//! Replies of memcached: however they are cut, the same is read; no value is larger than it may be, or has bytes that never came.

use larder_remote::fuzzing::read_replies;

use crate::allocated::at_most;

/// What is reserved for a value that is announced, the reader's buffers, and the checks of this target.
const FIXED_BYTES: usize = 1 << 20;
/// A line is copied, a value is collected, and each reply is printed by this target, where a byte may take four.
const PER_BYTE: usize = 64;

/// Reads `input`: a byte that says how large values may be, one for the length of pieces, and what the server sends.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let [limit, piece, sent @ ..] = input else { return };
    let (value_max, piece) = (usize::from(*limit) * 16, usize::from(*piece).max(1));
    let read = at_most(FIXED_BYTES + sent.len() * PER_BYTE, || read_replies([sent], value_max));
    assert_eq!(read_replies(sent.chunks(piece), value_max), read, "cut every {piece} bytes");
    assert_eq!(read_replies(sent.chunks(1), value_max), read, "cut everywhere");
    for (key, body) in &read.values {
        assert!(body.len() <= value_max, "a value beyond the limit");
        let is_word = |byte: &u8| *byte != b' ' && *byte != b'\n';
        assert!(key.iter().all(is_word), "{key:?} is no word of a line");
        assert!(
            body.is_empty() || sent.windows(body.len()).any(|part| part == body),
            "bytes that never came"
        );
    }
    // What is no reply stays none, whatever comes after it.
    if read.malformed.is_some() {
        assert_eq!(read_replies([sent, b"\r\nEND\r\n"], value_max), read, "rubbish is the end");
    }
}
