//! FOSHttpCache's client for Varnish, and Ibexa, which is built on it.
//!
//! In: BAN with the fields `X-Host`, `X-Url`, `X-Content-Type` and `X-Cache-Tags`, each an expression that may match
//! anywhere; all that are there have to match. The client sends `.*` for the first three by default. PURGEKEYS has
//! `xkey-purge` or `xkey-softpurge`, lists for Varnish's xkey; the TYPO3 extension of Ops One sends the former with BAN.
//!
//! Varnish's users guide has BAN with `X-Ban`, an expression for URLs, and Joomla's module sends that. Other VCL takes whole
//! conditions of bans from this field. These are refused: as an expression, one of them would match nothing.

use http::HeaderName;
use http::header::ACCEPT;
use larder_cache::purge::{Expression, PatternText};

use super::super::manner::{Claim, Manner};
use super::super::names::Names;
use super::super::request::{PurgeRequest, X_CACHE_TAGS, XKEY_PURGE, XKEY_SOFT_PURGE};

const HOST: HeaderName = HeaderName::from_static("x-host");
const URL: HeaderName = HeaderName::from_static("x-url");
const CONTENT_TYPE: HeaderName = HeaderName::from_static("x-content-type");
/// Varnish's users guide.
const BAN: HeaderName = HeaderName::from_static("x-ban");
/// What conditions of bans begin with.
const CONDITIONS: [&[u8]; 2] = [b"obj.", b"req."];
const CONDITION: &str = "X-Ban has to be an expression for URLs";
const KEYS: [HeaderName; 2] = [XKEY_PURGE, XKEY_SOFT_PURGE];

/// The type of the responses in which FOSHttpCacheBundle identifies users. Its older versions ban them by Cookie at a logout.
const USER_CONTEXT: &str = "application/vnd.fos.user-context-hash";

/// Whether a request has the fields that this client adds to each BAN.
pub(super) fn is_ban(request: &PurgeRequest<'_>) -> bool {
    request.method == "BAN" && [HOST, URL, CONTENT_TYPE].into_iter().any(|name| request.has(&name))
}

/// Reads the fields of this dialect.
pub(super) fn read(request: &PurgeRequest<'_>, names: &mut Names) -> Option<Claim> {
    for name in KEYS {
        request.values(&name).for_each(|value| names.list(value));
    }
    let bans_urls = request.method == "BAN" && request.has(&BAN);
    if bans_urls {
        read_ban_of_urls(request, names);
    }
    if is_ban(request) {
        read_ban(request, names);
        return Some(Claim { manner: Manner::Banned, nameless: "" });
    }
    if bans_urls {
        return Some(Claim { manner: Manner::BanAdded, nameless: "" });
    }
    let is_purge_of_keys = request.method == "PURGEKEYS" || KEYS.into_iter().any(|name| request.has(&name));
    is_purge_of_keys.then_some(Claim {
        manner: Manner::Purged,
        nameless: "Neither header XKey-Purge or XKey-SoftPurge set",
    })
}

fn read_ban_of_urls(request: &PurgeRequest<'_>, names: &mut Names) {
    for value in request.values(&BAN) {
        let begins = value.as_bytes().trim_ascii_start();
        if CONDITIONS.iter().any(|condition| begins.starts_with(condition)) {
            return names.refuse(CONDITION);
        }
        let target = names.expression(value);
        names.pattern(PatternText { target, ..PatternText::default() });
    }
}

fn read_ban(request: &PurgeRequest<'_>, names: &mut Names) {
    let mut expression = |name| request.value(&name).and_then(|value| names.expression(value));
    let mut pattern = PatternText {
        host: expression(HOST),
        target: expression(URL),
        content_type: expression(CONTENT_TYPE),
        tags: None,
    };
    if request.has(&X_CACHE_TAGS) {
        for value in request.values(&X_CACHE_TAGS) {
            let tags = names.expression(value);
            names.pattern(PatternText { tags, ..pattern.clone() });
        }
        return;
    }
    // The stored responses of one user look like those of all others. A purge of all of them is still less than one of everything.
    let is_for_users = request.value(&ACCEPT).is_some_and(|accept| accept == USER_CONTEXT);
    if is_for_users && pattern.content_type.is_none() {
        let text = format!("^{}", regex::escape(USER_CONTEXT)).into();
        pattern.content_type = Some(Expression { text, at_start: false });
    }
    names.pattern(pattern);
}
