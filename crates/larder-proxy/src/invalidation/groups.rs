//! Cache groups (RFC 9875): a kind of predicate that names scheme, authority and group.
//!
//! In: tags of groups, and the fields that name groups. Out: the names of responses that are in them, and notes for
//! journals. A note names its group in words: hashes and tags are the process's own. A note that cannot be read again
//! stands for every group.

use std::sync::Arc;

use bytes::Bytes;
use larder_cache::groups::{GroupTag, GroupTags};
use larder_http::authority::Authority;
use larder_http::fields::cache_groups;
use larder_http::message::{RequestHead, Scheme};
use larder_http::time::{Now, WallTime};
use larder_store::{Note, Store};

use super::effects::How;
use super::kind::{Effect, NameKind, Noted, Subject};

/// Begins a note of one group that was removed.
const GROUP: u8 = b'g';
/// Begins a note of one group that has to be validated.
const GROUP_INVALID: u8 = b'v';

pub(super) const KIND: NameKind = NameKind { names, has_tags: false, read };

fn names(subject: &Subject<'_>, each: &mut dyn FnMut(u64)) {
    if let Some(head) = subject.head {
        names_of(&head.groups, each);
    }
}

/// The names of what is in these groups.
pub(super) fn names_of(groups: &GroupTags, each: &mut dyn FnMut(u64)) {
    if !groups.is_empty() {
        each(any_group());
    }
    groups.iter().map(GroupTag::hash).for_each(each);
}

/// The name of what is in any group. No group has it: a group has an origin.
fn any_group() -> u64 {
    GroupTag::any().hash()
}

/// Notes that the groups which an answer to `head` names in `fields` were invalidated under `number`.
pub(crate) fn note_groups(
    stores: &[Arc<Store>],
    (head, fields): (&RequestHead, &http::HeaderMap),
    (number, how, now): (u64, How, Now),
) {
    for group in cache_groups::invalidated(fields) {
        let note = of_group((head.scheme, &head.authority, &group), number, how, now.wall);
        stores.iter().for_each(|store| store.note(&note));
    }
}

pub(super) fn of_group(group: (Scheme, &Authority, &str), number: u64, how: How, at: WallTime) -> Note {
    let (kind, moment) = match how {
        How::Remove => (GROUP, 0),
        How::Validate(_) | How::Soften(_) => (GROUP_INVALID, at.0),
    };
    let (scheme, authority, name) = group;
    let mut what = vec![kind];
    for part in [scheme.as_str(), authority.as_str(), name] {
        what.extend_from_slice(part.as_bytes());
        // No part contains it: a group's name is a string of printable characters (RFC 8941 3.3.3).
        what.push(0);
    }
    Note { number, moment, what }
}

/// What a note names, where it is of this kind.
fn read(what: &[u8]) -> Option<Noted> {
    let (effect, group) = match what.split_first()? {
        (&GROUP, group) => (Effect::Remove, group),
        (&GROUP_INVALID, group) => (Effect::Validate, group),
        // As it was written once for a group whose name was too long.
        (b'G', []) => return Some(Noted::Name(any_group(), Effect::Remove)),
        _ => return None,
    };
    Some(match tag(group) {
        Some(tag) => Noted::Name(tag.hash(), effect),
        None => Noted::Name(any_group(), Effect::Remove),
    })
}

fn tag(group: &[u8]) -> Option<GroupTag> {
    let mut parts = group.split(|byte| *byte == 0);
    let scheme = match parts.next()? {
        b"http" => Scheme::Http,
        b"https" => Scheme::Https,
        _ => return None,
    };
    let authority = Authority::parse(Bytes::copy_from_slice(parts.next()?), scheme).ok()?;
    let group = std::str::from_utf8(parts.next()?).ok()?;
    Some(GroupTag::named(scheme, &authority, group))
}
