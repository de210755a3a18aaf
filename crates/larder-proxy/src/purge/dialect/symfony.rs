//! FOSHttpCache's client for the reverse proxy in Symfony.
//!
//! In: PURGETAGS with tags in `X-Cache-Tags`, joined by commas, and PURGE with `Clear-Cache`, which names everything. Its PURGE
//! of a URL cannot be told from that of others.

use http::HeaderName;
use larder_cache::purge::Selector;

use super::super::manner::{Claim, Manner};
use super::super::names::Names;
use super::super::request::{PurgeRequest, X_CACHE_TAGS};

const CLEAR_CACHE: HeaderName = HeaderName::from_static("clear-cache");

/// Reads the fields of this dialect.
pub(super) fn read(request: &PurgeRequest<'_>, names: &mut Names) -> Option<Claim> {
    let clears = request.method == "PURGE" && request.has(&CLEAR_CACHE);
    if clears {
        names.push(Selector::All);
    }
    let has_tags = request.method == "PURGETAGS";
    if has_tags {
        request.values(&X_CACHE_TAGS).for_each(|value| names.list(value));
    }
    (clears || has_tags)
        .then_some(Claim { manner: Manner::PurgedOrNotFound, nameless: "X-Cache-Tags header required" })
}
