//! The target `file_name` of `fuzz_targets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_targets::file_name::check(input));
