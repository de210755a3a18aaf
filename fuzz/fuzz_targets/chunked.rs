//! Chunked content: larder's decoder, whole and in pieces, beside hyper's.

#![no_main]

use larder_fuzz::judge;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| judge::content(input));
