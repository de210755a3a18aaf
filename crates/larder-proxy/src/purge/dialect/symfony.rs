//! FOSHttpCache's client for the reverse proxy in Symfony.
//!
//! In: PURGETAGS with tags in `X-Cache-Tags`, joined by commas, and PURGE with `Clear-Cache`, which names everything. Its PURGE
//! of a URL cannot be told from that of others.

use larder_cache::purge::Selector;

use super::super::manner::{Claim, Manner};
use super::super::names::Names;
use super::super::request::PurgeRequest;

/// Reads the fields of this dialect.
pub(super) fn read(request: &PurgeRequest<'_>, names: &mut Names) -> Option<Claim> {
    let clears = request.method == "PURGE" && request.has("clear-cache");
    if clears {
        names.push(Selector::All);
    }
    let has_tags = request.method == "PURGETAGS";
    if has_tags {
        request.values("x-cache-tags").for_each(|value| names.list(value));
    }
    (clears || has_tags)
        .then_some(Claim { manner: Manner::PurgedOrNotFound, nameless: "X-Cache-Tags header required" })
}
