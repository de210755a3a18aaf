//! The target `value_message` of `fuzz_targets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_targets::value_message::check(input));
