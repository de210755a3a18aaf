//! Which page of a listing is asked for: of which stores, from where, and what its URLs begin with.

use std::sync::Arc;
use std::time::Duration;

use larder_http::message::Scheme;
use larder_store::Store;

/// How long one page of a listing is worked on; what is found until then is the page.
pub(super) const PAGE_TIME: Duration = Duration::from_millis(250);

/// The stores that are looked into, by name.
pub type Stores = Vec<(String, Arc<Store>)>;

/// Which page of a listing.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// What URLs begin with: `http://host/path`, `host/path`, or a host alone; empty for all. A `*` may follow.
    pub prefix: String,
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// The most that a page has.
    pub limit: usize,
    /// Whether what larders share through Redis is listed behind what lies here.
    pub remote: bool,
    /// Names that Redis may look at for a page of that; no more than a page may take at all.
    pub names: Option<u64>,
}

/// What URLs begin with. A host alone is meant as a whole; with `*` behind it, it is what hosts begin with.
pub(super) struct Prefix {
    pub(super) scheme: Option<Scheme>,
    base: Vec<u8>,
    is_host: bool,
}

impl Prefix {
    pub(super) fn parse(text: &str) -> Self {
        let schemes = [("http://", Scheme::Http), ("https://", Scheme::Https)];
        let named = schemes.into_iter().find_map(|(name, scheme)| {
            let (front, rest) = text.split_at_checked(name.len())?;
            front.eq_ignore_ascii_case(name).then_some((scheme, rest))
        });
        let (scheme, rest) = named.map_or((None, text), |(scheme, rest)| (Some(scheme), rest));
        let (rest, is_open) = rest.strip_suffix('*').map_or((rest, false), |rest| (rest, true));
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let base = [host.to_ascii_lowercase().as_bytes(), path.as_bytes()].concat();
        Self { scheme, is_host: path.is_empty() && !host.is_empty() && !is_open, base }
    }

    pub(super) fn is_of(&self, base: &[u8]) -> bool {
        let rest = base.strip_prefix(&self.base[..]);
        rest.is_some_and(|rest| !self.is_host || matches!(rest.first(), Some(b'/' | b':')))
    }
}
