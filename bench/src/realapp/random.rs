//! Choices that can be made once more: LARDER_SEED repeats those of another run.

/// SplitMix64.
pub(super) struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    /// By LARDER_SEED, else by the clock.
    pub(super) fn of_this_run() -> Self {
        let now = || {
            let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
            u64::from(since.subsec_nanos()) ^ since.as_secs()
        };
        let said = std::env::var("LARDER_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = said.unwrap_or_else(now);
        Self { seed, state: seed }
    }

    /// What repeats it.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// A number below `end`, which is not zero.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        usize::try_from((mixed ^ (mixed >> 31)) % end).unwrap_or_default()
    }
}
