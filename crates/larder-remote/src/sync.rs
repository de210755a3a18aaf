//! What the few files here are made of that every thread reads: atomics and locks.
//!
//! The models of tests/models compile those files with an explorer's atomics and locks, so that every order of events is tried: these names
//! are all that is another there.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock};
