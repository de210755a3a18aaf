//! nginx: nginx-helper for WordPress, the modules for purges, NGINX Plus, and FOSHttpCache's client for nginx.
//!
//! In: GET or PURGE of a path below the site's purge location; what follows the location is the URL. A `*` at its end names
//! everything that begins with the rest. `X-Refresh: 1` asks for a fetch.

use super::super::X_REFRESH;
use super::super::manner::Manner;
use super::super::names::Names;
use super::super::path;
use super::super::request::PurgeRequest;

/// Reads a target below the purge location; `None` where it is not below.
pub(in super::super) fn read_target(request: &PurgeRequest<'_>, names: &mut Names) -> Option<Manner> {
    let target = below_location(request)?;
    if target.ends_with('*') {
        path::wildcard(target, names);
        return Some(Manner::NoContent);
    }
    path::url(target, names);
    Some(if request.method == "GET" { Manner::Location } else { Manner::Purged })
}

/// Whether a GET asks for a fetch.
pub(in super::super) fn is_refresh(request: &PurgeRequest<'_>) -> bool {
    request.value(&X_REFRESH).is_some_and(|value| value == "1")
}

fn below_location<'a>(request: &PurgeRequest<'a>) -> Option<&'a str> {
    let location = request.location?.trim_end_matches('/');
    // Below `/` are all URLs, and a GET of one of them is no purge.
    let rest = request.target.strip_prefix(location).filter(|_| !location.is_empty())?;
    rest.starts_with('/').then_some(rest)
}
