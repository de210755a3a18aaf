//! Hosts, and all of a scope: kinds of predicates that name everything there.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use super::kind::{NameKind, Subject};

/// One for the process: names are never written down as hashes.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

pub(super) const KIND: NameKind = NameKind { names, has_tags: false, read: |_| None };

/// The name of everything at a host, in lower case and without port.
pub(super) fn name_of(host: &str) -> u64 {
    SEED.hash_one((b'h', host))
}

/// The name of everything in a scope.
pub(super) fn everything() -> u64 {
    static EVERYTHING: LazyLock<u64> = LazyLock::new(|| SEED.hash_one(b'*'));
    *EVERYTHING
}

fn names(subject: &Subject<'_>, each: &mut dyn FnMut(u64)) {
    each(everything());
    each(name_of(subject.host()));
}
