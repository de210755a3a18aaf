//! What a rule stores, and who may purge.
//!
//! In: the resolved settings of a rule, the fields of its site. Out: the policy by which responses are judged, and the right to purge.

use std::net::IpAddr;
use std::sync::Arc;

use larder_cache::{
    CachePolicy, Controls, HarmlessNames, Ignored, Lifetimes, SessionNames, SetCookiePolicy, Wishes,
};
use larder_config::{Cookies, HarmlessCookie, PurgeSetting, RequestDirectives, Resolved, SessionCookie};
use larder_http::fields::cookie_names::HARMLESS;
use larder_proxy::settings::{Access, AccessRules, Addresses, Secret};

use super::assembly;
use super::site_fields::SiteFields;

pub(super) fn policy(resolved: &Resolved, site_fields: &SiteFields) -> CachePolicy {
    CachePolicy {
        client_certificates: site_fields.client_certificates,
        ttl: lifetimes(&resolved.ttl),
        override_ttl: lifetimes(&resolved.override_ttl),
        session_cookies: resolved.session_cookies.as_deref().map(session_names),
        harmless_cookies: harmless_names(&resolved.harmless_cookies),
        keyed_cookies: resolved.key.cookies.iter().map(|cookie| cookie.as_str().to_owned()).collect(),
        keyed_fields: resolved.key.fields.clone(),
        ignore_cookies: resolved.cookies == Cookies::Ignore,
        stale_if_dead: resolved.stale_if_dead,
        stale_while_revalidate: resolved.stale_while_revalidate,
        stale_if_error: resolved.stale_if_error,
        jitter_percent: resolved.jitter.hundredths(),
        set_cookie: match resolved.set_cookie {
            larder_config::SetCookie::Guard => SetCookiePolicy::Guard,
            larder_config::SetCookie::Store => SetCookiePolicy::Store,
            larder_config::SetCookie::Strip => SetCookiePolicy::Strip,
            larder_config::SetCookie::Bypass => SetCookiePolicy::Bypass,
        },
        controls: Controls {
            targets: site_fields.targets(resolved.targets.iter().map(|target| target.name().clone())),
            surrogate_control: resolved.surrogate_control,
            x_accel_expires: resolved.x_accel_expires,
            x_reverse_proxy_ttl: resolved.x_reverse_proxy_ttl,
            tags: site_fields.tags.clone(),
            ending: site_fields.ending.clone(),
        },
        request_directives: match resolved.request_directives {
            RequestDirectives::Guarded => Wishes::Guarded,
            RequestDirectives::Honour => Wishes::Honour,
            RequestDirectives::Ignore => Wishes::Ignore,
        },
        ignore: ignored(&resolved.ignore),
        language_selection: resolved.language_selection,
        templates: assembly::templates(&resolved.assemble),
    }
}

pub(super) fn access(setting: &PurgeSetting) -> Access {
    let rules = match setting {
        PurgeSetting::Closed => return Access::Closed,
        PurgeSetting::Pass => return Access::Pass,
        PurgeSetting::Open(rules) => rules,
    };
    let from = rules.from.clone();
    let is_among = move |address: IpAddr| from.iter().any(|network| network.contains(address.to_canonical()));
    let header = rules.header.as_ref();
    Access::Open(Arc::new(AccessRules {
        from: (!rules.from.is_empty()).then(|| Arc::new(is_among) as Addresses),
        token: rules.token.as_ref().map(|token| Secret::new(token.expose())),
        header: header.map(|field| (field.name.clone(), Secret::new(field.value.expose()))),
        soft: rules.soft,
        location: rules.location.as_ref().map(|location| location.as_str().into()),
        patterns: rules.patterns,
        absent: Some(rules.absent.code().as_u16()).filter(|status| *status != 200),
    }))
}

fn session_names(cookies: &[SessionCookie]) -> SessionNames {
    let mut names = SessionNames::default();
    for cookie in cookies {
        match cookie {
            SessionCookie::Known => names.built_in = true,
            SessionCookie::Whole(name) => names.exact.push(name.clone()),
            SessionCookie::Part(part) => names.containing.push(part.clone()),
        }
    }
    names
}

fn harmless_names(cookies: &[HarmlessCookie]) -> HarmlessNames {
    let patterns = cookies.iter().flat_map(|cookie| match cookie {
        HarmlessCookie::Known => HARMLESS.to_vec(),
        HarmlessCookie::Pattern(pattern) => vec![pattern.as_str()],
    });
    HarmlessNames::new(patterns)
}

fn ignored(words: &[larder_config::Ignored]) -> Ignored {
    let is_there = |word| words.contains(&word);
    Ignored {
        private: is_there(larder_config::Ignored::Private),
        no_store: is_there(larder_config::Ignored::NoStore),
        vary: is_there(larder_config::Ignored::Vary),
        authorization: is_there(larder_config::Ignored::Authorization),
        set_cookie: is_there(larder_config::Ignored::SetCookie),
    }
}

fn lifetimes(lifetimes: &larder_config::Lifetimes) -> Lifetimes {
    Lifetimes { any: lifetimes.any, by_status: lifetimes.by_status.clone() }
}
