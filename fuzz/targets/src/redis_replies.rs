//! What a server of Redis sends, before the library reads it: however it is cut, it passes or not, and what passes is no larger
//! than it may be.

use larder_remote::fuzzing::{follow_replies, follow_three, string_of_reply};

use crate::allocated::at_most;

/// A line, and the library's own buffers.
const FIXED_BYTES: usize = 1 << 20;
/// The library reads what has passed, piece by piece.
const PER_BYTE: usize = 64;

/// Reads `input`: a byte that says how large strings may be, one for the length of pieces, and what the server sends.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let [limit, piece, sent @ ..] = input else { return };
    let (value_max, piece) = (usize::from(*limit) * 16, usize::from(*piece).max(1));
    let bytes_max = FIXED_BYTES + sent.len() * PER_BYTE;
    let replies = at_most(bytes_max, || follow_replies([sent], value_max));
    assert_eq!(follow_replies(sent.chunks(piece), value_max), replies, "cut every {piece} bytes");
    assert_eq!(follow_replies(sent.chunks(1), value_max), replies, "cut everywhere");
    let three = at_most(bytes_max, || follow_three([sent], value_max));
    assert_eq!(follow_three(sent.chunks(piece), value_max), three, "cut every {piece} bytes");
    assert_eq!(follow_three(sent.chunks(1), value_max), three, "cut everywhere");
    // The later protocol has more, and takes nothing away.
    assert!(three >= replies, "{three:?} {replies:?}");
    match replies {
        // What passes is never a list for the library, and no string beyond the limit.
        Some(1..) => {
            let read = at_most(bytes_max, || string_of_reply(sent));
            assert!(read.is_none_or(|length| length <= value_max), "{read:?} of {value_max}");
        }
        Some(0) => {}
        // What does not pass stays so, whatever comes after it.
        None => assert_eq!(follow_replies([sent, b"\r\n+OK\r\n"], value_max), None, "rubbish is the end"),
    }
}
