//! From what a request for a purge asks for to predicates: each selector gets the hosts that its sender may purge.
//!
//! In: selectors in the sender's words, the sender's scope, and what the config knows of hosts. Out: predicates, or what is wrong
//! with which selector; all of it at once. Nothing is entered here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use larder_cache::purge::pattern::PatternError;
use larder_cache::purge::recognise::{Bare, recognise};
use larder_cache::purge::{Mode, Pattern, Predicate, Scope, Selector, What};
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::target::{Target, absolute_form};

/// Selectors in one purge.
pub const SELECTORS_MAX: usize = 10_000;

/// What is to be purged, and who may have it purged.
#[derive(Clone, Debug)]
pub struct Order {
    /// What, in the sender's words.
    pub selectors: Vec<Selector>,
    /// What becomes of it.
    pub mode: Mode,
    /// The hosts that the sender may purge.
    pub scope: Arc<Scope>,
    /// The authorities that [`Selector::Here`] means; none where the request was for no site's host.
    pub here: Vec<Authority>,
    /// Whether patterns are taken that mean nothing exact.
    pub takes_patterns: bool,
    /// How long the purge waits until every journal has it. Default 30 s. After that it is in force, and is not acknowledged.
    pub wait: Option<Duration>,
}

/// What is wrong with a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// Neither `http://` nor `https://`, or no URL at all.
    #[error("{0:?} is not an absolute URL such as http://example.com/path")]
    Url(String),
    /// Its host is not among those that the sender may purge.
    #[error("{0:?} is not a host that may be purged here")]
    Host(String),
    /// A path that is none, or climbs above the root.
    #[error("{0:?} is not a path such as /img/")]
    Path(String),
    /// A tag without a name.
    #[error("a tag without a name")]
    Tag,
    /// An expression that cannot be compiled.
    #[error(transparent)]
    Pattern(PatternError),
    /// A pattern where only exact names are taken.
    #[error("the pattern means nothing exact, and `patterns` is off here")]
    NotExact,
    /// No host may be purged.
    #[error("no site lets this sender purge")]
    Scope,
}

/// What is wrong with an order: the number of each selector that is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongOrder(pub Vec<(usize, Wrong)>);

/// The authorities that [`Selector::Here`] means for a request with this Host, where that is in the scope. Keys have the port that
/// clients name, and one who purges from beside may name none: so the host with the `port` of the listener is meant as well.
pub(crate) fn here(host: &Authority, port: u16, scope: &Scope) -> Vec<Authority> {
    if !scope.holds(host.host()) {
        return Vec::new();
    }
    let with_port = Authority::parse(Bytes::from(format!("{}:{port}", host.host())), Scheme::Http).ok();
    let is_named = host.as_str().ends_with(&format!(":{port}"));
    let other = with_port.filter(|other| !is_named && other != host);
    std::iter::once(host.clone()).chain(other).collect()
}

impl Order {
    /// The predicates that it means.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn resolve(&self) -> Result<Vec<Predicate>, WrongOrder> {
        if self.scope.is_empty() {
            return Err(WrongOrder(vec![(0, Wrong::Scope)]));
        }
        let (mut predicates, mut wrong) = (Vec::new(), Vec::new());
        for (number, selector) in self.selectors.iter().take(SELECTORS_MAX).enumerate() {
            match self.named_by(selector) {
                Ok(named) => predicates.extend(named),
                Err(why) => wrong.push((number, why)),
            }
        }
        predicates.dedup();
        match wrong.is_empty() {
            true => Ok(predicates),
            false => Err(WrongOrder(wrong)),
        }
    }

    fn named_by(&self, selector: &Selector) -> Result<Vec<Predicate>, Wrong> {
        let of = |what| vec![self.everywhere(what)];
        Ok(match selector {
            Selector::Here(target) if self.here.is_empty() => {
                of(What::Target(parse_target(target)?.as_str().into()))
            }
            Selector::Here(target) => {
                let target = parse_target(target)?;
                self.here.iter().map(|here| self.url(here, &target)).collect::<Result<_, _>>()?
            }
            Selector::Url(url) => {
                let (authority, target) = parse_url(url)?;
                vec![self.url(&authority, &target)?]
            }
            Selector::Tag(tag) if tag.is_empty() => return Err(Wrong::Tag),
            Selector::Tag(tag) => of(What::Tag(tag.clone())),
            Selector::Prefix { host, path } => {
                let path = parse_prefix(path)?;
                match host {
                    Some(host) => vec![self.at(host, What::Prefix(path))?],
                    None => of(What::Prefix(path)),
                }
            }
            Selector::Host(host) => vec![self.at(host, What::Host(lower_host(host)?.into()))?],
            Selector::Group { scheme, authority, name } => {
                let parsed = Authority::parse(Bytes::copy_from_slice(authority.as_bytes()), *scheme)
                    .map_err(|_| Wrong::Host(authority.to_string()))?;
                self.is_in_scope(parsed.host())?;
                let authority = parsed.as_str().into();
                of(What::Group { scheme: *scheme, authority, name: name.clone() })
            }
            Selector::All => of(What::All),
            Selector::Pattern(text) => match recognise(text, Bare::Expression) {
                Some(exact) => match &exact.hosts {
                    None => exact.what.into_iter().map(|what| self.everywhere(what)).collect(),
                    Some(hosts) => {
                        let mut named = Vec::new();
                        // A host beyond the scope names nothing that this sender may purge.
                        for host in hosts.iter().filter(|host| self.scope.holds(host)) {
                            for what in &exact.what {
                                named.push(self.at(host, what.clone())?);
                            }
                        }
                        named
                    }
                },
                None if !self.takes_patterns => return Err(Wrong::NotExact),
                None => of(What::Pattern(Arc::new(Pattern::compile(text).map_err(Wrong::Pattern)?))),
            },
        })
    }

    fn everywhere(&self, what: What) -> Predicate {
        Predicate { what, scope: Arc::clone(&self.scope), mode: self.mode }
    }

    /// At one host alone.
    fn at(&self, host: &str, what: What) -> Result<Predicate, Wrong> {
        let host = lower_host(host)?;
        let scope = self.scope.narrowed_to(&host).ok_or(Wrong::Host(host))?;
        Ok(Predicate { what, scope: Arc::new(scope), mode: self.mode })
    }

    fn url(&self, authority: &Authority, target: &Target) -> Result<Predicate, Wrong> {
        self.is_in_scope(authority.host())?;
        let (authority, target) = (authority.as_str().into(), target.as_str().into());
        Ok(self.everywhere(What::Url { authority, target }))
    }

    fn is_in_scope(&self, host: &str) -> Result<(), Wrong> {
        self.scope.holds(host).then_some(()).ok_or_else(|| Wrong::Host(host.to_owned()))
    }
}

fn parse_target(target: &str) -> Result<Target, Wrong> {
    let target = target.split('#').next().unwrap_or_default();
    Target::parse(Bytes::copy_from_slice(target.as_bytes())).map_err(|_| Wrong::Path(target.to_owned()))
}

/// A URL as a person types it, taken apart as a listener would.
pub(crate) fn parse_url(url: &str) -> Result<(Authority, Target), Wrong> {
    let wrong = || Wrong::Url(url.to_owned());
    let without_fragment = url.split('#').next().unwrap_or_default();
    let raw = Bytes::copy_from_slice(without_fragment.as_bytes());
    let (scheme, authority, target) = absolute_form(&raw).map_err(|_| wrong())?;
    let authority = Authority::parse(authority, scheme).map_err(|_| wrong())?;
    Ok((authority, Target::parse(target).map_err(|_| wrong())?))
}

/// The canonical form of a path that ends in `/`.
fn parse_prefix(path: &str) -> Result<Box<str>, Wrong> {
    let wrong = || Wrong::Path(path.to_owned());
    let target = Target::parse(Bytes::copy_from_slice(path.as_bytes())).map_err(|_| wrong())?;
    let canonical = target.canonical_path().map_err(|_| wrong())?;
    let is_prefix = target.query().is_none() && canonical.ends_with('/');
    is_prefix.then(|| canonical.into()).ok_or_else(wrong)
}

fn lower_host(host: &str) -> Result<String, Wrong> {
    let wrong = || Wrong::Host(host.to_owned());
    let parsed = Authority::parse(Bytes::copy_from_slice(host.as_bytes()), Scheme::Http);
    let parsed = parsed.map_err(|_| wrong())?;
    Ok(parsed.host().to_owned())
}
