//! Purges: how the plugins of content management systems ask for them, and how they expect to be answered.
//!
//! In: a request. Out: a [`Reading`], whose selectors say what is to be purged, and an [`PurgeAnswer`] once it is known what
//! became of that. A field that names tags wins over the path, and several such fields are united. Where two readings are
//! possible, the one that purges more is taken.
//! tests/dialects has the requests of each client as its source writes them. Deliberately absent: who may purge, the scope
//! of a purge, the purge itself, and dialects of the admin address. [`response`] reads the fields of responses.

mod answer;
mod dialect;
mod manner;
mod names;
mod path;
mod request;
pub(crate) mod response;
#[cfg(test)]
mod tests;

use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName};
use larder_cache::purge::{Mode, Selector};

pub(crate) use answer::PurgeAnswer;
pub(crate) use manner::Manner;
pub(crate) use request::PurgeRequest;

use crate::purges::Dialect;
use dialect::{drupal, nginx, plain, shopware};
use names::Names;
use request::{XKEY_PURGE, XKEY_SOFT_PURGE};

/// Fields with `1` that make a purge soft, and one that does so by being there.
const X_PURGE_SOFT: HeaderName = HeaderName::from_static("x-purge-soft");
const FASTLY_SOFT_PURGE: HeaderName = HeaderName::from_static("fastly-soft-purge");
const X_MAGENTO_PURGE_SOFT: HeaderName = HeaderName::from_static("x-magento-purge-soft");
/// FOSHttpCache's wish for a fetch, to nginx.
const X_REFRESH: HeaderName = HeaderName::from_static("x-refresh");

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// No purge: the request is like any other.
    NotOurs,
    /// A purge.
    Wanted(Wanted),
    /// A response from the origin, whatever is stored, in this dialect.
    Refresh(Dialect),
    /// A purge of nothing, or of nothing that can be read.
    Bad {
        /// The dialect of the request.
        dialect: Dialect,
        /// The words of the refusal, those of the dialect's own server where it has some.
        words: &'static str,
    },
}

/// A purge that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// What is to be purged: 1 to 1000 selectors.
    pub(crate) selectors: Vec<Selector>,
    /// What is to become of it.
    pub(crate) mode: Mode,
    /// The dialect of the request.
    pub(crate) dialect: Dialect,
    /// How the client expects to be answered.
    pub(crate) manner: Manner,
}

/// Whether larder answers requests with this method itself.
pub(crate) fn is_purge_method(method: &str) -> bool {
    matches!(method, "PURGE" | "BAN" | "PURGEKEYS" | "PURGETAGS" | "URIBAN")
}

/// Reads a request. Any browser may send a GET that asks for a refresh, so the caller asks about GET only where the client may
/// purge.
pub(crate) fn read(request: &PurgeRequest<'_>) -> Reading {
    if is_purge_method(request.method) {
        return read_purge(request);
    }
    if request.method != "GET" {
        return Reading::NotOurs;
    }
    let mut names = Names::default();
    if let Some(manner) = nginx::read_target(request, &mut names) {
        return wanted(request, names, (Dialect::Nginx, manner, ""));
    }
    if nginx::is_refresh(request) {
        Reading::Refresh(Dialect::Nginx)
    } else if is_refresh(request) {
        Reading::Refresh(Dialect::Varnish)
    } else {
        Reading::NotOurs
    }
}

fn read_purge(request: &PurgeRequest<'_>) -> Reading {
    let mut names = Names::default();
    if let Some((dialect, claim)) = dialect::read_fields(request, &mut names) {
        return wanted(request, names, (dialect, claim.manner, claim.nameless));
    }
    let (dialect, manner) = if request.method == "PURGE" {
        match nginx::read_target(request, &mut names) {
            Some(manner) => (Dialect::Nginx, manner),
            None => (Dialect::Plain, plain::read_target(request, &mut names)),
        }
    } else {
        match shopware::read_target(request, &mut names) {
            Some(manner) => (Dialect::Shopware, manner),
            None => (Dialect::Drupal, drupal::read_target(request, &mut names)),
        }
    };
    wanted(request, names, (dialect, manner, ""))
}

fn wanted(
    request: &PurgeRequest<'_>,
    names: Names,
    (dialect, manner, nameless): (Dialect, Manner, &'static str),
) -> Reading {
    match names.into_selectors() {
        Err(words) => Reading::Bad { dialect, words },
        Ok(selectors) if selectors.is_empty() => Reading::Bad { dialect, words: nameless },
        Ok(selectors) => Reading::Wanted(Wanted { selectors, mode: mode(request), dialect, manner }),
    }
}

/// Hard beats soft: `xkey-softpurge` beside `xkey-purge` changes nothing.
fn mode(request: &PurgeRequest<'_>) -> Mode {
    let is_set = |name: &HeaderName| request.value(name).is_some_and(|value| value == "1");
    let is_soft = is_set(&X_PURGE_SOFT)
        || is_set(&FASTLY_SOFT_PURGE)
        || request.has(&X_MAGENTO_PURGE_SOFT)
        || (request.has(&XKEY_SOFT_PURGE) && !request.has(&XKEY_PURGE));
    if is_soft { Mode::Soft } else { Mode::Hard }
}

/// Whether a GET has a field by which a fetch may be asked for. Most have none, and are not read any further.
#[inline]
pub(crate) fn may_refresh(fields: &HeaderMap) -> bool {
    !fields.is_empty() && (fields.contains_key(CACHE_CONTROL) || fields.contains_key(X_REFRESH))
}

/// FOSHttpCache's clients for Varnish and Symfony ask for a fetch by `no-cache`.
fn is_refresh(request: &PurgeRequest<'_>) -> bool {
    let mut directives = request
        .values(&CACHE_CONTROL)
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii);
    directives.any(|directive| directive.eq_ignore_ascii_case(b"no-cache"))
}
