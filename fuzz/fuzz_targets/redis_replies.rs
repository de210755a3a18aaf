//! The target `redis_replies` of `fuzz_targets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_targets::redis_replies::check(input));
