//! Cache groups: responses of one origin that become outdated together (RFC 9875).
//!
//! In: the fields of a response and the origin that it came from. Out: [`GroupTags`], small enough to lie in every
//! stored head and quick to compare, since they are looked at on each hit of a response that has any.
//! A group is meant within its origin only (RFC 9875 2), so a tag is made of scheme, authority and name: nobody can name
//! another site's group. Two names that come to the same tag, which nobody outside can bring about since the seed is the
//! process's own, are invalidated together: something is fetched once too often, nothing outdated is served.
//! Deliberately absent: which methods may invalidate (see [`crate::invalidate`]), and when an invalidation happened.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use http::HeaderMap;
use larder_http::authority::Authority;
use larder_http::fields::cache_groups;
use larder_http::message::Scheme;

/// One for the process: tags are never written down.
static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// One group of one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupTag(u64);

impl GroupTag {
    /// The group of this name at this origin.
    pub fn named(scheme: Scheme, authority: &Authority, group: &str) -> Self {
        Self(SEED.hash_one((scheme, authority, group)))
    }

    /// Stands for every group of every origin; no group has it.
    pub fn any() -> Self {
        Self(SEED.hash_one(()))
    }

    /// A number that tells it apart from the others.
    pub fn hash(self) -> u64 {
        self.0
    }
}

/// The groups that a response is in, or those that one invalidates; each once, at most as many as
/// [`cache_groups`] reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupTags(Box<[GroupTag]>);

impl FromIterator<GroupTag> for GroupTags {
    fn from_iter<I: IntoIterator<Item = GroupTag>>(tags: I) -> Self {
        Self(tags.into_iter().collect())
    }
}

impl GroupTags {
    /// The groups that a response of this origin is in: Cache-Groups. Empty where the field is absent or not understood.
    pub fn of(scheme: Scheme, authority: &Authority, fields: &HeaderMap) -> Self {
        // Nearly every response: no list is built for it.
        if !fields.contains_key(cache_groups::CACHE_GROUPS) {
            return Self::default();
        }
        Self::named(scheme, authority, &cache_groups::groups(fields))
    }

    /// The groups that a response of this origin invalidates: Cache-Group-Invalidation. It means something only in the
    /// answer to an unsafe method, which is the caller's to know.
    pub fn invalidated_by(scheme: Scheme, authority: &Authority, fields: &HeaderMap) -> Self {
        if !fields.contains_key(cache_groups::CACHE_GROUP_INVALIDATION) {
            return Self::default();
        }
        Self::named(scheme, authority, &cache_groups::invalidated(fields))
    }

    fn named(scheme: Scheme, authority: &Authority, groups: &[String]) -> Self {
        Self(groups.iter().map(|group| GroupTag::named(scheme, authority, group)).collect())
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The groups.
    pub fn iter(&self) -> impl Iterator<Item = GroupTag> + '_ {
        self.0.iter().copied()
    }

    /// Bytes in memory, not counting the struct itself.
    pub fn memory_bytes(&self) -> usize {
        size_of_val::<[GroupTag]>(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bytes::Bytes;

    use super::*;
    use crate::example::fields;

    fn of(scheme: Scheme, host: &'static str, said: &[(&str, &str)]) -> Vec<GroupTag> {
        let authority = Authority::parse(Bytes::from_static(host.as_bytes()), scheme).unwrap();
        GroupTags::of(scheme, &authority, &fields(said)).iter().collect()
    }

    #[test]
    fn a_group_is_its_name_at_its_origin() {
        let a = [("cache-groups", "\"a\"")];
        let one = of(Scheme::Http, "example.org", &a);
        assert_eq!(one.len(), 1);
        assert_eq!(one, of(Scheme::Http, "EXAMPLE.org:80", &a));
        for (scheme, host, said) in [
            (Scheme::Https, "example.org", "\"a\""),
            (Scheme::Http, "example.net", "\"a\""),
            (Scheme::Http, "example.org:81", "\"a\""),
            (Scheme::Http, "example.org", "\"A\""),
            (Scheme::Http, "example.org", "\"aa\""),
        ] {
            assert_ne!(one, of(scheme, host, &[("cache-groups", said)]), "{host} {said}");
        }
        assert!(of(Scheme::Http, "example.org", &[("cache-groups", "\"a\", \"b\"")]).contains(&one[0]));
    }

    #[test]
    fn what_is_not_a_list_of_strings_names_no_group() {
        for said in [&[][..], &[("cache-groups", "a b")], &[("cache-group-invalidation", "\"a\"")]] {
            assert!(of(Scheme::Http, "example.org", said).is_empty(), "{said:?}");
        }
    }

    #[test]
    fn an_invalidation_names_the_same_groups() {
        let authority = Authority::parse(Bytes::from_static(b"example.org"), Scheme::Http).unwrap();
        let said = fields(&[("cache-group-invalidation", "\"b\", \"a\""), ("cache-groups", "\"c\"")]);
        let invalidated = GroupTags::invalidated_by(Scheme::Http, &authority, &said);
        let stored = of(Scheme::Http, "example.org", &[("cache-groups", "\"a\", \"b\"")]);
        assert!(stored.iter().all(|tag| invalidated.iter().any(|other| other == *tag)));
        assert_eq!(invalidated.iter().count(), 2);
        assert_eq!(invalidated.memory_bytes(), 16);
        assert!(GroupTags::default().is_empty() && !invalidated.is_empty());
    }
}
