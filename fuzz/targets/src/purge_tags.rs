//! Fields with tags: no tag that was named is missed, none is kept that was not named, and no list of them takes memory
//! without bound.
//!
//! The lines of an input are those of a response. Each begins with a letter: the field by its place among the default names, or `p` and `s`
//! for TYPO3's page and site.

use std::collections::BTreeSet;

use crate::allocated::in_proportion;
use http::{HeaderMap, HeaderName, HeaderValue};
use larder_cache::purge::tags::{TAGS_BYTES_MAX, TAGS_MAX, split};
use larder_cache::{TagFields, Tags};

const LINES_MAX: usize = 32;
const PID: HeaderName = HeaderName::from_static("typo3-pid");
const SITE: HeaderName = HeaderName::from_static("typo3-sitename");

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let plain = TagFields::default().names().to_vec();
    let carriers = TagFields::new([&plain[..], &[PID, SITE]].concat(), false);
    let mut fields = HeaderMap::new();
    for line in input.split(|byte| *byte == b'\n').take(LINES_MAX) {
        let Some((letter, value)) = line.split_first() else { continue };
        let name = match letter {
            b'p' => &PID,
            b's' => &SITE,
            letter => &plain[usize::from(*letter) % plain.len()],
        };
        if let Ok(value) = HeaderValue::from_bytes(value) {
            fields.append(name, value);
        }
    }
    let named = named(&fields, &plain);
    let tags = in_proportion(input.len() + TAGS_BYTES_MAX, || Tags::of(&fields, &carriers));
    assert_eq!(tags.is_some(), !named.is_empty());
    let Some(tags) = tags else { return };
    assert!(tags.hashes().is_sorted_by(|a, b| a < b) && tags.hashes().len() <= TAGS_MAX);
    assert_eq!(tags.carries_every(), tags.hashes().is_empty());
    assert!(tags.names().iter().all(|name| fields.contains_key(name)));
    for tag in &named {
        let is_found = tags.hashes().binary_search(&Tags::hash_of(tag)).is_ok();
        assert!(is_found || tags.carries_every(), "{} is missed", tag.escape_ascii());
    }
    let text = tags.text(&fields);
    assert!(text.len() < TAGS_BYTES_MAX + TAGS_MAX);
    let told: BTreeSet<&[u8]> = split(&text).collect();
    assert!(tags.carries_every() || told.len() == tags.hashes().len());
    // Of page and site there are more tags than those of one field.
    let is_of_typo3 = |tag: &[u8]| tag.starts_with(b"site-") && tag.windows(5).any(|part| part == b"/pid-");
    assert!(told.iter().all(|tag| named.contains(*tag) || is_of_typo3(tag)));
}

/// The tags, but for those of page and site together.
fn named(fields: &HeaderMap, plain: &[HeaderName]) -> BTreeSet<Vec<u8>> {
    let of = |name: &HeaderName, before: &[u8]| -> Vec<Vec<u8>> {
        let values = fields.get_all(name).iter().map(HeaderValue::as_bytes);
        let words = values.flat_map(|value| value.split(|byte| matches!(byte, b' ' | b'\t' | b',')));
        words.filter(|word| !word.is_empty()).map(|word| [before, word].concat()).collect()
    };
    let plain = plain.iter().flat_map(|name| of(name, b""));
    plain.chain(of(&PID, b"pid-")).chain(of(&SITE, b"site-")).collect()
}
