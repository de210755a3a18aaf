//! Asking the origin whether what is stored still holds (RFC 9111 4.3.1, 4.3.4), and keeping the client's own
//! conditions out of that.
//!
//! In: stored responses and field maps. Out: the conditions of a forward request, and which stored response a 304
//! speaks of. A client's conditions are dropped from a request that may fill the cache: a 304 or 412 meant for that
//! client is nothing to store. They are evaluated later, by [`answer`](fn@crate::answer), on what arrives.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use larder_http::fields::date::DateField;
use larder_http::fields::etag::EntityTag;
use larder_http::fields::range::RangeField;

use crate::head::StoredHead;

/// Entity tags offered in one request.
pub const TAGS_MAX: usize = 16;
/// Bytes of If-None-Match beyond which no further tag is offered.
const TAGS_BYTES_MAX: usize = 4096;

/// Adds the conditions that validate `candidates`: If-None-Match with their tags, If-Modified-Since with the
/// Last-Modified of the first. The first is the one that the request selects; the others are variants whose Vary does
/// not match, offered because the origin may choose one of them. Conditions already in `out` are replaced. Without
/// validators nothing is added, and the request is an ordinary one.
pub fn conditional_fields(candidates: &[&StoredHead], out: &mut HeaderMap) {
    let Some((selected, others)) = candidates.split_first() else {
        return;
    };
    if let Some(own) = &selected.validators.etag {
        // A list is built only where there is one to build: the usual single tag goes out byte for byte.
        let value = list_of_tags(own, others).unwrap_or_else(|| own.clone());
        out.insert(header::IF_NONE_MATCH, value);
    }
    if let Some((value, _)) = &selected.validators.last_modified {
        out.insert(header::IF_MODIFIED_SINCE, value.clone());
    }
}

fn list_of_tags(own: &HeaderValue, others: &[&StoredHead]) -> Option<HeaderValue> {
    let is_regular = |value: &HeaderValue| {
        EntityTag::new(value.as_bytes()).is_some_and(|tag| tag.is_strong() || tag.is_weak())
    };
    // An odd tag cannot stand in a list.
    if !is_regular(own) {
        return None;
    }
    let mut offered = vec![own];
    let mut bytes = own.len();
    for tag in others
        .iter()
        .filter_map(|other| other.validators.etag.as_ref())
        .filter(|tag| is_regular(tag))
    {
        if offered.len() < TAGS_MAX && bytes + tag.len() + 2 <= TAGS_BYTES_MAX && !offered.contains(&tag) {
            bytes += tag.len() + 2;
            offered.push(tag);
        }
    }
    if offered.len() == 1 {
        return None;
    }
    let list: Vec<&[u8]> = offered.iter().map(|tag| tag.as_bytes()).collect();
    HeaderValue::from_bytes(&list.join(&b", "[..])).ok()
}

/// The fields that make a request conditional on what the client has; If-Range depends on Range.
const CONDITIONS: [HeaderName; 4] = [
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_MATCH,
    header::IF_UNMODIFIED_SINCE,
];

/// Drops from a forward request that may fill the cache what only concerns its client: the conditions, and a Range of
/// `bytes=0-`, which the whole answers as well. Any other Range stays, together with its If-Range, without which the
/// client could be sent a part of something else than it has the rest of.
pub fn drop_conditionals(fields: &mut HeaderMap) {
    for name in CONDITIONS {
        fields.remove(name);
    }
    if RangeField::read(fields).is_everything() {
        fields.remove(header::RANGE);
    }
    if !fields.contains_key(header::RANGE) {
        fields.remove(header::IF_RANGE);
    }
}

/// Which of the stored responses that were offered a 304 confirms (RFC 9111 4.3.4). A strong tag names exactly one
/// representation: where none has it, the 304 may update nothing and the request has to be repeated without
/// conditions. Weak validators choose the first that has them, so candidates come most recent first. Without any
/// validator, a 304 can only mean the one response that was offered.
pub fn matches_304(candidates: &[&StoredHead], not_modified: &HeaderMap) -> Option<usize> {
    let stored_tag = |stored: &StoredHead, is_it: &dyn Fn(&EntityTag<'_>) -> bool| {
        let tag = stored
            .validators
            .etag
            .as_ref()
            .and_then(|value| EntityTag::new(value.as_bytes()));
        tag.is_some_and(|tag| is_it(&tag))
    };
    if let Some(tag) = EntityTag::of(not_modified) {
        return candidates.iter().position(|stored| {
            stored_tag(stored, &|own| {
                if tag.is_strong() {
                    tag.equals_strongly(own)
                } else {
                    tag.equals_weakly(own)
                }
            })
        });
    }
    if not_modified.contains_key(header::ETAG) {
        return None;
    }
    if not_modified.contains_key(header::LAST_MODIFIED) {
        return candidates.iter().position(|stored| {
            let Some((value, modified)) = &stored.validators.last_modified else {
                return false;
            };
            let said = DateField::read(
                not_modified,
                &header::LAST_MODIFIED,
                stored.freshness.received.wall,
            );
            said == DateField::At(*modified) || not_modified.get(header::LAST_MODIFIED) == Some(value)
        });
    }
    (candidates.len() == 1).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{DATE, fields, stored};
    use crate::policy::CachePolicy;

    fn with(lines: &[(&str, &str)]) -> StoredHead {
        let mut said = vec![("cache-control", "max-age=1")];
        said.extend(lines);
        stored(&[], &said, &CachePolicy::default())
    }

    fn check(candidates: &[&StoredHead], expected: &[(&str, &str)]) {
        let mut out = fields(&[("if-none-match", "\"of the client\"")]);
        out.remove(header::IF_NONE_MATCH);
        conditional_fields(candidates, &mut out);
        assert_eq!(out, fields(expected));
    }

    #[test]
    fn conditions_are_made_from_what_is_stored() {
        let (a, b) = (
            with(&[("etag", "\"a\""), ("last-modified", DATE)]),
            with(&[("etag", "W/\"b\"")]),
        );
        let (odd, dated, none) = (
            with(&[("etag", "odd")]),
            with(&[("last-modified", DATE)]),
            with(&[]),
        );
        check(&[], &[]);
        check(&[&none], &[]);
        check(&[&a], &[("if-none-match", "\"a\""), ("if-modified-since", DATE)]);
        check(&[&b], &[("if-none-match", "W/\"b\"")]);
        check(&[&odd], &[("if-none-match", "odd")]);
        check(&[&dated], &[("if-modified-since", DATE)]);
        check(&[&b, &a, &odd, &none, &b], &[("if-none-match", "W/\"b\", \"a\"")]);
        check(&[&odd, &a], &[("if-none-match", "odd")]);
        // Other variants' tags alone would hide the selected one's date.
        check(&[&dated, &a], &[("if-modified-since", DATE)]);
    }

    #[test]
    fn the_clients_own_conditions_are_dropped() {
        let check = |asked: &[(&str, &str)], left: &[(&str, &str)]| {
            let mut asked = fields(asked);
            drop_conditionals(&mut asked);
            assert_eq!(asked, fields(left));
        };
        check(
            &[
                ("if-none-match", "*"),
                ("if-match", "\"a\""),
                ("if-modified-since", DATE),
                ("if-unmodified-since", DATE),
                ("if-range", "\"a\""),
                ("accept", "*/*"),
            ],
            &[("accept", "*/*")],
        );
        check(&[("range", "bytes=0-"), ("if-range", "\"a\"")], &[]);
        check(&[("range", "bytes=0-1")], &[("range", "bytes=0-1")]);
        let with_rest = [("range", "bytes=5-"), ("if-range", "\"a\"")];
        check(&with_rest, &with_rest);
    }

    #[test]
    fn a_304_confirms_what_has_its_validator() {
        let (a, weak) = (
            with(&[("etag", "\"a\""), ("last-modified", DATE)]),
            with(&[("etag", "W/\"b\"")]),
        );
        let (odd, none) = (with(&[("etag", "odd")]), with(&[]));
        let check = |candidates: &[&StoredHead], said: &[(&str, &str)], expected| {
            assert_eq!(matches_304(candidates, &fields(said)), expected, "{said:?}");
        };
        check(&[&weak, &a], &[("etag", "\"a\"")], Some(1));
        check(&[&weak, &a], &[("etag", "W/\"a\"")], Some(1));
        check(&[&weak, &a], &[("etag", "W/\"b\"")], Some(0));
        check(&[&weak], &[("etag", "\"b\"")], None);
        check(&[&a], &[("etag", "\"c\"")], None);
        check(&[&a], &[("etag", "\"c\""), ("last-modified", DATE)], None);
        check(&[&a], &[("etag", "\"a\""), ("etag", "\"c\"")], None);
        check(&[&odd], &[("etag", "odd")], Some(0));
        check(&[&weak, &a], &[("last-modified", DATE)], Some(1));
        check(&[&a], &[("last-modified", "Sun, 06 Nov 1994 09:49:37 GMT")], None);
        check(&[&a], &[], Some(0));
        check(&[&none], &[], Some(0));
        check(&[&a, &weak], &[], None);
        check(&[], &[], None);
    }
}
