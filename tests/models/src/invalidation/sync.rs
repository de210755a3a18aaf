//! What `larder-proxy` and `larder-store` have under this name, of loom.

use std::ops::{Deref, DerefMut};

pub(super) use super::judged::Judged;
pub(super) use loom::sync::atomic::{AtomicU64, Ordering};

const UNPOISONED: &str = "a thread that panics ends the model";

/// Of no use here.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rank {
    Predicates,
}

#[derive(Debug)]
pub(super) struct RankedRwLock<T>(loom::sync::RwLock<T>);

impl<T> RankedRwLock<T> {
    pub(super) fn new(_: Rank, value: T) -> Self {
        Self(loom::sync::RwLock::new(value))
    }

    pub(super) fn read(&self) -> impl Deref<Target = T> + '_ {
        self.0.read().expect(UNPOISONED)
    }

    pub(super) fn write(&self) -> impl DerefMut<Target = T> + '_ {
        self.0.write().expect(UNPOISONED)
    }
}

#[derive(Debug, Default)]
pub(super) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(super) fn lock(&self) -> impl DerefMut<Target = T> + '_ {
        self.0.lock().expect(UNPOISONED)
    }
}
