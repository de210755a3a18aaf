//! Paths: kinds of predicates that name one target at every host of a scope, or everything below a path.
//!
//! In: the target of a key. Out: its name, and those of the paths above it. A prefix is compared with the canonical path, as rules
//! are; a target with the bytes that are keyed.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use bytes::Bytes;
use larder_cache::purge::ANCESTORS_MAX;
use larder_http::target::Target;

use super::kind::{NameKind, Subject};

/// One for the process: names are never written down as hashes.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

pub(super) const KIND: NameKind = NameKind { names, has_tags: false, read: |_| None };

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
    let Some(path) = canonical(target) else { return };
    let ends = path.bytes().enumerate().filter(|(_, byte)| *byte == b'/').map(|(at, _)| at + 1);
    ends.take(ANCESTORS_MAX)
        .filter_map(|end| path.get(..end))
        .for_each(|above| each(SEED.hash_one((b'p', above))));
}

/// The canonical path of what is keyed, which was a target once.
fn canonical(target: &str) -> Option<Cow<'_, str>> {
    let path = target.split('?').next().unwrap_or_default();
    if is_plain(path) {
        return Some(Cow::Borrowed(path));
    }
    let target = Target::parse(Bytes::copy_from_slice(target.as_bytes())).ok()?;
    let path = target.canonical_path().ok()?;
    Some(Cow::Owned(path.into_owned()))
}

/// Whether a path shows at a glance that it is its own canonical form, as nearly all do.
fn is_plain(path: &str) -> bool {
    let mut before = 0;
    path.starts_with('/')
        && path.bytes().all(|byte| {
            let begins_segment = std::mem::replace(&mut before, byte) == b'/';
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'-' | b'_' | b'~')
                || (matches!(byte, b'/' | b'.') && !begins_segment)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_looks_plain_is_its_own_canonical_form() {
        for (target, canonical_path, looks_plain) in [
            ("/", "/", true),
            ("/a/b.html?x=/../y", "/a/b.html", true),
            ("/a-b_c~d/", "/a-b_c~d/", true),
            ("/a//b", "/a/b", false),
            ("/a/./b", "/a/b", false),
            ("/a/../b", "/b", false),
            ("/a/.b", "/a/.b", false),
            ("/%61/b", "/a/b", false),
            ("/a/%2f", "/a/%2F", false),
            ("/a+b", "/a+b", false),
        ] {
            let path = target.split('?').next().unwrap_or_default();
            assert_eq!(is_plain(path), looks_plain, "{target}");
            assert_eq!(canonical(target).as_deref(), Some(canonical_path), "{target}");
        }
        assert_eq!(canonical("/../a"), None);
        assert_eq!(canonical("*").as_deref(), None, "no path");
    }
}
