//! Drupal: the purgers of Varnish Purge for the Purge module, and the VCL in Drupal's documentation.
//!
//! In: BAN with tags in `Cache-Tags`, `X-Cache-Tags` or `Purge-Cache-Tags`, joined by blanks or `|`. They are exact: a VCL that takes
//! them for an expression bans `node:12` with `node:1`. BAN with a path, perhaps with wildcards. URIBAN with a URL. The
//! zero-configuration purger bans `/site` for everything.

use http::HeaderName;
use larder_cache::purge::Selector;

use super::super::manner::{Claim, Manner};
use super::super::names::Names;
use super::super::path::{self, Spelling};
use super::super::request::{PurgeRequest, X_CACHE_TAGS};
use super::varnish;

const TAGS: [HeaderName; 2] =
    [HeaderName::from_static("cache-tags"), HeaderName::from_static("purge-cache-tags")];

/// Whether a request has the method or a field of this dialect.
pub(in super::super) fn is_its(request: &PurgeRequest<'_>) -> bool {
    match request.method {
        "URIBAN" => true,
        "BAN" | "PURGE" => has_tags(request),
        _ => false,
    }
}

fn has_tags(request: &PurgeRequest<'_>) -> bool {
    TAGS.into_iter().any(|name| request.has(&name)) || (request.has(&X_CACHE_TAGS) && !is_of_another(request))
}

/// Whether another dialect reads `X-Cache-Tags`.
fn is_of_another(request: &PurgeRequest<'_>) -> bool {
    request.method == "PURGETAGS" || varnish::is_ban(request)
}

/// Reads the fields of this dialect.
pub(super) fn read(request: &PurgeRequest<'_>, names: &mut Names) -> Option<Claim> {
    if !has_tags(request) {
        return None;
    }
    for name in TAGS {
        request.values(&name).for_each(|value| names.alternatives(value));
    }
    if !is_of_another(request) {
        request.values(&X_CACHE_TAGS).for_each(|value| names.alternatives(value));
    }
    Some(Claim { manner: Manner::BanAdded, nameless: "Cache-Tags header missing." })
}

/// Reads the target of a BAN or URIBAN.
pub(in super::super) fn read_target(request: &PurgeRequest<'_>, names: &mut Names) -> Manner {
    match (request.method, request.target) {
        ("BAN", "/site") => names.push(Selector::All),
        ("URIBAN", url) => path::read(url, Spelling::Url, names),
        (_, target) => path::read(target, Spelling::Ban, names),
    }
    Manner::BanAdded
}
