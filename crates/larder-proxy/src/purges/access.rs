//! Who may purge what: the sites that let a request for a purge in, and the hosts that it reaches by that.
//!
//! In: a request, its peer, and what each site says ([`Access`]). Out: a scope, or why there is none. It is read before the request is
//! changed in any way: fields that are dropped for a cache may name what is to be purged.
//! By its address alone a request is let in only where no proxy has passed it on, unless the proxy is trusted and the client that it
//! names may purge as well. A right secret is always let in. Wrong ones are counted by address, and refused with 429 beyond
//! ten a minute. Secrets are compared in a time that tells nothing.

use std::collections::HashMap;
use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use http::header::{AUTHORIZATION, FORWARDED, VIA};
use http::{HeaderMap, HeaderName, HeaderValue};
use larder_cache::purge::Scope;
use parking_lot::Mutex;

use super::refusal::PurgeRefusal;

/// Wrong secrets that one address may show in a minute.
const WRONG_MAX: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);
/// Addresses whose wrong secrets are counted; beyond that the count begins anew for all.
const ADDRESSES_MAX: usize = 4096;

/// Fields that a proxy adds to what it passes on.
const PASSED_ON: [HeaderName; 4] =
    [VIA, FORWARDED, HeaderName::from_static("x-forwarded-for"), HeaderName::from_static("x-real-ip")];

/// Fields beside Authorization that plugins show a token in.
const TOKEN_FIELDS: [HeaderName; 2] =
    [HeaderName::from_static("x-invalidate-token"), HeaderName::from_static("fastly-key")];

/// A secret that a request has to show. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<[u8]>);

impl Secret {
    /// Takes it.
    pub fn new(secret: &str) -> Self {
        Self(secret.as_bytes().into())
    }

    /// Compares in a time that depends on the length of `shown` only.
    fn is(&self, shown: &[u8]) -> bool {
        let secret = self.0.iter().cycle();
        let differing = shown.iter().zip(secret).fold(0, |differing, (a, b)| black_box(differing | (a ^ b)));
        (differing == 0) & (shown.len() == self.0.len()) & !self.0.is_empty()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What a site says of purges.
#[derive(Clone, Debug, Default)]
pub enum Access {
    /// Nobody may.
    #[default]
    Closed,
    /// Purge methods go to the origin, like any method that larder does not know.
    Pass,
    /// Whoever these rules let in may.
    Open(Arc<AccessRules>),
}

/// Decides about an address.
pub type Addresses = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// Whom a site lets purge, and how. Where both an address and a secret are asked for, both are needed.
#[derive(Clone)]
pub struct AccessRules {
    /// From which addresses.
    pub from: Option<Addresses>,
    /// With which token: in Authorization (Bearer), X-Invalidate-Token or Fastly-Key.
    pub token: Option<Secret>,
    /// With which field and value, beside or in place of the token.
    pub header: Option<(HeaderName, Secret)>,
    /// Whether every purge is soft.
    pub soft: bool,
    /// The path below which a GET is a purge of what follows.
    pub location: Option<Box<str>>,
    /// Whether patterns are taken that mean nothing exact.
    pub patterns: bool,
    /// The status where nothing was stored, if that is another than 200.
    pub absent: Option<u16>,
}

impl std::fmt::Debug for AccessRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessRules").finish_non_exhaustive()
    }
}

/// A request for a purge, as far as it matters here.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) fields: &'a HeaderMap,
    pub(crate) peer: IpAddr,
    /// The client that a trusted proxy names, where such a proxy has passed the request on.
    pub(crate) client: Option<IpAddr>,
}

impl Asking<'_> {
    fn is_passed_on(&self) -> bool {
        PASSED_ON.iter().any(|name| self.fields.contains_key(name))
    }
}

impl AccessRules {
    /// What lets the request in.
    ///
    /// # Errors
    /// Why nothing does.
    pub(crate) fn admits(&self, asking: &Asking<'_>) -> Result<&'static str, PurgeRefusal> {
        let by_secret = self.shown(asking.fields);
        let wants_secret = self.token.is_some() || self.header.is_some();
        if wants_secret {
            match by_secret {
                Shown::Right(by) if self.from.is_none() => return Ok(by),
                Shown::Right(_) => {}
                Shown::Wrong => return Err(PurgeRefusal::Token),
                Shown::Nothing => return Err(PurgeRefusal::NotAllowed),
            }
        }
        let from = self.from.as_ref().ok_or(PurgeRefusal::NotAllowed)?;
        if !from(asking.peer) {
            return Err(PurgeRefusal::NotAllowed);
        }
        if asking.is_passed_on() && !asking.client.is_some_and(|client| from(client)) {
            return Err(PurgeRefusal::Forwarded);
        }
        Ok(match by_secret {
            Shown::Right(by) => by,
            _ => "address",
        })
    }

    /// Takes out the fields in which a request shows a right secret: they are for larder alone.
    pub(crate) fn take_secrets(&self, fields: &mut HeaderMap) {
        let mut shown: Vec<HeaderName> = Vec::new();
        if let Some((name, secret)) = &self.header {
            shown.extend(
                fields.get_all(name).iter().any(|value| secret.is(value.as_bytes())).then(|| name.clone()),
            );
        }
        if let Some(secret) = &self.token {
            let is_bearer =
                fields.get_all(AUTHORIZATION).iter().filter_map(bearer).any(|shown| secret.is(shown));
            shown.extend(is_bearer.then_some(AUTHORIZATION));
            let has =
                |name: &&HeaderName| fields.get_all(*name).iter().any(|value| secret.is(value.as_bytes()));
            shown.extend(TOKEN_FIELDS.iter().filter(has).cloned());
        }
        for name in shown {
            fields.remove(name);
        }
    }

    fn shown(&self, fields: &HeaderMap) -> Shown {
        let mut shown = Shown::Nothing;
        let mut see = |secret: &Secret, value: &[u8], by: &'static str| {
            shown = match (secret.is(value), &shown) {
                (true, _) => Shown::Right(by),
                (false, Shown::Right(_)) => return,
                (false, _) => Shown::Wrong,
            };
        };
        if let Some((name, secret)) = &self.header {
            fields.get_all(name).iter().for_each(|value| see(secret, value.as_bytes(), "header"));
        }
        if let Some(secret) = &self.token {
            let bearers = fields.get_all(AUTHORIZATION).iter().filter_map(bearer);
            bearers.for_each(|value| see(secret, value, "token"));
            for name in &TOKEN_FIELDS {
                fields.get_all(name).iter().for_each(|value| see(secret, value.as_bytes(), "token"));
            }
        }
        shown
    }
}

/// The token of a line of Authorization.
fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, shown) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| shown.trim_ascii())
}

/// What a request shows of secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Nothing,
    Wrong,
    /// And where it stood.
    Right(&'static str),
}

/// What a request for a purge may do.
pub(crate) struct Admitted {
    pub(crate) scope: Arc<Scope>,
    /// What let it in.
    pub(crate) by: &'static str,
    /// The rules of the site that let it in first.
    pub(crate) rules: Arc<AccessRules>,
}

/// A site, as far as it matters here.
pub(crate) struct AskedSite<'a> {
    pub(crate) hosts: &'a [String],
    pub(crate) access: &'a Access,
}

/// What a request may do at the site of its host, or, where that is no site's, at all sites that let it in.
///
/// # Errors
/// Why it may do nothing.
pub(crate) fn admit(
    asking: &Asking<'_>,
    sites: &[AskedSite<'_>],
    own: Option<usize>,
) -> Result<Admitted, PurgeRefusal> {
    let mut first: Option<(Arc<AccessRules>, &'static str)> = None;
    let mut refused = None;
    let mut admits = |index: usize, site: &AskedSite<'_>| {
        if own.is_some_and(|own| own != index) {
            return false;
        }
        let Access::Open(rules) = site.access else { return false };
        match rules.admits(asking) {
            Ok(by) => {
                first.get_or_insert_with(|| (Arc::clone(rules), by));
                true
            }
            Err(why) => {
                refused =
                    Some(refused.map_or(why, |before| if why == PurgeRefusal::Token { why } else { before }));
                false
            }
        }
    };
    let mut hosts: Vec<(&str, bool)> = Vec::new();
    let mut otherwise = false;
    for (index, site) in sites.iter().enumerate() {
        let is_in = admits(index, site);
        match site.hosts.is_empty() {
            true => otherwise |= is_in,
            false => hosts.extend(site.hosts.iter().map(|host| (host.as_str(), is_in))),
        }
    }
    let (rules, by) = first.ok_or_else(|| refused.unwrap_or(PurgeRefusal::NotAllowed))?;
    Ok(Admitted { scope: Arc::new(Scope::of_sites(hosts, otherwise)), by, rules })
}

/// Wrong secrets, by address.
#[derive(Debug, Default)]
pub(crate) struct WrongSecrets(Mutex<HashMap<IpAddr, (Duration, u32), RandomState>>);

impl WrongSecrets {
    /// Counts one that came at this moment of the monotonic clock; whether there were too many.
    pub(crate) fn note(&self, address: IpAddr, now: Duration) -> bool {
        let mut wrong = self.0.lock();
        if wrong.len() >= ADDRESSES_MAX && !wrong.contains_key(&address) {
            wrong.retain(|_, (since, _)| now.saturating_sub(*since) < MINUTE);
            if wrong.len() >= ADDRESSES_MAX {
                wrong.clear();
            }
        }
        let (since, count) = wrong.entry(address).or_insert((now, 0));
        if now.saturating_sub(*since) >= MINUTE {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count > WRONG_MAX
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const SECRET: &str = "a-long-secret-of-ours";

    fn rules(from: Option<&'static str>, token: bool) -> AccessRules {
        let from = from.map(|from| {
            let from: IpAddr = from.parse().unwrap();
            Arc::new(move |address| address == from) as Addresses
        });
        AccessRules {
            from,
            token: token.then(|| Secret::new(SECRET)),
            header: None,
            soft: false,
            location: None,
            patterns: true,
            absent: None,
        }
    }

    #[track_caller]
    fn check(
        rules: &AccessRules,
        peer: &str,
        fields: &[(&'static str, &'static str)],
        expected: Result<&'static str, PurgeRefusal>,
    ) {
        check_passed_on(rules, (peer, None), fields, expected);
    }

    /// Passed on by a trusted proxy, where there is a client.
    #[track_caller]
    fn check_passed_on(
        rules: &AccessRules,
        (peer, client): (&str, Option<&str>),
        fields: &[(&'static str, &'static str)],
        expected: Result<&'static str, PurgeRefusal>,
    ) {
        let all = fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let all: HeaderMap = all.collect();
        let client = client.map(|client| client.parse().unwrap());
        let asking = Asking { fields: &all, peer: peer.parse().unwrap(), client };
        assert_eq!(rules.admits(&asking), expected, "{peer} {client:?} {fields:?}");
    }

    #[test]
    fn an_address_counts_only_where_nobody_passed_the_request_on() {
        let rules = rules(Some("10.0.0.7"), false);
        check(&rules, "10.0.0.7", &[], Ok("address"));
        check(&rules, "10.0.0.8", &[], Err(PurgeRefusal::NotAllowed));
        for field in ["via", "forwarded", "x-forwarded-for", "x-real-ip"] {
            check(&rules, "10.0.0.7", &[(field, "192.0.2.1")], Err(PurgeRefusal::Forwarded));
        }
        check(&rules, "10.0.0.7", &[("authorization", "Bearer x")], Ok("address"));
    }

    #[test]
    fn a_trusted_proxy_passes_on_for_a_client_that_may_purge_itself() {
        let from = |address: IpAddr| {
            address == IpAddr::from([10, 0, 0, 1]) || address == IpAddr::from([10, 0, 0, 7])
        };
        let rules = AccessRules { from: Some(Arc::new(from)), ..rules(None, false) };
        let passed_on = [("x-forwarded-for", "as the proxy says")];
        check_passed_on(&rules, ("10.0.0.1", Some("10.0.0.7")), &passed_on, Ok("address"));
        check_passed_on(&rules, ("10.0.0.1", Some("192.0.2.1")), &passed_on, Err(PurgeRefusal::Forwarded));
        check_passed_on(&rules, ("10.0.0.1", None), &passed_on, Err(PurgeRefusal::Forwarded));
        check_passed_on(&rules, ("10.0.0.2", Some("10.0.0.7")), &passed_on, Err(PurgeRefusal::NotAllowed));
    }

    #[test]
    fn a_token_counts_wherever_plugins_show_it() {
        let rules = rules(None, true);
        for (field, value) in [
            ("authorization", "Bearer a-long-secret-of-ours"),
            ("x-invalidate-token", SECRET),
            ("fastly-key", SECRET),
        ] {
            check(&rules, "192.0.2.1", &[(field, value), ("via", "1.1 x")], Ok("token"));
        }
        check(&rules, "192.0.2.1", &[], Err(PurgeRefusal::NotAllowed));
        check(&rules, "192.0.2.1", &[("fastly-key", "a-long-secret-of-our")], Err(PurgeRefusal::Token));
        check(&rules, "192.0.2.1", &[("fastly-key", "x"), ("x-invalidate-token", SECRET)], Ok("token"));
    }

    #[test]
    fn a_right_secret_is_taken_out_of_the_request_and_a_wrong_one_is_not_ours() {
        let mut rules = rules(None, true);
        rules.header = Some((HeaderName::from_static("x-purge-key"), Secret::new("k")));
        let mut fields = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer a-long-secret-of-ours"),
            ("fastly-key", SECRET),
            ("x-invalidate-token", "another"),
            ("x-purge-key", "k"),
            ("x-other", "k"),
        ] {
            fields.insert(name, HeaderValue::from_static(value));
        }
        rules.take_secrets(&mut fields);
        let mut left: Vec<_> = fields.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["x-invalidate-token", "x-other"]);
    }

    #[test]
    fn where_both_are_asked_for_both_are_needed() {
        let rules = rules(Some("10.0.0.7"), true);
        check(&rules, "10.0.0.7", &[("fastly-key", SECRET)], Ok("token"));
        check(&rules, "10.0.0.8", &[("fastly-key", SECRET)], Err(PurgeRefusal::NotAllowed));
        check(&rules, "10.0.0.7", &[], Err(PurgeRefusal::NotAllowed));
        let empty = AccessRules { from: None, token: None, ..rules };
        check(&empty, "10.0.0.7", &[], Err(PurgeRefusal::NotAllowed));
    }

    #[test]
    fn a_tenant_reaches_the_tenants_hosts_alone() {
        let (a, b) = (Access::Open(Arc::new(rules(Some("10.0.0.7"), false))), Access::Closed);
        let (own, other) = (["*.a.org".to_owned()], ["www.a.org".to_owned()]);
        let sites = [
            AskedSite { hosts: &own, access: &a },
            AskedSite { hosts: &other, access: &b },
            AskedSite { hosts: &[], access: &a },
        ];
        let asking = Asking { fields: &HeaderMap::new(), peer: [10, 0, 0, 7].into(), client: None };
        let admitted = admit(&asking, &sites, Some(0)).ok().unwrap();
        let holds = |scope: &Scope| ["x.a.org", "www.a.org", "b.org"].map(|host| scope.holds(host));
        assert_eq!(holds(&admitted.scope), [true, false, false]);
        let everywhere = admit(&asking, &sites, None).ok().unwrap();
        assert_eq!(holds(&everywhere.scope), [true, false, true]);
        assert_eq!(admit(&asking, &sites, Some(1)).err(), Some(PurgeRefusal::NotAllowed));
    }

    #[test]
    fn wrong_secrets_are_too_many_after_ten_in_a_minute() {
        let (wrong, address) = (WrongSecrets::default(), IpAddr::from([192, 0, 2, 1]));
        let at = Duration::from_secs;
        assert!((0..10).all(|second| !wrong.note(address, at(second))));
        assert!(wrong.note(address, at(10)) && !wrong.note([192, 0, 2, 2].into(), at(10)));
        assert!(!wrong.note(address, at(60)));
    }
}
