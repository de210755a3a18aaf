//! Which field's directives hold (RFC 9213 2.2), and which fields end here.
//!
//! In: a response's fields and a rule's settings. Out: [`EffectiveDirectives`], what is said and by whom. The first
//! targeted field that is usable replaces Cache-Control and Expires wholly, even their `no-store`; so does
//! Surrogate-Control after the targets. X-Accel-Expires and X-Reverse-Proxy-TTL are no directives: they replace a
//! lifetime and nothing else, which is decided where lifetimes are (see [`crate::freshness`]).
//! Targeted fields are passed on, since other caches on the way may be meant as well. Three private ones, and
//! those that carry tags, are between the origin and this cache: they are taken out, and a stored response keeps them
//! apart, so that a validation can judge it anew. A field that is switched off is one like any other.

use std::time::Duration;

use http::{HeaderMap, HeaderName, header};
use larder_http::fields::cache_control::{Reach, ResponseDirectives};
use larder_http::fields::surrogate::{
    self, SURROGATE_CONTROL, SurrogateControl, X_ACCEL_EXPIRES, X_REVERSE_PROXY_TTL,
};
use larder_http::fields::targeted;

use crate::policy::{CachePolicy, Controls, SetCookiePolicy};

/// The directives that hold for a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveDirectives {
    /// What they say, less what the rule ignores.
    pub said: ResponseDirectives,
    /// Which field says it.
    pub by: Said,
}

/// A field with directives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Cache-Control, together with Expires; also where neither is there.
    CacheControl,
    /// The targeted field at this place of [`Controls::targets`].
    Target(usize),
    /// Surrogate-Control.
    SurrogateControl,
}

impl EffectiveDirectives {
    /// Reads the directives that hold.
    pub fn read(fields: &HeaderMap, policy: &CachePolicy) -> Self {
        let cache_control = || Self::of_cache_control(fields, policy);
        Self::of_others(fields, policy).next().unwrap_or_else(cache_control)
    }

    /// What each field says that could hold, in order of precedence: the first one does. Cache-Control is always last.
    pub(crate) fn all(fields: &HeaderMap, policy: &CachePolicy) -> impl Iterator<Item = Self> {
        let last = std::iter::once_with(|| Self::of_cache_control(fields, policy));
        Self::of_others(fields, policy).chain(last)
    }

    fn of_others(fields: &HeaderMap, policy: &CachePolicy) -> impl Iterator<Item = Self> {
        let Controls { targets, surrogate_control, .. } = &policy.controls;
        let targeted = targets
            .iter()
            .enumerate()
            .filter_map(|(place, name)| Some((targeted::read(fields, name)?, Said::Target(place))));
        let surrogate = surrogate_control
            .then(|| surrogate::surrogate_control(fields))
            .flatten()
            .map(|said| (in_our_words(said), Said::SurrogateControl));
        targeted.chain(surrogate).map(|(said, by)| Self::new(said, by, policy))
    }

    fn of_cache_control(fields: &HeaderMap, policy: &CachePolicy) -> Self {
        Self::new(ResponseDirectives::read(fields), Said::CacheControl, policy)
    }

    fn new(mut said: ResponseDirectives, by: Said, policy: &CachePolicy) -> Self {
        if policy.ignore.private {
            said.private = Reach::Nothing;
        }
        said.no_store &= !policy.ignore.no_store;
        Self { said, by }
    }

    /// Whether the origin thought of a cache between itself and its clients: `public`, a well-formed `s-maxage`, or a field
    /// that only such caches read.
    pub(crate) fn means_shared_caches(&self) -> bool {
        self.by != Said::CacheControl || self.said.public || self.said.permits.s_maxage
    }
}

/// Surrogate-Control in the words of Cache-Control. What comes after the `+` is a time in which a stale response may be
/// used, whether the origin could be asked or not.
fn in_our_words(said: SurrogateControl) -> ResponseDirectives {
    ResponseDirectives {
        max_age: said.max_age,
        stale_while_revalidate: said.stale,
        stale_if_error: said.stale,
        no_store: said.no_store,
        ..ResponseDirectives::default()
    }
}

/// Whether a response tells shared caches, those behind this one among them, that they may keep it and give it to
/// everybody: with an explicit lifetime or `public`, and nothing against it.
pub fn invites_sharing(fields: &HeaderMap) -> bool {
    let said = ResponseDirectives::read(fields);
    let is_forbidden = said.no_store || said.private.is_whole() || said.no_cache.is_whole();
    let lives = |lifetime: Option<Duration>| lifetime.is_some_and(|lifetime| !lifetime.is_zero());
    let expires = said.max_age.is_none() && fields.contains_key(header::EXPIRES);
    !is_forbidden && (said.public || lives(said.s_maxage) || lives(said.max_age) || expires)
}

/// Takes the private fields out that are switched on.
pub fn strip(fields: &mut HeaderMap, controls: &Controls) {
    // Hardly any response has one, so their names are not looked up one by one.
    let found: Vec<HeaderName> = fields.keys().filter(|name| is_private(controls, name)).cloned().collect();
    for name in found {
        fields.remove(name);
    }
}

/// Whether a field ends here.
#[inline]
pub(crate) fn is_private(controls: &Controls, name: &HeaderName) -> bool {
    (controls.surrogate_control && *name == SURROGATE_CONTROL)
        || (controls.x_accel_expires && *name == X_ACCEL_EXPIRES)
        || (controls.x_reverse_proxy_ttl && *name == X_REVERSE_PROXY_TTL)
        || (!controls.tags.is_passed() && controls.tags.has(name))
        || controls.ending.contains(name)
}

/// Whether a qualified `no-cache` or `private`, or the rule, keeps the field `name` from being stored.
#[inline]
pub(crate) fn is_left_out(directives: &ResponseDirectives, policy: &CachePolicy, name: &HeaderName) -> bool {
    directives.no_cache.fields().contains(name)
        || directives.private.fields().contains(name)
        || (policy.set_cookie == SetCookiePolicy::Strip && *name == header::SET_COOKIE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::fields;
    use crate::policy::Ignored;
    use crate::purge::tags::TagFields;

    #[test]
    fn who_may_share_a_response_is_told_by_it() {
        for (said, expected) in [
            (&[][..], false),
            (&[("cache-control", "no-store")], false),
            (&[("cache-control", "public")], true),
            (&[("cache-control", "max-age=60")], true),
            (&[("cache-control", "max-age=0")], false),
            (&[("cache-control", "max-age=60, private")], false),
            (&[("cache-control", "max-age=60, no-cache")], false),
            (&[("cache-control", "s-maxage=1, max-age=0")], true),
            (&[("expires", "0")], true),
            (&[("expires", "0"), ("cache-control", "private")], false),
        ] {
            assert_eq!(invites_sharing(&fields(said)), expected, "{said:?}");
        }
    }

    fn two_targets() -> CachePolicy {
        let targets = ["larder-cache-control", "cdn-cache-control"].map(HeaderName::from_static).to_vec();
        let controls = Controls { targets, ..Controls::default() };
        CachePolicy { controls, ..CachePolicy::default() }
    }

    fn check(lines: &[(&str, &str)], by: Said, seconds: Option<u64>) {
        let found = EffectiveDirectives::read(&fields(lines), &two_targets());
        assert_eq!((found.by, found.said.max_age), (by, seconds.map(Duration::from_secs)), "{lines:?}");
        assert!(!found.said.no_store, "nothing of the others is left: {lines:?}");
    }

    #[test]
    fn the_first_usable_field_replaces_all_others() {
        let cc = ("cache-control", "max-age=1");
        let never = ("cache-control", "no-store, max-age=1");
        let surrogate = ("surrogate-control", "max-age=2");
        let cdn = ("cdn-cache-control", "max-age=3");
        let larder = ("larder-cache-control", "max-age=4");
        check(&[], Said::CacheControl, None);
        check(&[cc], Said::CacheControl, Some(1));
        check(&[never, surrogate], Said::SurrogateControl, Some(2));
        check(&[never, surrogate, cdn], Said::Target(1), Some(3));
        check(&[never, surrogate, cdn, larder], Said::Target(0), Some(4));
        check(&[never, surrogate, ("cdn-cache-control", "public")], Said::Target(1), None);
    }

    #[test]
    fn what_is_not_usable_replaces_nothing() {
        let cc = ("cache-control", "max-age=1");
        for lines in [
            [cc, ("cdn-cache-control", "max-age=10000, &&&&&")],
            [cc, ("cdn-cache-control", "")],
            [cc, ("surrogate-control", "content=\"ESI/1.0\"")],
            [cc, ("surrogate-control", "max-age=9;other")],
        ] {
            check(&lines, Said::CacheControl, Some(1));
        }
        let broken = [("larder-cache-control", "&"), ("cdn-cache-control", "max-age=3")];
        check(&broken, Said::Target(1), Some(3));
    }

    #[test]
    fn the_part_after_the_plus_is_for_stale_use() {
        let lines = [("surrogate-control", "max-age=60+30")];
        let said = EffectiveDirectives::read(&fields(&lines), &CachePolicy::default()).said;
        let expected = [60, 30, 30].map(|seconds| Some(Duration::from_secs(seconds)));
        assert_eq!([said.max_age, said.stale_while_revalidate, said.stale_if_error], expected);
    }

    #[test]
    fn ignored_directives_are_not_said() {
        let lines = [("cache-control", "private, no-store, no-cache")];
        let under = |ignore| {
            let policy = CachePolicy { ignore, ..CachePolicy::default() };
            let said = EffectiveDirectives::read(&fields(&lines), &policy).said;
            (said.private.is_whole(), said.no_store, said.no_cache.is_whole())
        };
        assert_eq!(under(Ignored::default()), (true, true, true));
        assert_eq!(under(Ignored { private: true, ..Ignored::default() }), (false, true, true));
        assert_eq!(under(Ignored { no_store: true, ..Ignored::default() }), (true, false, true));
    }

    #[test]
    fn private_fields_end_here_where_they_are_understood() {
        let lines = [
            ("surrogate-control", "max-age=1"),
            ("x-accel-expires", "1"),
            ("x-reverse-proxy-ttl", "1"),
            ("cdn-cache-control", "max-age=1"),
            ("x-a", "1"),
            ("xkey", "1"),
        ];
        let left = |controls: &Controls| {
            let mut fields = fields(&lines);
            strip(&mut fields, controls);
            let mut names: Vec<_> = fields.keys().map(|name| name.as_str().to_owned()).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(left(&Controls::default()), ["cdn-cache-control", "x-a"]);
        let off = Controls { x_accel_expires: false, ..Controls::default() };
        assert_eq!(left(&off), ["cdn-cache-control", "x-a", "x-accel-expires"]);
        let tags = TagFields::new(TagFields::default().names().to_vec(), true);
        let passed = Controls { tags, ..Controls::default() };
        assert_eq!(left(&passed), ["cdn-cache-control", "x-a", "xkey"]);
    }
}
