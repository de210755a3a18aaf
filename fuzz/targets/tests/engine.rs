//! One target of [`fuzz_targets`] behind libFuzzer, which is the `main` of this program.
//!
//! In: the name of the target in `LARDER_TARGET`, and libFuzzer's arguments. Out: whatever libFuzzer says; a panic of the
//! target is its finding.
#![no_main]

use std::sync::LazyLock;

use fuzz_targets::{Check, TARGETS};

static CHECK: LazyLock<Check> = LazyLock::new(|| {
    let asked = std::env::var("LARDER_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|(name, _)| *name == asked);
    found.unwrap_or_else(|| panic!("LARDER_TARGET=`{asked}` names no target")).1
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| CHECK(input));
