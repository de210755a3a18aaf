//! What is stored, for people and their scripts: `larder ls`, `get` and purges.
//!
//! In: a prefix, or a URL as a person types it. Out: stored responses as values that the admin address sends as JSON, or a body
//! as it is stored. Looking counts as no use and promotes nothing. Heads on disks are read on a thread that may wait.
//! Deliberately absent: who may purge ([`crate::purges`]), and any layout of text.

mod answered;
mod files;
mod purge;
mod sweep;
mod told;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use larder_http::authority::Authority;
use larder_http::body::Body;
use larder_http::message::Scheme;
use larder_http::target::{Target, absolute_form};
use larder_http::time::Now;
use larder_store::listing::{Cursor, ListedResponse};
use larder_store::{CacheKey, Store};

use crate::proxy::Proxy;
use crate::worker::Worker;
pub(crate) use files::{StoredFile, StoredTree};
pub use told::{Object, Objects, Purged, StoredObject, Varying};

/// How long one page of a listing is worked on; what is found until then is the page.
const PAGE_TIME: Duration = Duration::from_millis(250);

/// The stores that are looked into, by name.
pub type Stores = Vec<(String, Arc<Store>)>;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// Not an absolute `http://` or `https://` URL.
    #[error("{0:?} is not an absolute URL such as http://example.com/path")]
    Url(String),
    /// No store has this name.
    #[error("there is no store {0:?}")]
    Store(String),
    /// Not what a page before ended with.
    #[error("{0:?} is not where a page ended")]
    Cursor(String),
    /// Nothing is stored there.
    #[error("nothing is stored under {0}")]
    NotStored(String),
    /// Fewer responses are stored there.
    #[error("{} stored under {url}, so there is no number {number}", responses(*stored as u64))]
    NoSuchResponse {
        /// The URL.
        url: String,
        /// How many lie there.
        stored: usize,
        /// Which was asked for, counted from 1.
        number: usize,
    },
    /// It went while it was read, or is damaged.
    #[error("what is stored under {0} cannot be read any more")]
    Unreadable(String),
    /// The thread that looked is lost.
    #[error("the look was lost")]
    Lost,
}

/// So many responses, with the verb that goes with them.
fn responses(count: u64) -> String {
    match count {
        1 => "1 response is".to_owned(),
        count => format!("{count} responses are"),
    }
}

impl ObjectsError {
    /// The fixed word.
    pub const fn token(&self) -> &'static str {
        match self {
            Self::Url(_) => "url",
            Self::Store(_) => "no-such-store",
            Self::Cursor(_) => "cursor",
            Self::NotStored(_) | Self::NoSuchResponse { .. } => "not-stored",
            Self::Unreadable(_) => "unreadable",
            Self::Lost => "broken",
        }
    }
}

/// Which page of a listing.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// What URLs begin with: `http://host/path`, `host/path`, or a host alone; empty for all. A `*` may follow.
    pub prefix: String,
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// The most that a page has.
    pub limit: usize,
}

/// A URL, taken apart as a listener would.
struct Url {
    scheme: Scheme,
    authority: Authority,
    target: Target,
}

impl Url {
    fn parse(text: &str) -> Result<Self, ObjectsError> {
        let wrong = || ObjectsError::Url(text.to_owned());
        let without_fragment = text.split('#').next().unwrap_or_default();
        let raw = Bytes::copy_from_slice(without_fragment.as_bytes());
        let (scheme, authority, target) = absolute_form(&raw).map_err(|_| wrong())?;
        Ok(Self {
            scheme,
            authority: Authority::parse(authority, scheme).map_err(|_| wrong())?,
            target: Target::parse(target).map_err(|_| wrong())?,
        })
    }
}

/// What URLs begin with. A host alone is meant as a whole; with `*` behind it, it is what hosts begin with.
struct Prefix {
    scheme: Option<Scheme>,
    base: Vec<u8>,
    is_host: bool,
}

impl Prefix {
    fn parse(text: &str) -> Self {
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

    fn is_of(&self, base: &[u8]) -> bool {
        let rest = base.strip_prefix(&self.base[..]);
        rest.is_some_and(|rest| !self.is_host || matches!(rest.first(), Some(b'/' | b':')))
    }
}

impl Worker {
    /// A page of what is stored in `stores`.
    ///
    /// # Errors
    /// The cursor is none.
    ///
    /// # Cancel safety
    /// Dropped, at most one page is looked at for nobody.
    pub async fn objects(&self, stores: Stores, asked: Listing) -> Result<Objects, ObjectsError> {
        let proxy = Arc::clone(&self.proxy);
        blocking(move || page(&proxy, &stores, &asked)).await?
    }

    /// Everything that is stored under a URL, in every form in which its site may key it: whole responses first, newest first.
    ///
    /// # Errors
    /// It is no URL, or nothing is stored there.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn object(&self, stores: Stores, url: &str) -> Result<Object, ObjectsError> {
        let (_, responses) = self.under(stores, url).await?;
        let responses = responses.into_iter().map(|(_, _, told)| told).collect();
        Ok(Object { url: url.to_owned(), responses })
    }

    /// The body of the response of this `number`, counted from 1, among those that [`Self::object`] tells of: as it is stored.
    ///
    /// # Errors
    /// As for [`Self::object`]; or that body cannot be read.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn body(&self, stores: Stores, url: &str, number: usize) -> Result<Body, ObjectsError> {
        let (stores, responses) = self.under(stores, url).await?;
        let stored = responses.len();
        let nth = number.checked_sub(1).and_then(|index| responses.into_iter().nth(index));
        let (store, entry, _) =
            nth.ok_or_else(|| ObjectsError::NoSuchResponse { url: url.to_owned(), stored, number })?;
        let body = match stores.get(store) {
            Some((_, store)) => store.body_of(&entry).await,
            None => None,
        };
        body.ok_or_else(|| ObjectsError::Unreadable(url.to_owned()))
    }

    /// What is stored under a URL: in which store, what, and in words.
    async fn under(
        &self,
        stores: Stores,
        url: &str,
    ) -> Result<(Stores, Vec<(usize, ListedResponse, StoredObject)>), ObjectsError> {
        let parsed = Url::parse(url)?;
        let forms = self.forms(&parsed.authority, &parsed.target);
        let proxy = Arc::clone(&self.proxy);
        let (stores, mut found) = blocking(move || {
            let now = proxy.clock.now();
            let mut found = Vec::new();
            for form in &forms {
                let key = CacheKey::new(parsed.authority.as_str(), form.as_str());
                for (index, (name, store)) in stores.iter().enumerate() {
                    let entries = store.under(&key, now).into_iter();
                    let entries = entries.filter_map(|entry| of_scheme(entry, parsed.scheme));
                    found.extend(entries.map(|entry| {
                        let told = told::whole(&proxy, name, &entry, now);
                        (index, entry, told)
                    }));
                }
            }
            (stores, found)
        })
        .await?;
        found.sort_by_key(|(_, entry, told)| {
            let received = entry.head.freshness.received.wall;
            (told.invalidated, told.part.is_some(), std::cmp::Reverse(received))
        });
        match found.is_empty() {
            true => Err(ObjectsError::NotStored(url.to_owned())),
            false => Ok((stores, found)),
        }
    }
}

/// Runs what may wait for a disk.
async fn blocking<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Result<T, ObjectsError> {
    tokio::task::spawn_blocking(look).await.map_err(|_| ObjectsError::Lost)
}

fn page(proxy: &Proxy, stores: &Stores, asked: &Listing) -> Result<Objects, ObjectsError> {
    let (mut index, mut from) = match &asked.cursor {
        Some(cursor) => place(stores, cursor).ok_or_else(|| ObjectsError::Cursor(cursor.clone()))?,
        None => (0, None),
    };
    let (now, started): (Now, _) = (proxy.clock.now(), Instant::now());
    let prefix = Prefix::parse(&asked.prefix);
    let mut page = Objects::default();
    while let Some((name, store)) = stores.get(index) {
        let most = asked.limit.saturating_sub(page.objects.len());
        if most == 0 || started.elapsed() >= PAGE_TIME {
            page.next =
                Some(format!("{name}:{}", from.map_or_else(String::new, |from: Cursor| from.to_string())));
            break;
        }
        let found = store.list(from, most, now, &|base| prefix.is_of(base));
        let found = found.map_err(|_| ObjectsError::Cursor(asked.cursor.clone().unwrap_or_default()))?;
        page.unreadable += found.unreadable;
        let entries = found.entries.into_iter().filter_map(|entry| match prefix.scheme {
            Some(scheme) => of_scheme(entry, scheme),
            None => Some(entry),
        });
        page.objects.extend(entries.map(|entry| told::listed(proxy, name, &entry, now)));
        from = found.next;
        index += usize::from(from.is_none());
    }
    Ok(page)
}

/// An entry as what is asked for by `scheme`, where it answers that: a file by hand answers both.
fn of_scheme(mut entry: ListedResponse, scheme: Scheme) -> Option<ListedResponse> {
    if entry.file.as_ref().is_some_and(|file| file.is_by_hand) {
        entry.scheme = scheme;
    }
    Some(entry).filter(|entry| entry.scheme == scheme)
}

/// Where a page ended: a store's name and a place in it.
fn place(stores: &Stores, cursor: &str) -> Option<(usize, Option<Cursor>)> {
    let (name, place) = cursor.rsplit_once(':')?;
    let index = stores.iter().position(|(other, _)| other == name)?;
    match place {
        "" => Some((index, None)),
        place => Some((index, Some(place.parse().ok()?))),
    }
}

#[cfg(test)]
mod absences;
#[cfg(test)]
mod restarts;
#[cfg(test)]
mod sweeping;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unfinished;
