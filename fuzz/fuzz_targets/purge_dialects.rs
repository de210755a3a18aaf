//! The target `purge_dialects` of `fuzz_targets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_targets::purge_dialects::check(input));
