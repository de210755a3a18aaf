//! Invalidations that hold after a restart, where stores do.
//!
//! In: numbers and groups. Out: notes in the journals of the stores' disks, and at the next start the same again. What names
//! a URL is each store's own affair, which knows what it has; a group is a predicate (RFC 9875), so its note says
//! scheme, authority and name: tags are the process's own. The counter goes on above every number that a disk knows.
//! A group whose note would be longer than a journal takes, or that cannot be read again, stands for all groups: too much is
//! fetched again then.

use std::sync::Arc;

use bytes::Bytes;
use larder_cache::groups::{GroupTag, GroupTags};
use larder_http::authority::Authority;
use larder_http::fields::cache_groups;
use larder_http::message::{RequestHead, Scheme};
use larder_store::Store;

use super::Numbering;

/// The longest note, in bytes.
const NOTE_BYTES_MAX: usize = 1024;

/// Begins a note of one group.
const GROUP: u8 = b'g';
/// Stands for all groups.
const ALL_GROUPS: &[u8] = b"G";

/// Notes that the groups which an answer to `head` names in `fields` were invalidated under `number`.
pub(crate) fn note_groups(stores: &[Arc<Store>], head: &RequestHead, fields: &http::HeaderMap, number: u64) {
    let on_disks = || stores.iter().filter_map(|store| store.disks());
    if on_disks().next().is_none() {
        return;
    }
    for group in cache_groups::invalidated(fields) {
        let note = note(head.scheme, &head.authority, &group);
        on_disks().for_each(|disks| disks.note(number, &note));
    }
}

fn note(scheme: Scheme, authority: &Authority, group: &str) -> Vec<u8> {
    let mut note = vec![GROUP];
    for part in [scheme.as_str(), authority.as_str(), group] {
        note.extend_from_slice(part.as_bytes());
        // No part contains it: a group's name is a string of printable characters (RFC 8941 3.3.3).
        note.push(0);
    }
    if note.len() <= NOTE_BYTES_MAX { note } else { ALL_GROUPS.to_vec() }
}

/// The group of a note; `None` where it stands for all of them.
fn group(note: &[u8]) -> Option<GroupTag> {
    let mut parts = note.strip_prefix(&[GROUP])?.split(|byte| *byte == 0);
    let scheme = match parts.next()? {
        b"http" => Scheme::Http,
        b"https" => Scheme::Https,
        _ => return None,
    };
    let authority = Authority::parse(Bytes::copy_from_slice(parts.next()?), scheme).ok()?;
    let group = std::str::from_utf8(parts.next()?).ok()?;
    Some(GroupTag::named(scheme, &authority, group))
}

/// Takes over what the disks of new stores know: numbers go on above theirs, and their notes hold. Plain files outlive the
/// process too, with the number zero, and remember nothing: where no disk does, whatever of them is in a group is given up.
pub(crate) fn recover(numbering: &Numbering, stores: &[Arc<Store>]) {
    let has_files = stores.iter().any(|store| store.files().is_some());
    if has_files && stores.iter().all(|store| store.disks().is_none()) {
        numbering.continue_after(1);
        numbering.groups().note_all(1);
    }
    for disks in stores.iter().filter_map(|store| store.disks()) {
        // Disks that are there at once hold what they hold whatever has happened in other stores.
        let _ = numbering.continue_after(disks.last_number());
        take_over(numbering, disks.notes());
    }
}

/// The same for a disk that was absent until now, of which `last` is the highest number: a number above all that it knows.
/// `None` where something was invalidated since larder started, of which it has not heard: it may hold just that, under a number
/// that is higher by chance.
pub(crate) fn admit(numbering: &Numbering, last: u64, notes: Vec<(u64, Vec<u8>)>) -> Option<u64> {
    let number = numbering.continue_after(last.saturating_add(1))?;
    take_over(numbering, notes);
    Some(number)
}

fn take_over(numbering: &Numbering, notes: Vec<(u64, Vec<u8>)>) {
    for (number, note) in notes {
        match group(&note) {
            Some(tag) => {
                numbering.groups().note(&GroupTags::from_iter([tag]), number, (&GroupTags::default(), 0));
            }
            None => numbering.groups().note_all(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use larder_http::time::WallTime;
    use larder_store::MemoryStoreSettings;
    use larder_store::files::{FileStore, FilesSettings};

    use super::*;

    #[test]
    fn files_of_another_run_are_in_no_group_that_may_have_gone_unless_a_disk_remembers() {
        let settings = MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 };
        let folder = std::env::temp_dir().join(format!("larder-durable-{}", std::process::id()));
        let files = FileStore::open(&FilesSettings::new(&folder, 1 << 20)).expect("a store");
        let of_files = Store::of_files(&settings, files, WallTime(0));
        let head = crate::testing::request("/");
        let fields = HeaderMap::from_iter([(
            http::HeaderName::from_static("cache-groups"),
            HeaderValue::from_static("\"g\""),
        )]);
        let tags = GroupTags::of(head.scheme, &head.authority, &fields);
        let memory = Numbering::default();
        recover(&memory, &[Store::in_memory(&settings)]);
        assert!(memory.groups().hold(&tags, 0));
        let numbering = Numbering::default();
        recover(&numbering, &[Store::in_memory(&settings), Arc::clone(&of_files)]);
        assert!(!numbering.groups().hold(&tags, 0), "nobody knows what went");
        assert!(
            numbering.groups().hold(&GroupTags::default(), 0),
            "what is in no group is as good as before"
        );
        assert!(numbering.groups().hold(&tags, numbering.current()), "what is fetched from now on is new");
        of_files.close();
        std::fs::remove_dir_all(&folder).expect("its own folder");
    }

    #[test]
    fn a_group_comes_back_from_its_note_and_nothing_else_does() {
        let head = crate::testing::request("/");
        let (scheme, authority) = (head.scheme, &head.authority);
        let written = note(scheme, authority, "a b");
        assert_eq!(group(&written), Some(GroupTag::named(scheme, authority, "a b")));
        assert_ne!(group(&written), Some(GroupTag::named(scheme, authority, "a")));
        for odd in [&b"G"[..], b"", b"g", b"ghttp\0", b"gftp\0a\0b\0", b"ghttp\0a b\0c\0"] {
            assert_eq!(group(odd), None, "{}", odd.escape_ascii());
        }
    }

    #[test]
    fn a_disk_that_was_absent_is_believed_as_long_as_nothing_was_invalidated() {
        let head = crate::testing::request("/");
        let (scheme, authority) = (head.scheme, &head.authority);
        let numbering = Numbering::default();
        let noted = vec![(41, note(scheme, authority, "a"))];
        assert_eq!(admit(&numbering, 41, noted), Some(42));
        let tags = GroupTags::from_iter([GroupTag::named(scheme, authority, "a")]);
        assert!(!numbering.groups().hold(&tags, 40) && numbering.groups().hold(&tags, 41));
        // Two of them, one after the other.
        assert_eq!(admit(&numbering, 12, Vec::new()), Some(42));
        assert!(numbering.invalidate_groups(&tags, &GroupTags::default(), 0).is_some());
        assert_eq!(admit(&numbering, 99, Vec::new()), None);
    }

    #[test]
    fn a_name_too_long_for_a_note_stands_for_all() {
        let head = crate::testing::request("/");
        assert_eq!(note(head.scheme, &head.authority, &"x".repeat(NOTE_BYTES_MAX)), ALL_GROUPS);
    }
}
