//! What a response that sets cookies may become: stored with them, without those that are somebody's, or not at all.
//!
//! In: its fields, what they say, how long it is fresh, the rule. Out: the reason that forbids storing it, if one does. Which
//! cookies are left out of what is stored is [`crate::head`]'s, by the same test ([`crate::cookies::own`]).

use std::time::Duration;

use http::{HeaderMap, header};

use crate::cookies::OwnSign;
use crate::cookies::own::first_own;
use crate::directives::{EffectiveDirectives, is_left_out};
use crate::freshness::Freshness;
use crate::not_storable::NotStorable;
use crate::policy::{CachePolicy, SetCookiePolicy};

pub(super) fn by_set_cookie(
    fields: &HeaderMap,
    directives: &EffectiveDirectives,
    freshness: &Freshness,
    policy: &CachePolicy,
) -> Option<NotStorable> {
    if !fields.contains_key(header::SET_COOKIE) {
        return None;
    }
    match policy.set_cookie {
        SetCookiePolicy::Bypass => return Some(NotStorable::SetCookieBypass),
        SetCookiePolicy::Store | SetCookiePolicy::Strip => return None,
        SetCookiePolicy::Guard if policy.ignore.set_cookie => return None,
        SetCookiePolicy::Guard => {}
    }
    let is_left_out = is_left_out(&directives.said, policy, &header::SET_COOKIE);
    // A response for all is stored without the cookies that are somebody's; others are stored with it.
    let is_for_all = directives.means_shared_caches();
    let lines = fields.get_all(header::SET_COOKIE);
    if is_for_all && (is_left_out || lines.iter().all(|line| policy.is_own(line))) {
        return None;
    }
    // What has to be validated each time is not meant for others, however long it calls itself fresh.
    let explicit =
        freshness.source.is_explicit() && freshness.lifetime > Duration::ZERO && !freshness.no_cache;
    if !explicit {
        return Some(NotStorable::SetCookie);
    }
    // Left out of what is stored, a cookie hands no session on; but the page may greet whose session it started, so
    // that only the origin's own lifetime, above, lets all see it.
    if is_for_all || is_left_out {
        return None;
    }
    first_own(fields, policy).map(|(_, sign)| match sign {
        OwnSign::HttpOnly | OwnSign::Name => NotStorable::SetSessionCookie,
        OwnSign::Value => NotStorable::SetPersonalCookie,
    })
}
