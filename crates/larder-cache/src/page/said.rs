//! What the parts of a page say, as far as caches behind larder are concerned.
//!
//! In: the final fields of a part, its age, and larder's own lifetime for it. Out: [`PartSaid`], and of all parts together
//! [`PageSaid`]. What a page says in the end is the affair of [`super`].

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use larder_http::fields::cache_control::{Argument, Directives, ResponseDirectives};
use larder_http::fields::client_cert::CLIENT_CERT;
use larder_http::fields::date::{self, DateField};
use larder_http::fields::surrogate::SURROGATE_CAPABILITY;
use larder_http::fields::vary::{NAMES_MAX, Vary};
use larder_http::time::WallTime;

/// What a part of a page says to caches behind larder.
#[derive(Clone, Debug)]
pub struct PartSaid {
    pub(super) no_store: bool,
    /// Not all may have it.
    pub(super) is_private: bool,
    pub(super) no_cache: bool,
    /// How long it is fresh, counted from age 0, where that is said to all caches or where nothing is said.
    pub(super) lifetime_seconds: i64,
    /// The same in a shared cache.
    pub(super) shared_seconds: i64,
    /// What it says of lifetimes.
    pub(super) says: LifetimeFor,
    pub(super) age_seconds: Option<u64>,
    pub(super) ttl_seconds: Option<i64>,
    pub(super) date: HeaderValue,
    pub(super) vary: Vec<HeaderName>,
}

/// To whom a part gives a lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifetimeFor {
    Nobody,
    All,
    SharedCaches,
    /// One for all, and another one for shared caches.
    Both,
}

impl PartSaid {
    /// From the part's final fields as a client would get them, its current age, and larder's own lifetime for it where the
    /// response gives none: `ttl_seconds` is the time left, and may be negative. `has_private_key` says that the rule's key has
    /// cookies or Authorization. `now` stands in for a missing Date.
    pub fn of(
        fields: &HeaderMap,
        age_seconds: Option<u64>,
        ttl_seconds: Option<i64>,
        has_private_key: bool,
        now: WallTime,
    ) -> Self {
        let said = ResponseDirectives::read(fields);
        let (varies_by_visitor, vary) = match Vary::read(fields) {
            // By what, nobody knows: perhaps by who asks.
            Vary::Any => (true, Vec::new()),
            Vary::Names(names) => (names.iter().any(is_of_visitor), names),
        };
        let age = signed(age_seconds.unwrap_or_default());
        let dated = DateField::read(fields, &header::DATE, now).at();
        let made = dated.unwrap_or_else(|| {
            WallTime(now.0.saturating_sub(age_seconds.unwrap_or_default().saturating_mul(1000)))
        });
        let date = fields.get(header::DATE).filter(|_| dated.is_some()).cloned();
        let expires = match DateField::read(fields, &header::EXPIRES, now) {
            DateField::Absent => None,
            DateField::Invalid => Some(Duration::ZERO),
            DateField::At(expires) => Some(expires.since(made)),
        };
        let for_all = said.max_age.or(expires).map(whole_seconds);
        let for_shared = said.s_maxage.map(whole_seconds);
        let own = || ttl_seconds.map_or(0, |left| age.saturating_add(left).max(0));
        Self {
            no_store: said.no_store,
            is_private: has_private_key || said.private.is_whole() || varies_by_visitor,
            no_cache: said.no_cache.is_whole(),
            // A lifetime for shared caches alone bounds that of all others, who are given none.
            lifetime_seconds: for_all.or(for_shared).unwrap_or_else(own),
            shared_seconds: for_shared.or(for_all).unwrap_or_else(own),
            says: match (for_all, for_shared) {
                (None, None) => LifetimeFor::Nobody,
                (Some(_), None) => LifetimeFor::All,
                (None, Some(_)) => LifetimeFor::SharedCaches,
                (Some(_), Some(_)) => LifetimeFor::Both,
            },
            age_seconds,
            ttl_seconds,
            date: date.unwrap_or_else(|| date::format(made)),
            vary,
        }
    }

    /// What the same part says at another age, with another time left.
    pub fn at(&self, age_seconds: u64, ttl_seconds: i64) -> Self {
        Self { age_seconds: Some(age_seconds), ttl_seconds: Some(ttl_seconds), ..self.clone() }
    }

    /// What is left of a lifetime; negative where it is over.
    pub(super) fn left(&self, lifetime_seconds: i64) -> i64 {
        lifetime_seconds.saturating_sub(self.age())
    }

    pub(super) fn age(&self) -> i64 {
        signed(self.age_seconds.unwrap_or_default())
    }
}

/// A page, as far as caches behind larder are concerned.
#[derive(Clone, Copy, Debug)]
pub struct PageSaid<'a> {
    /// The template first.
    pub parts: &'a [PartSaid],
    /// Some part was not there when the head was written.
    pub is_open: bool,
    /// Some part failed, and something else stands there.
    pub has_failed: bool,
    /// The request fields that values and conditions read.
    pub used_fields: &'a [HeaderName],
    /// They read the client's address.
    pub used_client: bool,
}

/// What other parts vary by, and what values and conditions read, where the template does not vary by it. `None` where that is
/// more than a Vary says.
pub(super) fn added_to_vary(said: &PageSaid<'_>) -> Option<Vec<HeaderName>> {
    let (template, others) = said.parts.split_first()?;
    let mut added: Vec<HeaderName> = Vec::new();
    for name in others.iter().flat_map(|part| &part.vary).chain(said.used_fields) {
        // Surrogate-Capability is larder's own, and the same for all.
        let is_told = is_of_visitor(name) || *name == SURROGATE_CAPABILITY || template.vary.contains(name);
        if !is_told && !added.contains(name) {
            if template.vary.len() + added.len() >= NAMES_MAX {
                return None;
            }
            added.push(name.clone());
        }
    }
    Some(added)
}

/// Whether a request field has a value of its own for each visitor: a page that depends on it is nobody else's.
pub(super) fn is_of_visitor(name: &HeaderName) -> bool {
    matches!(*name, header::COOKIE | header::AUTHORIZATION) || *name == CLIENT_CERT
}

/// Whether a template says nothing to caches: no directive, and no Expires.
pub(super) fn says_nothing(fields: &HeaderMap) -> bool {
    !fields.contains_key(header::EXPIRES) && directives(fields).next().is_none()
}

pub(super) fn directives(fields: &HeaderMap) -> impl Iterator<Item = (&[u8], Argument<'_>)> {
    fields.get_all(header::CACHE_CONTROL).iter().flat_map(|line| Directives::new(line.as_bytes()))
}

pub(super) fn signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

pub(super) fn whole_seconds(lifetime: Duration) -> i64 {
    signed(lifetime.as_secs())
}
