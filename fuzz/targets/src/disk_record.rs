//! Records, pieces and lists of pieces: what is read is written again as it was, and no length is believed that is not
//! there. The input is read as it is and with its checksums made right.

use crate::allocated::in_proportion;
use crate::signed;
use larder_disk::fuzzing;

/// The longest record, and the longest piece, in bytes.
const RECORD_BYTES_MAX: usize = 16 << 20;
const PIECE_BYTES_MAX: usize = 256 * 1024;
const PIECE_BYTES: usize = 24;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let mut right = input.to_vec();
    let step = signed::record(&mut right);
    in_proportion(input.len() * 2, || {
        for bytes in [input, &right] {
            if let Some(again) = fuzzing::record(bytes) {
                assert_eq!(bytes.get(..again.len()), Some(&again[..]), "changed by writing it again");
                assert!(again.len() <= RECORD_BYTES_MAX);
            }
            pieces(bytes);
        }
    });
    // A piece has neither key nor head, and there are three kinds: all else that is signed and there is read.
    let is_read = fuzzing::record(&right).is_some();
    assert!(!is_read || step.next_multiple_of(8) == step && is_kind(&right));
    let is_bare = right.get(64..76).is_some_and(|lengths| lengths.iter().all(|byte| *byte == 0));
    let is_there = whole(&right).is_some_and(|length| length <= right.len().min(RECORD_BYTES_MAX));
    let is_piece = right.get(4) == Some(&3);
    assert_eq!(is_read, is_there && is_kind(&right) && (!is_piece || is_bare), "{right:?}");
}

/// The length that a header says.
fn whole(bytes: &[u8]) -> Option<usize> {
    let lengths = bytes.get(64..80)?.as_chunks::<4>().0;
    let all: usize = lengths.iter().map(|length| u32::from_le_bytes(*length) as usize).sum();
    (bytes.len() >= signed::RECORD_HEADER_BYTES).then_some(signed::RECORD_HEADER_BYTES + all)
}

fn is_kind(bytes: &[u8]) -> bool {
    matches!(bytes.get(4..8), Some([1..=3, 0, 0, 0]))
}

fn pieces(bytes: &[u8]) {
    let again = fuzzing::pieces(bytes);
    let lengths = bytes.chunks(PIECE_BYTES).map(|piece| {
        let length: [u8; 4] = piece.get(16..20)?.try_into().ok()?;
        (piece.len() == PIECE_BYTES).then_some(u32::from_le_bytes(length) as usize)
    });
    let is_right = lengths.into_iter().all(|length| length.is_some_and(|length| length <= PIECE_BYTES_MAX));
    assert_eq!(again.as_deref(), is_right.then_some(bytes), "each with a length that a piece may have");
}
