//! Tables of segments: a table that is read is written again unchanged, and its length is that of its entries. The input
//! is read as it is, and once more with correct checksums.

use crate::allocated::in_proportion;
use crate::signed;
use larder_disk::fuzzing;

/// In a head of five fields, the segment.
const SEGMENT_AT: usize = 12 + 8;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let mut right = input.to_vec();
    signed::table(&mut right, None, None);
    in_proportion(input.len() * 2, || {
        for bytes in [input, &right] {
            if let Some(again) = fuzzing::table(bytes) {
                assert_eq!(again, bytes, "changed by writing it again");
            }
        }
    });
    let Some(entries) = right.get(signed::head_bytes(5)..) else {
        return assert!(fuzzing::table(&right).is_none(), "shorter than its head");
    };
    let is_entry = |entry: &[u8; 40]| matches!(entry.get(36..), Some([1..=3, 0..=1, 0, 0]));
    let (whole, rest) = entries.as_chunks::<40>();
    let has_segment = right.get(SEGMENT_AT + 4..SEGMENT_AT + 8) == Some(&[0; 4]);
    let is_right = has_segment && rest.is_empty() && whole.iter().all(is_entry);
    assert_eq!(fuzzing::table(&right).is_some(), is_right, "{right:?}");
}
