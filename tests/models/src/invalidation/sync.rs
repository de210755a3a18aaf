//! What `larder-proxy` and `larder-store` have under this name, of loom.

use std::ops::{Deref, DerefMut};

pub(super) use super::judged::Judged;
pub(super) use crate::sync::{AtomicU64, Mutex, Ordering};

/// Of no use here.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rank {
    Predicates,
}

#[derive(Debug)]
pub(super) struct RankedRwLock<T>(crate::sync::RwLock<T>);

impl<T> RankedRwLock<T> {
    pub(super) fn new(_: Rank, value: T) -> Self {
        Self(crate::sync::RwLock::new(value))
    }

    pub(super) fn read(&self) -> impl Deref<Target = T> + '_ {
        self.0.read()
    }

    pub(super) fn write(&self) -> impl DerefMut<Target = T> + '_ {
        self.0.write()
    }
}
