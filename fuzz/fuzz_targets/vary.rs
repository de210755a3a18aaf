//! The target `vary` of `fuzz_targets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_targets::vary::check(input));
