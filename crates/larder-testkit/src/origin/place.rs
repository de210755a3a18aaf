//! How far the scripts of an origin have got.

/// How far a script has got.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) requests: u64,
    pub(super) pools: Vec<Pool>,
}

/// How far the unconditional answers of one pool have got.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    /// The first of them, by which the pool is known.
    pub(super) first: usize,
    /// The one that was given last, counted within the pool.
    pub(super) at: usize,
}
