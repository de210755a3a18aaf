//! How much a fetch copies when it begins: its future, into the box that it lies in.

use super::*;

/// With what is rare in it, a fetch once took 8504 bytes. Beyond 8 KiB `memcpy` copies byte for byte as callgrind counts.
const FETCH_BYTES_MAX: usize = 3072;

fn size_of_future<F: Future>(_: impl FnOnce(FetchTask, FlightGuard) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn a_fetch_is_small_when_it_begins() {
    let bytes = size_of_future(fly);
    assert!(bytes <= FETCH_BYTES_MAX, "{bytes}");
}
