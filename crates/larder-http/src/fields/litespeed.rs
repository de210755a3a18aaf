//! The fields by which plugins for LiteSpeed's cache tell it what to store and what to purge.
//!
//! In: all lines of such a field of a response. Out: what `X-LiteSpeed-Purge` names, and whether a response is for one visitor only.
//! Words that are not known here are ignored. Deliberately absent: LiteSpeed's private caches. What is purged in them
//! was never stored here.

use http::{HeaderMap, HeaderName};

use super::cache_control::member_end;

/// What to store, and for how long: as Cache-Control, for this cache alone.
pub const CACHE_CONTROL: HeaderName = HeaderName::from_static("x-litespeed-cache-control");
/// What to purge.
pub const PURGE: HeaderName = HeaderName::from_static("x-litespeed-purge");
/// The tags of the response.
pub const TAG: HeaderName = HeaderName::from_static("x-litespeed-tag");
/// What the response varies by beside its URL.
pub const VARY: HeaderName = HeaderName::from_static("x-litespeed-vary");
/// On requests: there is a cache that understands these fields.
pub const LSCACHE: HeaderName = HeaderName::from_static("x-lscache");

/// Things that one response may name.
pub const NAMED_MAX: usize = 1000;

/// Something that is to be purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// `tag=NAME`
    Tag(&'a [u8]),
    /// A path, with its query.
    Path(&'a [u8]),
    /// `*`
    All,
}

/// What a response names for the public cache, and whether it may be used stale (`stale`). A `private` in a line begins what is
/// for private caches alone, until its next `;` or `public`.
pub fn purged(fields: &HeaderMap) -> (Vec<Named<'_>>, bool) {
    let (mut named, mut is_stale) = (Vec::new(), false);
    for line in fields.get_all(PURGE) {
        for part in line.as_bytes().split(|byte| *byte == b';') {
            let mut is_public = true;
            for word in part.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                match word {
                    b"public" => is_public = true,
                    b"private" => is_public = false,
                    b"stale" => is_stale |= is_public,
                    _ if !is_public || named.len() >= NAMED_MAX => {}
                    b"*" => named.push(Named::All),
                    [b'/', ..] => named.push(Named::Path(word)),
                    _ => match word.strip_prefix(b"tag=").map(<[u8]>::trim_ascii) {
                        Some(tag) if !tag.is_empty() => named.push(Named::Tag(tag)),
                        _ => {}
                    },
                }
            }
        }
    }
    (named, is_stale)
}

/// Whether a response is for one visitor only, or for none again: `private`, `no-cache` or `no-store`, or a Vary of LiteSpeed's own,
/// which nothing here compares.
pub fn is_for_one(fields: &HeaderMap) -> bool {
    let is_for_one = |word: &[u8]| {
        let name = word.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
        [&b"private"[..], b"no-cache", b"no-store"].iter().any(|one| name.eq_ignore_ascii_case(one))
    };
    fields.contains_key(VARY)
        || fields.get_all(CACHE_CONTROL).iter().any(|line| {
            let mut rest = line.as_bytes();
            let mut found = false;
            while !rest.is_empty() && !found {
                let (member, after) = rest.split_at(member_end(rest));
                rest = after.get(1..).unwrap_or_default();
                found = is_for_one(member.trim_ascii());
            }
            found
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;

    use super::*;

    fn fields(lines: &[(HeaderName, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn what_is_named_for_the_public_cache_counts() {
        use Named::{All, Path, Tag};
        for (value, expected, is_stale) in [
            ("tag=a", vec![Tag(b"a")], false),
            ("public, tag=a,tag=b , /x?y=1", vec![Tag(b"a"), Tag(b"b"), Path(b"/x?y=1")], false),
            ("public,stale,*", vec![All], true),
            ("*, stale", vec![All], true),
            ("private,*;public,tag=a", vec![Tag(b"a")], false),
            ("private, stale, tag=a", vec![], false),
            ("tag=, nonsense, tag", vec![], false),
            ("", vec![], false),
        ] {
            assert_eq!(purged(&fields(&[(PURGE, value)])), (expected, is_stale), "{value}");
        }
        let many = vec!["tag=a"; NAMED_MAX + 1].join(",");
        assert_eq!(purged(&fields(&[(PURGE, &many)])).0.len(), NAMED_MAX);
    }

    #[test]
    fn what_is_for_one_visitor_says_so() {
        for (value, expected) in [
            ("public,max-age=604800", false),
            ("Private, max-age=1800", true),
            ("max-age=60, no-cache", true),
            ("no-store", true),
            ("no-vary", false),
            ("private=\"x\"", true),
            ("x=\"a, private\"", false),
        ] {
            assert_eq!(is_for_one(&fields(&[(CACHE_CONTROL, value)])), expected, "{value}");
        }
        assert!(is_for_one(&fields(&[(VARY, "cookie=x")])) && !is_for_one(&HeaderMap::new()));
    }
}
