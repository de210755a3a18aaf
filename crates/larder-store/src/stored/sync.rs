//! What a stored response remembers with. The models of tests/models put an explorer's atomics in their place.

pub(super) use std::sync::atomic::{AtomicU64, Ordering};
