//! Shopware 6 and API Platform.
//!
//! In: PURGE with tags in `xkey`, or in `Surrogate-Key` as Souin has it, and BAN with an expression for tags in
//! `ApiPlatform-Ban-Regex`. A BAN of `/` without fields is Shopware's name for everything. Souin's path for purges answers 204, and
//! `flush` below it names everything.

use http::HeaderName;
use larder_cache::purge::Selector;

use super::super::manner::{Claim, Manner};
use super::super::names::Names;
use super::super::request::PurgeRequest;

const LISTS: [HeaderName; 2] = [HeaderName::from_static("xkey"), HeaderName::from_static("surrogate-key")];
const BAN_REGEX: HeaderName = HeaderName::from_static("apiplatform-ban-regex");
const SOUIN: &str = "/souin-api/souin";

/// Reads the fields of this dialect.
pub(super) fn read(request: &PurgeRequest<'_>, names: &mut Names) -> Option<Claim> {
    for name in LISTS {
        request.values(&name).for_each(|value| names.list(value));
    }
    request.values(&BAN_REGEX).for_each(|value| names.matching_tags(value));
    let souin = request.path().strip_prefix(SOUIN).filter(|_| request.method == "PURGE");
    match souin {
        Some("/flush") => {
            names.push(Selector::All);
            Some(Claim { manner: Manner::NoContent, nameless: "" })
        }
        Some("" | "/") => {
            Some(Claim { manner: Manner::NoContent, nameless: "Surrogate-Key header required" })
        }
        _ if request.has(&BAN_REGEX) => {
            Some(Claim { manner: Manner::Banned, nameless: "ApiPlatform-Ban-Regex HTTP header must be set." })
        }
        _ => LISTS
            .into_iter()
            .any(|name| request.has(&name))
            .then_some(Claim { manner: Manner::Purged, nameless: "xkey or Surrogate-Key header is empty" }),
    }
}

/// Reads the target of a BAN where that is this dialect's name for everything.
pub(in super::super) fn read_target(request: &PurgeRequest<'_>, names: &mut Names) -> Option<Manner> {
    (request.method == "BAN" && request.target == "/").then(|| {
        names.push(Selector::All);
        Manner::Banned
    })
}
