//! Heads of files: the identity of a disk, a segment, a journal. What is read is written again as it was, each is only
//! itself, and one that is signed is read.

use crate::allocated::in_proportion;
use crate::signed;
use larder_disk::fuzzing;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let mut right = input.to_vec();
    signed::identity(&mut right, None);
    in_proportion(input.len() * 2, || {
        for bytes in [input, &right] {
            let read = [fuzzing::identity(bytes), fuzzing::segment_head(bytes), fuzzing::journal_head(bytes)];
            assert!(read.iter().flatten().count() <= 1, "two kinds of files at once");
            for again in read.into_iter().flatten() {
                // Behind the checksum there may be zeros up to where the next thing begins.
                let whole = again.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                assert_eq!(bytes.get(..whole), again.get(..whole), "changed by writing it again");
            }
        }
    });
    assert_eq!(fuzzing::identity(&right).is_some(), right.len() >= signed::head_bytes(4));
}
