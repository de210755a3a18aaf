//! The journal of a directory of plain files: any bytes are read or refused, what is read and written again is the same, and cut
//! off anywhere it is a beginning of itself or not believed. The input is read as it is and with checksums made right.

use crate::allocated::in_proportion;
use crate::signed;
use larder_files::fuzzing;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let mut right = input.to_vec();
    signed::file_journal(&mut right);
    in_proportion(input.len() * 8, || {
        for bytes in [input, &right] {
            holds(bytes);
        }
    });
}

fn holds(bytes: &[u8]) {
    let Some(read) = fuzzing::file_journal(bytes) else { return };
    let again = fuzzing::file_journal(&read.again).expect("what was written is read");
    assert!(again.is_whole);
    assert_eq!((&again.again, again.notes), (&read.again, read.notes));
    // What is missing at the end is no damage, unless the content of the torn entry looks like entries: then the journal is not
    // believed.
    let cut = read.again.len().saturating_sub(1);
    let shorter = fuzzing::file_journal(&read.again[..cut]);
    assert!(shorter.is_none_or(|shorter| !shorter.is_whole || shorter.notes <= read.notes));
}
