//! A target URI, in the parts that a cache key has.
//!
//! In: a request or a key. Out: scheme, authority, path and query, each as it came.

use std::fmt;

use larder_http::message::{RequestHead, Scheme};

use crate::key::CacheKey;

/// A target URI in the parts that a cache key has, each as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetUri<'a> {
    /// How the request came in.
    pub scheme: Scheme,
    /// Canonical: lower case, without the scheme's default port.
    pub authority: &'a str,
    /// The raw path, which begins with `/`.
    pub path: &'a str,
    /// The raw query, where there is one.
    pub query: Option<&'a str>,
}

impl<'a> TargetUri<'a> {
    /// That of a request.
    pub fn of(request: &'a RequestHead) -> Self {
        Self {
            scheme: request.scheme,
            authority: request.authority.as_str(),
            path: request.target.path(),
            query: request.target.query(),
        }
    }

    /// That of a key; `None` for one that no request has.
    pub fn of_key(key: &'a CacheKey) -> Option<Self> {
        let scheme = match key.first_part()? {
            b"http" => Scheme::Http,
            b"https" => Scheme::Https,
            _ => return None,
        };
        Self::of_base(key, scheme)
    }

    /// That of a base, whatever scheme its key has.
    pub fn of_base(key: &'a CacheKey, scheme: Scheme) -> Option<Self> {
        let base = std::str::from_utf8(key.base()).ok()?;
        let (authority, target) = base.split_at(base.find('/')?);
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        Some(Self { scheme, authority, path, query })
    }

    /// Reads what `Display` writes.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = [Scheme::Http, Scheme::Https].into_iter().find(|known| known.as_str() == scheme)?;
        let (authority, target) = rest.split_at(rest.find('/')?);
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        Some(Self { scheme, authority, path, query })
    }
}

impl fmt::Display for TargetUri<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.as_str(), self.authority, self.path)?;
        self.query.map_or(Ok(()), |query| write!(f, "?{query}"))
    }
}
