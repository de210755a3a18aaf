//! Chunked content: larder's decoder, whole and in pieces, beside hyper's.

use crate::judge;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    judge::content(input);
}
