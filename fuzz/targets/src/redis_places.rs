//! Where a Redis is, in the words of Sentinels and of nodes of a cluster, and what a server says of itself: an answer is read or not, and
//! costs no more than a table of all slots.

use larder_remote::fuzzing::{names_master, stretches_of_slots, tells_version};

use crate::allocated::at_most;

/// Two tables of votes for each slot, and the library's own buffers.
const FIXED_BYTES: usize = 8 << 20;
/// The library reads an answer into values.
const PER_BYTE: usize = 128;

/// Reads `input` as each kind of answer.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let bytes_max = FIXED_BYTES + input.len() * PER_BYTE;
    let stretches = at_most(bytes_max, || stretches_of_slots(input));
    // Each stretch takes a few bytes.
    assert!(stretches.is_none_or(|stretches| stretches <= input.len() / 4), "{stretches:?}");
    let is_master = at_most(bytes_max, || names_master(input));
    assert!(!is_master || stretches.is_none(), "an address is no list of stretches");
    at_most(bytes_max, || tells_version(input));
}
