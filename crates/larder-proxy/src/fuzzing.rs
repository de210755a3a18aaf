//! What comes of a request for a purge, of an entry of a fleet's log, and of a coded body, for fuzz targets alone.
//!
//! In: a head of any bytes, and the hosts that its sender may purge. Out: whether stored responses are still good after that. Or
//! coded bytes, and what they are decoded to. What has to hold is said by the targets. Behind the feature `fuzzing`, off by
//! default and on in fuzz/ only, so that no release has it; hidden from the docs, and no promise to anybody.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Version};
use larder_cache::purge::{Mode, Predicate, Scope};
use larder_cache::{CachePolicy, Freshness, LifetimeSource, StoredHead, Verdict};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Clock;
use larder_store::CacheKey;

use crate::invalidation::Invalidations;
use crate::purge::{self, PurgeRequest, Reading};
use crate::purges::access::{AccessRules, Asking, Secret};
use crate::purges::{Order, here};

pub use crate::fuzzing_decoding::{DecodedBody, decode};

/// The port of the listener.
const PORT: u16 = 8080;

/// A head that may be a purge.
#[derive(Clone, Copy, Debug)]
pub struct PurgeHead<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query as they were sent.
    pub target: &'a str,
    /// All fields.
    pub fields: &'a HeaderMap,
    /// What Host says.
    pub authority: &'a Authority,
    /// The path below which a GET is a purge.
    pub location: &'a str,
}

impl PurgeHead<'_> {
    /// What is purged where its sender may purge the hosts of `scope`; `None` where that is nothing.
    pub fn purged(&self, scope: &Scope) -> Option<EnteredPurge> {
        let request = PurgeRequest {
            method: self.method,
            target: self.target,
            fields: self.fields,
            location: Some(self.location),
        };
        let Reading::Wanted(wanted) = purge::read(&request) else { return None };
        let order = Order {
            selectors: wanted.selectors,
            mode: wanted.mode,
            scope: Arc::new(scope.clone()),
            here: here(self.authority, PORT, scope),
            takes_patterns: true,
            wait: None,
        };
        let predicates = order.resolve().ok()?;
        let invalidations = Invalidations::default();
        let since = (order.mode == Mode::Soft).then_some(Duration::ZERO);
        for predicate in &predicates {
            invalidations.enter(predicate, since);
        }
        Some(EnteredPurge(invalidations))
    }

    /// Whether it is let in where this token is asked for.
    pub fn is_let_in(&self, token: &str) -> bool {
        let rules = AccessRules {
            from: None,
            token: Some(Secret::new(token)),
            header: None,
            soft: false,
            location: Some(self.location.into()),
            patterns: true,
            absent: None,
        };
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        rules.admits(&Asking { fields: self.fields, peer, client: None }).is_ok()
    }
}

/// What was purged.
pub struct EnteredPurge(Invalidations);

impl EnteredPurge {
    /// Whether none of it concerns a response with these fields, which was stored before for `target` at this authority.
    pub fn leaves(&self, authority: &Authority, target: &Target, fields: HeaderMap) -> bool {
        let request = RequestHead {
            method: Method::GET,
            scheme: Scheme::Http,
            authority: authority.clone(),
            target: target.clone(),
            version: Version::HTTP_11,
            fields: HeaderMap::new(),
        };
        let freshness = Freshness {
            lifetime: Duration::from_secs(60),
            source: LifetimeSource::MaxAge,
            initial_age: Duration::ZERO,
            received: Clock::default().now(),
            no_cache: false,
        };
        let head = StoredHead::new(&request, StatusCode::OK, fields, freshness, &CachePolicy::default());
        let key = CacheKey::new(authority.as_str(), target.as_str());
        self.0.verdict_of(&key, &head, 0) == Verdict::Good
    }
}

/// An authority of the scheme `http`, from any bytes.
pub fn authority(bytes: &[u8]) -> Option<Authority> {
    Authority::parse(Bytes::copy_from_slice(bytes), Scheme::Http).ok()
}

/// What an entry of a fleet's log says, and of which kind it is.
pub fn read_fleet_entry(entry: &[u8]) -> (&'static str, Vec<Predicate>) {
    match crate::fleet::read(entry) {
        crate::fleet::Entry::Purge(predicates) => ("purge", predicates),
        crate::fleet::Entry::Invalidation(predicates) => ("invalidation", predicates),
    }
}

/// The entries of a purge.
pub fn write_fleet_entries(predicates: &[Predicate]) -> Vec<Arc<[u8]>> {
    crate::fleet::entries(predicates)
}
