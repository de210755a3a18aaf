//! Paths: kinds of predicates that name one target at every host of a scope, or everything below a path.
//!
//! In: the target of a key. Out: its name, and those of the paths above it. A prefix is compared with the canonical path, as rules
//! are; a target with the bytes that are keyed.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use bytes::Bytes;
use larder_cache::purge::ANCESTORS_MAX;
use larder_http::target::Target;

use super::kind::{NameKind, Subject};

/// One for the process: names are never written down as hashes.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

pub(super) const KIND: NameKind = NameKind { names, read: |_| None };

/// The name of a target.
pub(super) fn name_of_target(target: &str) -> u64 {
    SEED.hash_one((b't', target))
}

/// The name of everything below a canonical path, which ends in `/`; `None` where it has too many segments for one.
pub(super) fn name_of_prefix(path: &str) -> Option<u64> {
    let segments = path.bytes().filter(|byte| *byte == b'/').count();
    (segments <= ANCESTORS_MAX).then(|| SEED.hash_one((b'p', path)))
}

fn names(subject: &Subject<'_>, each: &mut dyn FnMut(u64)) {
    let target = subject.target();
    each(name_of_target(target));
    // What is keyed was a target once.
    let Ok(target) = Target::parse(Bytes::copy_from_slice(target.as_bytes())) else { return };
    let Ok(path) = target.canonical_path() else { return };
    let ends = path.bytes().enumerate().filter(|(_, byte)| *byte == b'/').map(|(at, _)| at + 1);
    ends.take(ANCESTORS_MAX)
        .filter_map(|end| path.get(..end))
        .for_each(|above| each(SEED.hash_one((b'p', above))));
}
