//! Whole connections: larder's HTTP/1 front door beside hyper's server.

#![no_main]

use larder_fuzz::{hypers, judge, ours};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if judge::is_comparable(input) {
        judge::connections(input, &ours::read(input), &hypers::read(input));
    }
});
