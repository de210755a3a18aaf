//! Targets, authorities and the fields that have no fuzz target of their own: no value panics, and what was read,
//! written and read again is the same.

use crate::{lines, named};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use larder_http::authority::Authority;
use larder_http::fields::etag::{self, EntityTag};
use larder_http::fields::{age, cookie};
use larder_http::message::Scheme;
use larder_http::target::{self, Target};

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    target_is_stable(input);
    authority_is_stable(input);
    let lines = lines(input);
    let named = |name| named(&name, &lines);
    tags(&lines, &named(header::IF_NONE_MATCH), &named(header::ETAG));
    let _ = cookie::pairs(&named(header::COOKIE)).count();
    let _ = cookie::set_cookies(&named(header::SET_COOKIE)).count();
    if let Some(age) = age::parse(&named(header::AGE)) {
        let again = HeaderMap::from_iter([(header::AGE, age::format(age))]);
        assert_eq!(age::parse(&again), Some(age), "Age changes when it is passed on");
    }
    larder_http::connection::strip(&mut named(header::CONNECTION));
}

fn target_is_stable(input: &[u8]) {
    let raw = Bytes::copy_from_slice(input);
    if let Ok(target) = Target::parse(raw.clone()) {
        assert_eq!(target.as_bytes(), &raw, "a target must be kept byte for byte");
        assert!(
            http::uri::PathAndQuery::from_maybe_shared(raw.clone()).is_ok(),
            "a client library refuses it"
        );
        if let Ok(canonical) = target.canonical_path() {
            assert!(canonical.starts_with('/') && !canonical.contains("//"), "{canonical:?}");
            assert!(!canonical.split('/').any(|segment| segment == ".." || segment == "."), "{canonical:?}");
        }
    }
    let _ = target::absolute_form(&raw);
}

fn authority_is_stable(input: &[u8]) {
    let Ok(authority) = Authority::parse(Bytes::copy_from_slice(input), Scheme::Http) else {
        return;
    };
    let again = Authority::parse(authority.as_bytes().clone(), Scheme::Http);
    assert_eq!(again.as_ref(), Ok(&authority), "the canonical form has another canonical form");
    assert!(http::uri::Authority::try_from(authority.as_str()).is_ok(), "a client library refuses it");
}

fn tags(lines: &[HeaderValue], conditions: &HeaderMap, responses: &HeaderMap) {
    for line in lines {
        let Some(tag) = EntityTag::new(line.as_bytes()) else { continue };
        assert!(!(tag.is_strong() && tag.is_weak()));
        assert_eq!(tag.equals_strongly(&tag), tag.is_strong(), "{tag:?}");
        let _ = etag::none_match(conditions, Some(tag));
    }
    let _ = etag::none_match(conditions, EntityTag::of(responses));
}
