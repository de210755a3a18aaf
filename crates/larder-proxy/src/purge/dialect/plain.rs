//! PURGE of a URL: MediaWiki, Wagtail, Plone, Joomla, b13 for TYPO3, W3 Total Cache, FOSHttpCache and most others.
//!
//! In: requests that no other dialect reads. Proxy Cache Purge for WordPress adds two fields: `X-Purge-Method` says what the path
//! is, and `X-Cache-Tags-Pattern` has tags, unescaped and joined by `|`.

use http::HeaderName;
use http::header::USER_AGENT;

use super::super::manner::{Claim, Manner};
use super::super::names::Names;
use super::super::path::{self, Spelling};
use super::super::request::PurgeRequest;

const METHOD: HeaderName = HeaderName::from_static("x-purge-method");
const TAGS_PATTERN: HeaderName = HeaderName::from_static("x-cache-tags-pattern");

/// Clients that name URLs alone. In wikis, anyone may create a page whose title has the signs of an expression.
const OF_URLS: [&[u8]; 2] = [b"MediaWiki/", b"Wagtail-frontendcache/"];

/// Reads the fields of this dialect.
pub(super) fn read(request: &PurgeRequest<'_>, names: &mut Names) -> Option<Claim> {
    request.has(&TAGS_PATTERN).then(|| {
        request.values(&TAGS_PATTERN).for_each(|value| names.alternatives(value));
        Claim { manner: Manner::Purged, nameless: "X-Cache-Tags-Pattern header is empty" }
    })
}

/// Reads the target of a PURGE.
pub(in super::super) fn read_target(request: &PurgeRequest<'_>, names: &mut Names) -> Manner {
    let names_urls = request
        .value(&USER_AGENT)
        .is_some_and(|agent| OF_URLS.iter().any(|client| agent.as_bytes().starts_with(client)));
    let spelling = match request.value(&METHOD).map(|method| method.as_bytes()) {
        Some(b"regex") => Spelling::Expression,
        Some(b"default" | b"exact") => Spelling::Url,
        _ if names_urls => Spelling::Url,
        _ => Spelling::Purge,
    };
    path::read(request.target, spelling, names);
    Manner::Purged
}
