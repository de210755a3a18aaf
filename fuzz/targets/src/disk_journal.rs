//! Journals: what is read is written again as it was; what stands behind good entries never changes how these are read;
//! and where entries are missing before others, that is told. The input is read as it is and with checksums made right.

use crate::allocated::in_proportion;
use crate::signed;
use larder_disk::fuzzing::{self, Entries};

/// Entries begin at multiples of this.
const ALIGN: usize = 8;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    if let Some(again) = fuzzing::journal_head(input) {
        assert_eq!(input.get(..again.len()).map(|head| &head[..28]), Some(&again[..28]));
        assert_eq!(fuzzing::journal_head(&again), Some(again));
    }
    let mut right = input.to_vec();
    signed::entries(&mut right);
    in_proportion(input.len() * 4, || {
        for bytes in [input, &right] {
            holds(bytes);
        }
    });
}

fn holds(bytes: &[u8]) {
    let read = fuzzing::journal(bytes);
    assert!(read.end <= bytes.len() && read.end.is_multiple_of(ALIGN), "{} of {}", read.end, bytes.len());
    let (again, end) = (read.again.clone(), read.again.len());
    if read.lost_up_to.is_none() {
        assert_eq!(bytes.get(..read.end), Some(&again[..]), "changed by writing it again");
    } else {
        assert!(end < read.end, "lost, and nothing is missing");
    }
    assert_eq!(fuzzing::journal(&again), Entries { again: again.clone(), end, lost_up_to: None });
    // Where the file is cut at its end and gone on with, what was read is read again, and what is new behind it.
    let mut longer = bytes.get(..read.end).unwrap_or_default().to_vec();
    longer.extend_from_slice(&again);
    let more = fuzzing::journal(&longer);
    assert_eq!((more.end, more.again), (longer.len(), [&again[..], &again].concat()));
    assert_eq!(more.lost_up_to.is_some(), read.lost_up_to.is_some());
    // Without a number behind what is missing nothing bounds it; the first that comes does.
    assert!(read.lost_up_to == Some(u64::MAX) || more.lost_up_to >= read.lost_up_to);
}
