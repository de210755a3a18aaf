//! What a purge names, and what it does to that.
//!
//! In: what an administrator or an application wants purged, as [`Selector`]s. Out: [`Predicate`]s, which name stored responses
//! without looking for them. A predicate has a [`Scope`], the hosts that its sender may purge, and a [`Mode`]. Exact kinds are
//! found by a hash. A pattern has to be compared with each response, so one that means something exact is recognised as that
//! ([`recognise`]).
//! The module is pure: it has no table, no number and no clock. Those belong to the code that enters a predicate.

pub mod pattern;
pub mod recognise;
pub mod scope;
pub mod tags;
pub mod written;

use std::sync::Arc;

use larder_http::message::Scheme;

pub use pattern::{Expression, PatternText};
pub use scope::Scope;

/// What becomes of the responses that a purge names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// They are gone: neither used nor validated.
    Hard,
    /// They are stale from that moment on. What a stale response may be used for, they may be used for as well.
    Soft,
}

/// A kind of predicate: the words of metrics, logs and the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One URL.
    Url,
    /// Every response with a tag.
    Tag,
    /// Every response in a cache group (RFC 9875).
    Group,
    /// Everything below a path.
    Prefix,
    /// Everything at a host.
    Host,
    /// Everything in the scope.
    All,
    /// Every response that matches regular expressions.
    Pattern,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Url, Self::Tag, Self::Group, Self::Prefix, Self::Host, Self::All, Self::Pattern];

    /// The fixed word.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Tag => "tag",
            Self::Group => "group",
            Self::Prefix => "prefix",
            Self::Host => "host",
            Self::All => "all",
            Self::Pattern => "pattern",
        }
    }
}

/// What a predicate names, within its scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Path and query at one authority (the base of a cache key), under both schemes and in every variant.
    Url {
        /// In its canonical form: lower case, without the default port.
        authority: Box<str>,
        /// Path and query byte for byte.
        target: Box<str>,
    },
    /// Path and query at every host of the scope.
    Target(Box<str>),
    /// Every response that carries this tag, byte for byte.
    Tag(Box<[u8]>),
    /// Every response in a cache group of an origin (RFC 9875 2).
    Group {
        /// Of the origin.
        scheme: Scheme,
        /// Of the origin, in its canonical form.
        authority: Box<str>,
        /// The name, byte for byte.
        name: Box<str>,
    },
    /// Everything whose canonical path begins with this, which begins and ends with `/`.
    Prefix(Box<str>),
    /// Everything at this host, whatever the port; in lower case.
    Host(Box<str>),
    /// Everything in the scope.
    All,
    /// Every response that all of these expressions match.
    Pattern(PatternText),
}

impl What {
    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Url { .. } | Self::Target(_) => Kind::Url,
            Self::Tag(_) => Kind::Tag,
            Self::Group { .. } => Kind::Group,
            Self::Prefix(_) => Kind::Prefix,
            Self::Host(_) => Kind::Host,
            Self::All => Kind::All,
            Self::Pattern(_) => Kind::Pattern,
        }
    }
}

/// A predicate of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// What it names.
    pub what: What,
    /// The hosts whose responses it may concern.
    pub scope: Arc<Scope>,
    /// What becomes of them.
    pub mode: Mode,
}

/// What a request for a purge asks for, in its own words, before it has a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Path and query at the authority that the request is for; where that is no site's host, at every host of the scope.
    Here(Box<str>),
    /// An absolute URL: `http://` or `https://`, authority, path and query.
    Url(Box<str>),
    /// A tag.
    Tag(Box<[u8]>),
    /// Everything below a path, which begins and ends with `/`; at one host where that is named.
    Prefix {
        /// In lower case, without port.
        host: Option<Box<str>>,
        /// As it was sent.
        path: Box<str>,
    },
    /// Everything at a host.
    Host(Box<str>),
    /// A cache group.
    Group {
        /// Of the origin.
        scheme: Scheme,
        /// Of the origin.
        authority: Box<str>,
        /// The name.
        name: Box<str>,
    },
    /// Everything in the scope.
    All,
    /// Regular expressions, still to be recognised or compiled.
    Pattern(PatternText),
}
