//! What the numbers and the tables of invalidations are made of: atomics, locks, and what a stored response remembers.
//!
//! The models of tests/models compile the files beside this one with an explorer's atomics and locks, so that every order of events is tried:
//! these names are all that is another there.

pub(super) use std::sync::atomic::{AtomicU64, Ordering};

pub(super) use larder_store::rank::{Rank, RankedRwLock};
pub(super) use larder_store::stored::Judged;
pub(super) use parking_lot::Mutex;
