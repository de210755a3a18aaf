//! What a value is: the response that it stands for, and the value that a response makes.
//!
//! In: bytes and the time that they have left there, or a stored response. Out: a head and a body, or a value and its lifetime; and in
//! both directions why not. One store has one format: bytes are never guessed at.

mod body;
mod judged;
mod message;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use larder_cache::{CachePolicy, StoredHead};
use larder_http::fields::surrogate::SURROGATE_CONTROL;
use larder_http::message::RequestHead;
use larder_http::time::Now;
use larder_remote::{Found, Ttl, Unfit};
use larder_tier::Entry;

#[cfg(feature = "fuzzing")]
pub(crate) use message::read;

use crate::settings::{Format, ValuesSettings};

/// The least lifetime of what is written.
const LIFETIME_MIN: Duration = Duration::from_secs(1);

/// A copy lives that long at least: a lifetime of nothing would mean that it never was fresh.
const INSTANT: Duration = Duration::from_nanos(1);

/// How long a copy is used whose name has a version.
const OF_A_VERSION: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why a response makes no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotWritten {
    /// The store is not written to by larder.
    ByApplication,
    /// Its host is none of the store's, or it was asked for at a port that is not in the key.
    Host,
    /// Its key has more than the URL.
    KeyParts,
    /// It is no 200, or a part of one.
    Status,
    /// It varies.
    Varies,
    /// It sets cookies.
    Cookies,
    /// It has a content coding.
    Coding,
    /// Purges name it by tags or groups, which reach what memory has.
    Tags,
    /// Its type is not that of the store's values.
    Type,
    /// It is a template, which bytes do not say: other programs would show its markup.
    Template,
    /// Its lifetime is not the application's word.
    Assumed,
    /// It is fresh for less than a second, or has to be validated before each use.
    Lifetime,
    /// It is longer than a value may be, or not all of it is in memory.
    Length,
}

impl NotWritten {
    pub(crate) const fn token(self) -> &'static str {
        match self {
            Self::ByApplication => "by-application",
            Self::Host => "host",
            Self::KeyParts => "key-parts",
            Self::Status => "status",
            Self::Varies => "varies",
            Self::Cookies => "set-cookie",
            Self::Coding => "coding",
            Self::Tags => "tags",
            Self::Type => "type",
            Self::Template => "template",
            Self::Assumed => "lifetime-assumed",
            Self::Lifetime => "lifetime",
            Self::Length => "too-large",
        }
    }

    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::ByApplication => "The store is not written to by larder: its values are the application's.",
            Self::Host => {
                "Its host is none of the store's, or it was asked for at a port that the key of values does not hold: \
                 it is not written as a value."
            }
            Self::KeyParts => "Its key has more than the URL: it is not written as a value.",
            Self::Status => {
                "A value is served as 200 and whole, which this is not: it is not written as a value."
            }
            Self::Varies => {
                "It varies, and a value answers every request alike: it is not written as a value."
            }
            Self::Cookies => "It sets cookies: it is not written as a value.",
            Self::Coding => "It has a content coding: it is not written as a value.",
            Self::Tags => {
                "It has tags or cache groups, and purges by these do not reach what memory has forgotten: it is not written \
                 as a value."
            }
            Self::Type => "Its type is not the store's default_type: it is not written as a value.",
            Self::Template => "It is a template, which bytes alone do not say: it is not written as a value.",
            Self::Assumed => {
                "Its lifetime is the rule's ttl or override_ttl, or a guess, and a value answers every visitor: it is not \
                 written as a value."
            }
            Self::Lifetime => {
                "It is fresh for less than a second, or has to be validated before each use: it is not written as a value."
            }
            Self::Length => "It is longer than a value may be: it is not written as a value.",
        }
    }
}

/// The response that a value stands for, as an answer to `request`.
///
/// # Errors
/// The value is of no use for it.
pub(crate) fn response(
    settings: &ValuesSettings,
    found: Found,
    request: &RequestHead,
    policy: &CachePolicy,
    now: Now,
) -> Result<(StoredHead, Bytes), Unfit> {
    let left = match found.ttl {
        Ttl::Left(left) => left,
        Ttl::Unlimited | Ttl::Unknown => Duration::MAX,
    };
    // With a version in its name a value never changes.
    let near = if settings.key.has_versions() { OF_A_VERSION } else { settings.near };
    let most = near.min(left).max(INSTANT);
    match settings.format {
        Format::Body => Ok((body::head(settings, request, policy, (now, most)), found.body)),
        Format::Http => judged::response(&settings.key, &found.body, request, policy, (now, most)),
    }
}

/// How long the value of a response with this head lives, if it makes one.
///
/// # Errors
/// It makes none.
pub(crate) fn is_fit(settings: &ValuesSettings, head: &StoredHead, now: Now) -> Result<Duration, NotWritten> {
    let (fields, freshness) = (&head.fields.map, &head.freshness);
    let varies = head.vary.names().names().iter().any(|name| *name != ACCEPT_ENCODING);
    let left = freshness.remaining(now);
    let is_body = settings.format == Format::Body;
    match () {
        () if head.status != StatusCode::OK || head.part.is_some() => Err(NotWritten::Status),
        () if varies => Err(NotWritten::Varies),
        () if fields.contains_key(SET_COOKIE) || head.caution != larder_cache::Caution::default() => {
            Err(NotWritten::Cookies)
        }
        () if fields.contains_key(CONTENT_ENCODING) => Err(NotWritten::Coding),
        () if head.tags.is_some() || !head.groups.is_empty() => Err(NotWritten::Tags),
        () if is_body && !is_type(fields, &settings.default_type) => Err(NotWritten::Type),
        () if is_body && is_template(head) => Err(NotWritten::Template),
        // A message says what its lifetime is, and is judged anew. Bytes answer every visitor.
        () if is_body && freshness.source.is_assumed() => Err(NotWritten::Assumed),
        () if freshness.no_cache || left < LIFETIME_MIN => Err(NotWritten::Lifetime),
        // Bytes say nothing of when they become stale, so they go when they do.
        () if is_body => Ok(left),
        () => Ok(left.saturating_add(head.stale.longest_window())),
    }
}

fn is_type(fields: &HeaderMap, default_type: &HeaderValue) -> bool {
    let its_own = fields.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    its_own.is_some_and(|its_own| its_own.eq_ignore_ascii_case(default_type.as_bytes()))
}

/// Whether it is a template by its rule, or by its own word under another rule (Edge Architecture 2.4).
fn is_template(head: &StoredHead) -> bool {
    let lines = |fields: &HeaderMap| {
        let mut lines = fields.get_all(SURROGATE_CONTROL).iter();
        lines.any(|line| line.as_bytes().windows(7).any(|word| word.eq_ignore_ascii_case(b"content")))
    };
    head.template.is_some() || lines(&head.fields.map) || head.controls.as_deref().is_some_and(lines)
}

/// The value of a stored response whose body has so many bytes at most, and how long it lives.
///
/// # Errors
/// It makes none.
pub(crate) fn value(
    (settings, max_object): (&ValuesSettings, u64),
    entry: &Entry<'_, StoredHead>,
    now: Now,
) -> Result<(Bytes, Duration), NotWritten> {
    let lifetime = is_fit(settings, entry.head, now)?;
    if !entry.is_in_memory || entry.length > max_object {
        return Err(NotWritten::Length);
    }
    let value = match (settings.format, entry.chunks) {
        (Format::Body, [only]) => only.clone(),
        (Format::Body, chunks) => chunks.concat().into(),
        (Format::Http, chunks) => judged::value(entry.head, chunks, now),
    };
    Ok((value, lifetime))
}

#[cfg(test)]
mod tests;
