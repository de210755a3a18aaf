//! Every seed of every fuzz target, read once: what was found stays found, and a seed that does not hold shows here and
//! not only where there is a fuzzer.
//!
//! In: fuzz/corpus, a folder for each target. Out: the seed that fails, by its name.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

#[test]
fn every_seed_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let folders = fs::read_dir(&corpus).expect("fuzz/corpus").flatten().count();
    assert_eq!(folders, fuzz_targets::TARGETS.len(), "a folder for each target, and none for another");
    let mut failed = Vec::new();
    // One after the other: what reading allocates is counted for the whole process.
    for (target, check) in fuzz_targets::TARGETS {
        let mut seeds = 0;
        for seed in fs::read_dir(corpus.join(target)).expect(target).flatten() {
            let input = fs::read(seed.path()).expect(target);
            seeds += 1;
            if catch_unwind(|| check(&input)).is_err() {
                failed.push(seed.path());
            }
        }
        assert!(seeds > 0, "{target} has no seed");
    }
    assert!(failed.is_empty(), "do not hold: {failed:?}");
}
