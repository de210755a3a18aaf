//! When memory is looked through for what is idle.

use super::*;

#[test]
fn of_several_calls_at_one_moment_one_sweeps_and_the_first_interval_begins_with_the_first() {
    let store = Store::in_memory(&MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 });
    let claims = |seconds| {
        let claim = || store.claims_sweep(Duration::from_secs(10), Duration::from_secs(seconds));
        (0..3).filter(|_| claim()).count()
    };
    assert_eq!([5, 10, 14, 15, 24, 25].map(claims), [0, 0, 0, 1, 0, 1]);
}
