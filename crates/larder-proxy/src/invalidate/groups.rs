//! Invalidation by cache group (RFC 9875).
//!
//! A group is not looked for in the index: its invalidation is a number, and every stored response that names the group is
//! compared with it when it is found. One that was fetched before is as good as gone.
//! Numbers are kept for [`GROUPS_MAX`] groups. When there are more, all of them together become one floor below which
//! no response with any group is used: too much is fetched again then, and nothing outdated is ever served.

use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use larder_cache::groups::{GroupTag, GroupTags};
use parking_lot::RwLock;

/// Invalidated groups that are told apart; about 2 MiB.
const GROUPS_MAX: usize = 65_536;

/// Which groups were last invalidated when.
#[derive(Debug, Default)]
pub(crate) struct GroupInvalidations {
    /// The highest number noted. Most look-ups need no more than this.
    latest: AtomicU64,
    noted: RwLock<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    numbers: HashMap<GroupTag, u64, foldhash::fast::RandomState>,
    floor: u64,
}

impl GroupInvalidations {
    /// Whether nothing in `tags` was invalidated after `number`, the last invalidation before the response was fetched.
    pub(crate) fn hold(&self, tags: &GroupTags, number: u64) -> bool {
        if tags.is_empty() || self.latest.load(Ordering::Acquire) <= number {
            return true;
        }
        self.noted.read().hold(tags, number)
    }

    /// Invalidates the groups under `number`. Says whether the groups of `own`, a response fetched after the number that
    /// stands with it, held until then.
    pub(super) fn note(&self, tags: &GroupTags, number: u64, own: (&GroupTags, u64)) -> bool {
        let mut noted = self.noted.write();
        let held = noted.hold(own.0, own.1);
        for tag in tags.iter() {
            if noted.numbers.len() >= GROUPS_MAX && !noted.numbers.contains_key(&tag) {
                let highest = noted.numbers.drain().map(|(_, number)| number).max();
                noted.floor = noted.floor.max(highest.unwrap_or_default());
            }
            let last = noted.numbers.entry(tag).or_default();
            *last = number.max(*last);
        }
        self.latest.fetch_max(number, Ordering::AcqRel);
        held
    }
}

impl GroupInvalidations {
    /// Invalidates every group there is under `number`.
    pub(super) fn note_all(&self, number: u64) {
        let mut noted = self.noted.write();
        noted.floor = noted.floor.max(number);
        self.latest.fetch_max(number, Ordering::AcqRel);
    }
}

impl Noted {
    fn hold(&self, tags: &GroupTags, number: u64) -> bool {
        let later = |tag: GroupTag| self.numbers.get(&tag).is_some_and(|last| *last > number);
        tags.is_empty() || (self.floor <= number && !tags.iter().any(later))
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn tags(groups: &str) -> GroupTags {
        let head = crate::testing::request("/");
        let said = HeaderValue::from_str(groups).unwrap_or_else(|error| panic!("{error}"));
        let fields = HeaderMap::from_iter([(http::HeaderName::from_static("cache-groups"), said)]);
        GroupTags::of(head.scheme, &head.authority, &fields)
    }

    #[test]
    fn what_was_fetched_before_its_groups_invalidation_does_not_hold() {
        let (groups, none) = (GroupInvalidations::default(), GroupTags::default());
        let (both, other) = (tags("\"a\", \"b\""), tags("\"c\""));
        assert!(groups.hold(&both, 0));
        groups.note(&tags("\"b\""), 5, (&none, 0));
        for (tags, number, holds) in [
            (&both, 4, false),
            (&both, 5, true),
            (&other, 4, true),
            (&GroupTags::default(), 0, true),
            (&tags("\"B\""), 0, true),
        ] {
            assert_eq!(groups.hold(tags, number), holds, "{number}");
        }
        groups.note(&tags("\"b\""), 4, (&none, 0));
        assert!(!groups.hold(&both, 4), "a later invalidation is not undone by an earlier one");
    }

    #[test]
    fn an_answer_that_invalidates_its_own_group_is_newer_than_that() {
        let groups = GroupInvalidations::default();
        let own = tags("\"a\"");
        assert!(groups.note(&own, 3, (&own, 2)));
        assert!(groups.hold(&own, 3));
        assert!(!groups.note(&own, 5, (&own, 2)), "another came first");
    }

    #[test]
    fn too_many_groups_become_one_floor() {
        let (groups, none) = (GroupInvalidations::default(), GroupTags::default());
        for number in 0..=GROUPS_MAX as u64 {
            groups.note(&tags(&format!("\"g{number}\"")), number + 1, (&none, 0));
        }
        assert!(groups.noted.read().numbers.len() <= 1);
        let never_named = tags("\"other\"");
        assert!(!groups.hold(&never_named, GROUPS_MAX as u64 - 1));
        assert!(groups.hold(&never_named, GROUPS_MAX as u64));
        assert!(groups.hold(&GroupTags::default(), 0));
    }
}
