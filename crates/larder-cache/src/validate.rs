//! Asking the origin whether what is stored still holds (RFC 9111 4.3.1, 4.3.4), and keeping the client's own
//! conditions out of that.
//!
//! In: stored responses and field maps. Out: the conditions of a forward request, and which stored response a 304
//! speaks of. Only 200, 203 and 206 are validated: a 304 means that a 200 would have been sent. A client's conditions are dropped from a request that may fill the cache: a 304 or 412 meant for that
//! client is nothing to store. They are evaluated later, by [`answer`](fn@crate::answer), on what arrives.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use larder_http::fields::date::DateField;
use larder_http::fields::etag::EntityTag;
use larder_http::fields::range::RangeField;

use crate::head::StoredHead;
use crate::validators::can_be_confirmed;

/// Entity tags offered in one request.
pub const TAGS_MAX: usize = 16;
/// Bytes of If-None-Match beyond which no further tag is offered.
const TAGS_BYTES_MAX: usize = 4096;

/// Stored responses whose validators a request offers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offered<'a> {
    /// The one that the request selects.
    pub selected: Option<&'a StoredHead>,
    /// Variants for other requests, most recent first, which the origin may choose all the same. Only strong tags of
    /// theirs are offered.
    pub others: &'a [&'a StoredHead],
}

/// Which of the offered responses a 304 confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmed {
    /// The selected one.
    Selected,
    /// One of the others, by its place.
    Other(usize),
}

/// Adds the conditions that validate what is offered: If-None-Match with the tags, and If-Modified-Since with the
/// Last-Modified of the selected response alone. A date says nothing about which variant it speaks of: with that of another
/// one, an origin's 304 would confirm a page in the wrong language. Conditions already in `out` are replaced. Without
/// validators nothing is added, and the request is an ordinary one.
pub fn conditional_fields(offered: Offered<'_>, out: &mut HeaderMap) {
    let modified = offered.selected.and_then(|selected| selected.validators.last_modified.as_ref());
    if let Some((value, _)) = modified {
        out.insert(header::IF_MODIFIED_SINCE, value.clone());
    }
    let mut others = offered.others;
    let own = match offered.selected {
        Some(selected) => selected.validators.etag.as_ref(),
        None => loop {
            // The first that has one leads the list.
            let Some((first, rest)) = others.split_first() else {
                break None;
            };
            others = rest;
            if tag_of(first).is_some_and(|tag| tag.is_strong()) {
                break first.validators.etag.as_ref();
            }
        },
    };
    if let Some(own) = own {
        // A list is built only where there is one to build: the usual single tag goes out byte for byte.
        let value = list_of_tags(own, others).unwrap_or_else(|| own.clone());
        out.insert(header::IF_NONE_MATCH, value);
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
    let strong = |other: &&&StoredHead| tag_of(other).is_some_and(|tag| tag.is_strong());
    for tag in others.iter().filter(strong).filter_map(|other| other.validators.etag.as_ref()) {
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
const CONDITIONS: [HeaderName; 4] =
    [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_MATCH, header::IF_UNMODIFIED_SINCE];

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

fn tag_of(stored: &StoredHead) -> Option<EntityTag<'_>> {
    let value = stored.validators.etag.as_ref()?;
    EntityTag::new(value.as_bytes())
}

fn has_validator(fields: &HeaderMap) -> bool {
    fields.contains_key(header::ETAG) || fields.contains_key(header::LAST_MODIFIED)
}

/// Which of the offered responses a 304 confirms (RFC 9111 4.3.4). A tag names its representation: where none has it, the
/// 304 may update nothing and the request has to be repeated without conditions. That of the selected response is
/// compared weakly, as the origin compared it: a server that weakens the tags of what it compresses sends the strong
/// form with its 304. That of another variant has to be strong: weak ones may be the same for all codings of a page.
/// Without a tag, a 304 can only mean the selected response, or where that was not there the one tag that was offered; and
/// where several were offered and it has no validator at all, none. Errors and redirects are never confirmed.
pub fn matches_304(offered: Offered<'_>, not_modified: &HeaderMap) -> Option<Confirmed> {
    if let Some(tag) = EntityTag::of(not_modified) {
        if offered.selected.and_then(tag_of).is_some_and(|own| tag.equals_weakly(&own)) {
            return Some(Confirmed::Selected);
        }
        let has_it = |other: &StoredHead| tag_of(other).is_some_and(|own| tag.equals_strongly(&own));
        return offered.others.iter().position(|other| has_it(other)).map(Confirmed::Other);
    }
    if offered.selected.is_none() && !has_validator(not_modified) {
        let is_offered = |other: &&StoredHead| tag_of(other).is_some_and(|tag| tag.is_strong());
        let mut places =
            (0..).zip(offered.others).filter(|(_, other)| is_offered(other)).map(|(place, _)| place);
        return places.next().filter(|_| places.next().is_none()).map(Confirmed::Other);
    }
    let is_meant = |selected: &&StoredHead| {
        can_be_confirmed(selected.status) && !not_modified.contains_key(header::ETAG)
    };
    let selected = offered.selected.filter(is_meant)?;
    let confirmed = if not_modified.contains_key(header::LAST_MODIFIED) {
        selected.validators.last_modified.as_ref().is_some_and(|(value, modified)| {
            let now = selected.freshness.received.wall;
            let said = DateField::read(not_modified, &header::LAST_MODIFIED, now);
            said == DateField::At(*modified) || not_modified.get(header::LAST_MODIFIED) == Some(value)
        })
    } else {
        offered.others.is_empty()
    };
    confirmed.then_some(Confirmed::Selected)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

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
        let (selected, others) = match candidates.split_first() {
            Some((selected, others)) => (Some(*selected), others),
            None => (None, candidates),
        };
        conditional_fields(Offered { selected, others }, &mut out);
        assert_eq!(out, fields(expected));
    }

    #[test]
    fn without_a_selected_response_tags_are_offered_and_dates_are_not() {
        let (a, dated) =
            (with(&[("etag", "\"a\""), ("last-modified", DATE)]), with(&[("last-modified", DATE)]));
        let check = |others: &[&StoredHead], expected: &[(&str, &str)]| {
            let mut out = HeaderMap::new();
            conditional_fields(Offered { selected: None, others }, &mut out);
            assert_eq!(out, fields(expected));
        };
        check(&[&dated], &[]);
        check(&[&dated, &a], &[("if-none-match", "\"a\"")]);
    }

    #[test]
    fn conditions_are_made_from_what_is_stored() {
        let (a, b) = (with(&[("etag", "\"a\""), ("last-modified", DATE)]), with(&[("etag", "W/\"b\"")]));
        let (odd, dated, none) = (with(&[("etag", "odd")]), with(&[("last-modified", DATE)]), with(&[]));
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
    fn errors_and_redirects_are_neither_validated_nor_confirmed() {
        let lines = [("cache-control", "max-age=1"), ("etag", "\"a\""), ("last-modified", DATE)];
        for (status, validated) in
            [(200, true), (203, true), (206, true), (204, false), (301, false), (404, false), (503, false)]
        {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            let freshness = stored(&[], &lines, &CachePolicy::default()).freshness;
            let (request, policy) = (crate::example::request("GET", &[]), CachePolicy::default());
            let head = StoredHead::new(&request, status, fields(&lines), freshness, &policy);
            let (selected, other) = (
                Offered { selected: Some(&head), others: &[] },
                Offered { selected: None, others: &[&head] },
            );
            for offered in [selected, other] {
                let mut out = HeaderMap::new();
                conditional_fields(offered, &mut out);
                assert_eq!(!out.is_empty(), validated, "{status}");
            }
            let not_modified: [&[(&str, &str)]; 3] = [&[], &[("last-modified", DATE)], &[("etag", "\"a\"")]];
            for said in not_modified {
                assert_eq!(matches_304(selected, &fields(said)).is_some(), validated, "{status} {said:?}");
            }
            assert_eq!(matches_304(other, &fields(&lines)).is_some(), validated, "{status}");
        }
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
        let (a, weak) = (with(&[("etag", "\"a\""), ("last-modified", DATE)]), with(&[("etag", "W/\"b\"")]));
        let (odd, none) = (with(&[("etag", "odd")]), with(&[]));
        let check = |offered: &[&StoredHead], said: &[(&str, &str)], expected| {
            let (selected, others) = (offered.first().copied(), offered.get(1..).unwrap_or_default());
            assert_eq!(matches_304(Offered { selected, others }, &fields(said)), expected, "{said:?}");
        };
        let (selected, other) = (Some(Confirmed::Selected), Some(Confirmed::Other(0)));
        check(&[&weak, &a], &[("etag", "\"a\"")], other);
        check(&[&weak, &a], &[("etag", "W/\"a\"")], None);
        check(&[&weak, &a], &[("etag", "W/\"b\"")], selected);
        check(&[&weak], &[("etag", "\"b\"")], selected);
        check(&[&a], &[("etag", "\"c\"")], None);
        check(&[&a], &[("etag", "\"c\""), ("last-modified", DATE)], None);
        check(&[&a], &[("etag", "\"a\""), ("etag", "\"c\"")], None);
        check(&[&odd], &[("etag", "odd")], selected);
        check(&[&a, &weak], &[("last-modified", DATE)], selected);
        check(&[&weak, &a], &[("last-modified", DATE)], None);
        check(&[&a], &[("last-modified", "Sun, 06 Nov 1994 09:49:37 GMT")], None);
        check(&[&a], &[], selected);
        check(&[&none], &[], selected);
        check(&[&a, &weak], &[], None);
        check(&[], &[], None);
        let of_others =
            |said: &[(&str, &str)]| matches_304(Offered { selected: None, others: &[&a] }, &fields(said));
        assert_eq!(of_others(&[("etag", "\"a\"")]), other);
        assert_eq!(of_others(&[("last-modified", DATE)]), None, "a date names no variant");
        assert_eq!(of_others(&[]), other, "there is but one that it can mean");
        let (b, undated) = (with(&[("etag", "\"b\"")]), with(&[]));
        let of = |others: &[&StoredHead]| matches_304(Offered { selected: None, others }, &fields(&[]));
        assert_eq!(of(&[&undated, &weak, &a]), Some(Confirmed::Other(2)));
        assert_eq!(of(&[&a, &b]), None);
        assert_eq!(of(&[&weak]), None);
    }
}
