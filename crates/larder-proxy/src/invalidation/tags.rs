//! Tags: a kind of predicate that names what an application has tagged.

use larder_cache::purge::tags::Tags;

use super::kind::{NameKind, Subject};

/// Stands for every tag in a hash that a response with more tags than are kept is known by as well.
pub(super) const KIND: NameKind = NameKind { names, has_tags: true, read: |_| None };

/// What a purge of any tag is entered under beside the tag's own name: a response with more tags than are kept has it.
pub(super) fn any_tag() -> u64 {
    Tags::hash_of(b"")
}

fn names(subject: &Subject<'_>, each: &mut dyn FnMut(u64)) {
    let Some(tags) = subject.head.and_then(|head| head.tags.as_deref()) else { return };
    if tags.carries_every() {
        each(any_tag());
    }
    tags.hashes().iter().copied().for_each(each);
}
