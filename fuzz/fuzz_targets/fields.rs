//! Field values, targets and authorities: no value panics, and what was read, written and read again is the same.

#![no_main]

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use larder_http::authority::Authority;
use larder_http::fields::cache_control::{Directives, RequestDirectives, ResponseDirectives};
use larder_http::fields::content_range::ContentRange;
use larder_http::fields::etag::{self, EntityTag};
use larder_http::fields::range::RangeField;
use larder_http::fields::vary::Vary;
use larder_http::fields::{age, cookie, date};
use larder_http::message::Scheme;
use larder_http::target::{self, Target};
use larder_http::time::WallTime;
use libfuzzer_sys::fuzz_target;

/// 2026-01-01T00:00:00Z: two-digit years are read relative to now.
const NOW: WallTime = WallTime::from_secs(1_767_225_600);

fuzz_target!(|input: &[u8]| {
    date_is_stable(input);
    target_is_stable(input);
    authority_is_stable(input);
    // One field may stand on several lines.
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').take(8).collect();
    let named = |name: HeaderName| {
        let mut fields = HeaderMap::new();
        for line in &lines {
            if let Ok(value) = HeaderValue::from_bytes(line) {
                fields.append(&name, value);
            }
        }
        fields
    };
    directives(&lines, &named(header::CACHE_CONTROL));
    ranges(&named(header::RANGE), &named(header::CONTENT_RANGE));
    tags(&lines, &named(header::IF_NONE_MATCH), &named(header::ETAG));
    let _ = Vary::read(&named(header::VARY));
    let _ = cookie::pairs(&named(header::COOKIE)).count();
    let _ = cookie::set_cookies(&named(header::SET_COOKIE)).count();
    if let Some(age) = age::parse(&named(header::AGE)) {
        let again = HeaderMap::from_iter([(header::AGE, age::format(age))]);
        assert_eq!(age::parse(&again), Some(age), "Age changes when it is passed on");
    }
    larder_http::connection::strip(&mut named(header::CONNECTION));
});

fn date_is_stable(input: &[u8]) {
    let Some(time) = date::parse(input, NOW) else {
        return;
    };
    // Four digits of a year are all that the form has room for.
    if time <= WallTime::from_secs(253_402_300_799) {
        assert_eq!(
            date::parse(&date::write(time), NOW),
            Some(time),
            "a date changes when it is written again"
        );
    }
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

fn directives(lines: &[&[u8]], fields: &HeaderMap) {
    for line in lines {
        assert!(Directives::new(line).count() <= line.len() + 1, "more directives than bytes");
    }
    let mut reversed = HeaderMap::new();
    for line in lines.iter().rev() {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            reversed.append(header::CACHE_CONTROL, value);
        }
    }
    let lifetimes =
        |d: &ResponseDirectives| (d.max_age, d.s_maxage, d.stale_while_revalidate, d.stale_if_error);
    let flags = |d: &ResponseDirectives| (d.no_store, d.public, d.no_cache.is_whole(), d.private.is_whole());
    let (there, back) = (ResponseDirectives::read(fields), ResponseDirectives::read(&reversed));
    assert_eq!(lifetimes(&there), lifetimes(&back), "the order of lines matters");
    assert_eq!(flags(&there), flags(&back), "the order of lines matters");
    let _ = RequestDirectives::read(fields);
}

fn ranges(range: &HeaderMap, content_range: &HeaderMap) {
    if let RangeField::Bytes(specs) = RangeField::read(range) {
        for complete in [0, 1, 57_000, u64::MAX] {
            for within in specs.iter().filter_map(|spec| spec.within(complete)) {
                assert!(within.start < within.end && within.end <= complete, "{within:?} of {complete}");
            }
        }
    }
    if let Some(range) = ContentRange::read(content_range) {
        let again = HeaderMap::from_iter([(header::CONTENT_RANGE, range.format())]);
        assert_eq!(ContentRange::read(&again), Some(range), "Content-Range changes when it is passed on");
    }
}

fn tags(lines: &[&[u8]], conditions: &HeaderMap, responses: &HeaderMap) {
    for line in lines {
        let Some(tag) = EntityTag::new(line) else { continue };
        assert!(!(tag.is_strong() && tag.is_weak()));
        assert_eq!(tag.equals_strongly(&tag), tag.is_strong(), "{tag:?}");
        let _ = etag::none_match(conditions, Some(tag));
    }
    let _ = etag::none_match(conditions, EntityTag::of(responses));
}
