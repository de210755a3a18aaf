//! Expressions of purges: what is taken compiles within its bounds, a fault is named with a place that there is, and what a
//! pattern is recognised as names no less than it matches.
//!
//! The lines of an input are the expressions for host, target, Content-Type and tags (an empty line is none), then host, target,
//! Content-Type and tags of a response, where the tags are separated by blanks and commas. A target that begins with `!` came as a path, and is anchored.

use std::borrow::Cow;

use crate::allocated::at_most;
use bytes::Bytes;
use larder_cache::purge::pattern::{EXPRESSION_BYTES_MAX, Pattern, PatternError, Subject, TagText};
use larder_cache::purge::recognise::{Bare, NAMES_MAX, Recognised, recognise};
use larder_cache::purge::tags::split;
use larder_cache::purge::{Expression, PatternText, What};
use larder_http::target::Target;

/// For reading, compiling and matching four expressions, and for writing out what they name.
const ALLOCATED_MAX: usize = 128 << 20;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let Ok(input) = std::str::from_utf8(input) else { return };
    let mut lines = input.split('\n');
    let [host, target, content_type, tags] = [0; 4].map(|_| expression(lines.next().unwrap_or_default()));
    let text = PatternText { host, target, content_type, tags };
    let [host, target, content_type, tags] = [0; 4].map(|_| lines.next().unwrap_or_default());
    let tags: Vec<&[u8]> = split(tags.as_bytes()).collect();
    let subject = Subject {
        host,
        target,
        content_type: Some(content_type.as_bytes()),
        tags: TagText::Joined(Cow::Owned(tags.join(&b','))),
    };
    at_most(ALLOCATED_MAX, || holds(&text, &subject, &tags));
}

/// Only a target can come as a path.
fn expression(line: &str) -> Option<Expression> {
    let (text, at_start) = match line.strip_prefix('!') {
        Some(text) => (text, true),
        None => (line, false),
    };
    (!line.is_empty()).then(|| Expression { text: text.into(), at_start })
}

fn holds(text: &PatternText, subject: &Subject<'_>, tags: &[&[u8]]) {
    let recognised = recognise(text, Bare::Expression);
    if let Some(Recognised { hosts, what }) = &recognised {
        assert!(!what.is_empty() && hosts.as_ref().is_none_or(|hosts| !hosts.is_empty()));
        assert!(what.len() * hosts.as_ref().map_or(1, Vec::len) <= NAMES_MAX);
        let exact = recognise(text, Bare::Exact).expect("less is asked of it");
        assert_eq!(&exact.hosts, hosts);
    }
    match Pattern::compile(text) {
        Ok(pattern) => {
            let is_matched = pattern.matches(subject);
            let every = Subject { tags: TagText::Every, ..subject.clone() };
            assert!(!is_matched || pattern.matches(&every), "every tag is one of them");
            let is_named = recognised.as_ref().is_none_or(|recognised| names(recognised, subject, tags));
            assert!(is_named || !is_matched, "{recognised:?} misses {subject:?}");
        }
        Err(error) => has_a_place(&error, text),
    }
}

fn has_a_place(error: &PatternError, text: &PatternText) {
    let expressions = [&text.host, &text.target, &text.content_type, &text.tags];
    let longest = expressions.iter().filter_map(|expression| expression.as_ref()).map(|one| one.text.len());
    assert!((1..=longest.max().unwrap_or(0) + 1).contains(&error.column), "{error}");
    assert!(error.column <= EXPRESSION_BYTES_MAX + 1 && error.to_string().len() < 300, "{error}");
}

/// Whether a response is named. Where its target is none, or has dot segments, its path may be another.
fn names(recognised: &Recognised, subject: &Subject<'_>, tags: &[&[u8]]) -> bool {
    let is_at =
        recognised.hosts.as_ref().is_none_or(|hosts| hosts.iter().any(|host| **host == *subject.host));
    let is_host = !subject.host.is_empty() && subject.host.bytes().all(is_of_host);
    let Ok(target) = Target::parse(Bytes::copy_from_slice(subject.target.as_bytes())) else { return true };
    let is_named = |what: &What| match what {
        What::All => true,
        What::Target(target) => **target == *subject.target,
        What::Tag(tag) => tags.contains(&&**tag),
        What::Prefix(path) => {
            let canonical = target.canonical_path();
            leads_elsewhere(&target) || canonical.is_ok_and(|canonical| canonical.starts_with(&**path))
        }
        _ => false,
    };
    !is_host || !subject.target.starts_with('/') || (is_at && recognised.what.iter().any(is_named))
}

/// As hosts are kept: in lower case and without port.
fn is_of_host(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.')
}

fn leads_elsewhere(target: &Target) -> bool {
    let decoded = target.path().to_ascii_lowercase().replace("%2e", ".");
    decoded.split('/').any(|segment| matches!(segment, "." | ".."))
}
