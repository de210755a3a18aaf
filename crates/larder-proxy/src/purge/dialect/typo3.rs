//! TYPO3's extensions by Ops One (snowflake before), its forks, and AOE; and Flowpack's package for Neos.
//!
//! In: BAN, or another method that is configured, with `Varnish-Ban-All`, or with a page in `Varnish-Ban-TYPO3-Pid` and its site in
//! `Varnish-Ban-TYPO3-Sitename`, or with a tag in `Varnish-Ban-TYPO3-Tag`. AOE has `X-Ban-All`, `X-Ban-Tags` and
//! `X-Ban-Regex`, an expression for URLs.
//! A page is named as the tags that larder makes of the fields `TYPO3-Pid` and `TYPO3-Sitename` of responses, and as the
//! tag that TYPO3 itself has for it in `xkey`.
//!
//! Neos sends what FOSHttpCache sends, with `X-Site` for one of several installations. No stored response says of which
//! one it is, so `X-Site` narrows nothing.

use http::HeaderName;
use larder_cache::purge::{PatternText, Selector};

use super::super::manner::{Claim, Manner};
use super::super::names::Names;
use super::super::request::{PurgeRequest, XKEY_PURGE};
use super::varnish;

const ALL: HeaderName = HeaderName::from_static("varnish-ban-all");
const PAGE: HeaderName = HeaderName::from_static("varnish-ban-typo3-pid");
const SITE: HeaderName = HeaderName::from_static("varnish-ban-typo3-sitename");
const TAG: HeaderName = HeaderName::from_static("varnish-ban-typo3-tag");
const AOE_ALL: HeaderName = HeaderName::from_static("x-ban-all");
const AOE_TAGS: HeaderName = HeaderName::from_static("x-ban-tags");
const AOE_REGEX: HeaderName = HeaderName::from_static("x-ban-regex");
const NEOS_SITE: HeaderName = HeaderName::from_static("x-site");

/// Reads the fields of this dialect.
pub(super) fn read(request: &PurgeRequest<'_>, names: &mut Names) -> Option<Claim> {
    let of_ops_one = [ALL, PAGE, SITE, TAG].into_iter().any(|name| request.has(&name));
    let of_aoe = [AOE_ALL, AOE_TAGS, AOE_REGEX].into_iter().any(|name| request.has(&name));
    let of_neos = request.method == "BAN" && request.has(&NEOS_SITE);
    if of_ops_one {
        read_ops_one(request, names);
    }
    if of_aoe {
        read_aoe(request, names);
    }
    if of_neos && !varnish::is_ban(request) {
        names.push(Selector::All);
    }
    let nameless = if of_aoe {
        "Unknown BAN header. Use either 'X-Ban-All' or 'X-Ban-Tags'."
    } else {
        "Varnish-Ban-All, Varnish-Ban-TYPO3-Pid or Varnish-Ban-TYPO3-Tag header required"
    };
    (of_ops_one || of_aoe || of_neos).then_some(Claim { manner: Manner::Banned, nameless })
}

fn read_ops_one(request: &PurgeRequest<'_>, names: &mut Names) {
    // Each request has the site. Responses say theirs only where the extension is set up to do so.
    if request.value(&ALL).is_some_and(|value| value == "1") {
        return names.push(Selector::All);
    }
    request.values(&TAG).for_each(|value| names.list(value));
    let site = request.value(&SITE).map(|value| value.as_bytes()).filter(|site| !site.is_empty());
    let page = request.value(&PAGE).map(|value| value.as_bytes()).filter(|page| !page.is_empty());
    match (page, site) {
        (Some(page), Some(site)) => {
            names.tag([b"site-", site, b"/pid-", page].concat());
            names.tag([b"pageId_", page].concat());
        }
        (Some(page), None) => {
            names.tag([b"pid-", page].concat());
            names.tag([b"pageId_", page].concat());
        }
        (None, Some(site)) if !request.has(&TAG) && !request.has(&XKEY_PURGE) => {
            names.tag([b"site-", site].concat());
            names.tag([b"siteId_", site].concat());
        }
        _ => {}
    }
}

fn read_aoe(request: &PurgeRequest<'_>, names: &mut Names) {
    if request.has(&AOE_ALL) {
        return names.push(Selector::All);
    }
    request.values(&AOE_TAGS).for_each(|value| names.alternatives(value));
    for value in request.values(&AOE_REGEX) {
        let target = names.expression(value);
        names.pattern(PatternText { target, ..PatternText::default() });
    }
}
