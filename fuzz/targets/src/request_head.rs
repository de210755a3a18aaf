//! Whole connections: larder's HTTP/1 listener beside hyper's server.

use crate::{hypers, judge, ours};

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    if judge::is_comparable(input) {
        judge::connections(input, &ours::read(input), &hypers::read(input));
    }
}
