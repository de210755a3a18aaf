//! What responses of an origin want purged.
//!
//! In: the fields of a response. Out: what they name, in the words of [`Selector`]; nothing where they name nothing. Larder-Purge counts
//! in answers to unsafe requests that are no errors, X-LiteSpeed-Purge in every answer.
//! Deliberately absent: whether the site listens to these fields, and the hosts that such a purge reaches.

use http::{HeaderMap, StatusCode};
use larder_cache::purge::{Expression, Mode, PatternText, Selector};
use larder_http::fields::{larder_purge, litespeed};

use crate::purges::Dialect;

/// A purge that a response asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) selectors: Vec<Selector>,
    pub(crate) mode: Mode,
    pub(crate) dialect: Dialect,
}

/// What Larder-Purge names in an answer to an unsafe request: what is to be removed, and what is to be made stale. A member that is
/// not understood is left out.
pub(crate) fn larder_purge(status: StatusCode, fields: &HeaderMap) -> Vec<Answered> {
    if !(status.is_success() || status.is_redirection()) {
        return Vec::new();
    }
    let (mut hard, mut soft) = (Vec::new(), Vec::new());
    for member in larder_purge::named(fields) {
        if let Some(selector) = selector(&member.name) {
            if member.soft { &mut soft } else { &mut hard }.push(selector);
        }
    }
    [(hard, Mode::Hard), (soft, Mode::Soft)]
        .into_iter()
        .filter(|(selectors, _)| !selectors.is_empty())
        .map(|(selectors, mode)| Answered { selectors, mode, dialect: Dialect::Api })
        .collect()
}

/// `tag:NAME`, `url:/path` or an absolute URL, `prefix:/path/`, `host:NAME`, `pattern:EXPRESSION`, `all`.
fn selector(name: &str) -> Option<Selector> {
    if name == "all" {
        return Some(Selector::All);
    }
    let (kind, name) = name.split_once(':')?;
    Some(match kind {
        "tag" => Selector::Tag(name.as_bytes().into()),
        "url" if name.starts_with('/') => Selector::Here(name.into()),
        "url" => Selector::Url(name.into()),
        "prefix" => Selector::Prefix { host: None, path: name.into() },
        "host" => Selector::Host(name.into()),
        "pattern" => {
            let target = Some(Expression { text: name.into(), at_start: false });
            Selector::Pattern(PatternText { target, ..PatternText::default() })
        }
        _ => return None,
    })
}

/// What X-LiteSpeed-Purge names.
pub(crate) fn litespeed_purge(fields: &HeaderMap) -> Option<Answered> {
    if !fields.contains_key(litespeed::PURGE) {
        return None;
    }
    let (named, is_stale) = litespeed::purged(fields);
    let selector = |named: litespeed::Named<'_>| match named {
        litespeed::Named::Tag(tag) => Some(Selector::Tag(tag.into())),
        litespeed::Named::Path(path) => Some(Selector::Here(std::str::from_utf8(path).ok()?.into())),
        litespeed::Named::All => Some(Selector::All),
    };
    let selectors: Vec<_> = named.into_iter().filter_map(selector).collect();
    let mode = if is_stale { Mode::Soft } else { Mode::Hard };
    (!selectors.is_empty()).then_some(Answered { selectors, mode, dialect: Dialect::LiteSpeed })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use bytes::Bytes;
    use http::HeaderValue;
    use larder_cache::purge::{Scope, What};
    use larder_http::authority::Authority;
    use larder_http::message::Scheme;
    use proptest::prelude::*;

    use super::*;
    use crate::purges::Order;

    fn of(name: http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_bytes(value.as_bytes()).unwrap())])
    }

    #[test]
    fn what_is_hard_and_what_is_soft_are_two_purges() {
        let value = r#""tag:a", "prefix:/blog/";soft, "url:/x?y", "url:http://a.org/z", "host:a.org", "all";soft, "pattern:^/q", "what:x""#;
        let asked = larder_purge(StatusCode::OK, &of(larder_purge::LARDER_PURGE, value));
        let [hard, soft] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!((hard.mode, hard.selectors.len()), (Mode::Hard, 5));
        assert_eq!(hard.selectors[0], Selector::Tag(b"a".as_slice().into()));
        assert_eq!(hard.selectors[1], Selector::Here("/x?y".into()));
        assert_eq!(hard.selectors[2], Selector::Url("http://a.org/z".into()));
        let prefix = Selector::Prefix { host: None, path: "/blog/".into() };
        assert_eq!((soft.mode, &soft.selectors[..]), (Mode::Soft, &[prefix, Selector::All][..]));
        assert_eq!(larder_purge(StatusCode::BAD_REQUEST, &of(larder_purge::LARDER_PURGE, value)), []);
        assert_eq!(larder_purge(StatusCode::SEE_OTHER, &of(larder_purge::LARDER_PURGE, "\"all\"")).len(), 1);
    }

    #[test]
    fn a_purge_of_litespeed_is_one() {
        let asked = litespeed_purge(&of(litespeed::PURGE, "public, stale, tag=a, /b")).unwrap();
        let expected = [Selector::Tag(b"a".as_slice().into()), Selector::Here("/b".into())];
        assert_eq!(
            (asked.mode, asked.dialect, &asked.selectors[..]),
            (Mode::Soft, Dialect::LiteSpeed, &expected[..])
        );
        assert_eq!(litespeed_purge(&of(litespeed::PURGE, "private, *")), None);
    }

    /// Names that could mean something of another site.
    fn names() -> impl Strategy<Value = String> {
        let host =
            prop_oneof!["a\\.org", "b\\.org", "www\\.b\\.org", "[a-z.*]{0,8}", "a\\.org:80", "\\[::1\\]"];
        let path = "(/[a-z.%0-9]{0,4}){0,3}/?(\\?[a-z=]{0,5})?";
        prop_oneof![
            Just("all".to_owned()),
            "tag:[!-~]{0,8}",
            (host.clone(), path).prop_map(|(host, path)| format!("url:http://{host}{path}")),
            path.prop_map(|path| format!("url:{path}")),
            path.prop_map(|path| format!("prefix:{path}")),
            host.prop_map(|host| format!("host:{host}")),
            "pattern:[a-z.*^$/|()b]{0,12}",
            "[ -~]{0,20}",
        ]
    }

    proptest! {
        #[test]
        fn no_response_purges_outside_of_its_site(
            members in proptest::collection::vec((names(), any::<bool>()), 0..6),
            litespeed in "[a-z=,;/* ]{0,40}",
        ) {
            let scope = Arc::new(Scope::of_sites([("a.org", true), ("*.a.org", true), ("b.org", false)], false));
            let member = |(name, soft): &(String, bool)| {
                let name = name.replace('\\', "\\\\").replace('"', "\\\"");
                format!("\"{name}\"{}", if *soft { ";soft" } else { "" })
            };
            let value = members.iter().map(member).collect::<Vec<_>>().join(", ");
            let mut asked = larder_purge(StatusCode::OK, &of(larder_purge::LARDER_PURGE, &value));
            asked.extend(litespeed_purge(&of(litespeed::PURGE, &litespeed)));
            for Answered { selectors, mode, .. } in asked {
                for selector in selectors {
                    let order = Order {
                        selectors: vec![selector],
                        mode,
                        scope: Arc::clone(&scope),
                        here: vec![Authority::parse(Bytes::from_static(b"a.org"), Scheme::Http).unwrap()],
                        takes_patterns: true,
                        wait: None,
                    };
                    for predicate in order.resolve().unwrap_or_default() {
                        let is_there = |host: &str| predicate.scope.holds(host);
                        prop_assert!(!is_there("b.org") && !is_there("www.b.org") && !is_there("c.org"), "{predicate:?}");
                        if let What::Url { authority, .. } = &predicate.what {
                            let host = Authority::parse(Bytes::copy_from_slice(authority.as_bytes()), Scheme::Http);
                            prop_assert!(scope.holds(host.unwrap().host()), "{predicate:?}");
                        }
                    }
                }
            }
        }
    }
}
