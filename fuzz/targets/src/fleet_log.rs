//! What the members of a fleet read: replies of the server with lists, what the script answered, and the entries of the log.
//!
//! Larders of other versions write entries, and whoever may write in the server can put anything there.

use larder_fleet::script::reply;
use larder_proxy::fuzzing::{read_fleet_entry, write_fleet_entries};
use larder_remote::fuzzing::{ListBounds, follow_lists};

use crate::allocated::at_most;

/// A line, and the tables of a pattern that is compiled.
const FIXED_BYTES: usize = 64 << 20;
/// A word of a reply is a list's element, and a part of a row.
const PER_BYTE: usize = 128;

/// Reads `input`: a byte that says which of the three it is, one for the length of pieces, and what was sent.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let [kind, piece, sent @ ..] = input else { return };
    let (piece, bytes_max) = (usize::from(*piece).max(1), FIXED_BYTES + sent.len() * PER_BYTE);
    match kind % 3 {
        0 => {
            let bounds = ListBounds { nested: 5, elements: 64, bytes: 512 };
            let replies = at_most(bytes_max, || follow_lists([sent], 256, bounds));
            assert_eq!(follow_lists(sent.chunks(piece), 256, bounds), replies, "cut every {piece} bytes");
            assert_eq!(follow_lists(sent.chunks(1), 256, bounds), replies, "cut everywhere");
            if replies.is_none() {
                let more = follow_lists([sent, b"\r\n+OK\r\n"], 256, bounds);
                assert_eq!(more, None, "rubbish is the end");
            }
        }
        1 => {
            let words: Vec<&[u8]> = sent.split(|byte| *byte == 0).collect();
            let read = at_most(bytes_max, || reply::<Vec<u8>>(&words));
            // A word more or less is another reply, or none.
            let fewer = reply::<Vec<u8>>(words.get(1..).unwrap_or_default());
            assert!(read.is_err() || read != fewer, "{read:?}");
        }
        _ => {
            let (kind, predicates) = at_most(bytes_max, || read_fleet_entry(sent));
            assert!(!predicates.is_empty(), "an entry that says nothing would be lost");
            let again: Vec<_> =
                write_fleet_entries(&predicates).iter().map(|entry| read_fleet_entry(entry)).collect();
            let said = |predicates: &[_]| {
                predicates.iter().map(|predicate| format!("{predicate:?}")).collect::<Vec<_>>()
            };
            let read_again: Vec<String> = again.iter().flat_map(|(_, predicates)| said(predicates)).collect();
            assert_eq!(read_again, said(&predicates), "{kind}");
        }
    }
}
