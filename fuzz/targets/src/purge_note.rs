//! What a journal notes of purges: any bytes are read or refused, and what is read and written again is read as the same.

use crate::allocated::at_most;
use larder_cache::purge::written::{NOTE_BYTES_MAX, from_note, to_note};

/// A note is short, but it may hold four expressions, and each of them is compiled.
const ALLOCATED_MAX: usize = 64 << 20;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let read = at_most(ALLOCATED_MAX, || from_note(input));
    let Some(predicate) = read else { return };
    assert!(input.len() <= NOTE_BYTES_MAX && input.first() == Some(&b'p'));
    let note = to_note(&predicate);
    assert!(note.len() <= NOTE_BYTES_MAX);
    let again = from_note(&note).expect("what is written is read");
    assert_eq!(again, predicate);
    assert_eq!(to_note(&again), note, "equal predicates have equal notes");
}
