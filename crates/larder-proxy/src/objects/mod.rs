//! What is stored, for people and their scripts: `larder ls`, `get`, `export` and purges.
//!
//! In: a prefix, or a URL as a person types it. Out: stored responses as values that the admin address sends as JSON, a body
//! as it is stored, or the page that is put together from a stored template. Looking counts as no use and promotes nothing. Heads on
//! disks are read on a thread that may wait.
//! Deliberately absent: who may purge ([`crate::purges`]), and any layout of text.

mod answered;
mod assembled;
mod at_rest;
mod error;
mod files;
mod prefix;
mod purge;
mod remote_page;
pub(crate) mod sharing;
mod sweep;
mod told;
mod url;

use std::sync::Arc;
use std::time::Instant;

use larder_http::body::Body;
use larder_http::time::Now;
use larder_store::CacheKey;
use larder_store::listing::{Cursor, ListedResponse};

use crate::proxy::Proxy;
use crate::settings::RuleSettings;
use crate::worker::Worker;
pub use assembled::StoredPage;
use at_rest::{blocking, of_scheme};
pub use error::ObjectsError;
pub(crate) use files::{StoredFile, StoredTree};
pub use prefix::{Listing, Stores};
use prefix::{PAGE_TIME, Prefix};
pub use told::{AssembledPage, Object, Objects, PageLeftOut, Purged, StoredObject, Varying};
use url::Url;

impl Worker {
    /// A page of what is stored in `stores`.
    ///
    /// # Errors
    /// The cursor is none, or the server of what larders share has no answer.
    ///
    /// # Cancel safety
    /// Dropped, at most one page is looked at for nobody.
    pub async fn objects(&self, stores: Stores, asked: Listing) -> Result<Objects, ObjectsError> {
        let proxy = Arc::clone(&self.proxy);
        if let Some((index, from)) = remote_page::place(&stores, asked.cursor.as_deref()) {
            return remote_page::page(&proxy, &stores, (index, from), &asked).await;
        }
        let first_shared = remote_page::beginning(&stores, 0).filter(|_| asked.remote);
        let mut page = blocking(move || page(&proxy, &stores, &asked)).await??;
        page.next = page.next.or(first_shared);
        Ok(page)
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

    /// The rule of a GET without fields.
    fn rule_of(&self, url: &Url) -> Option<Arc<RuleSettings>> {
        let plan = Arc::clone(&self.worker_plan.load().plan);
        let (_, site) = plan.router.site(url.authority.host())?;
        site.settings_for(&url.request()).ok().cloned()
    }

    /// What is stored under a URL: in which store, what, and in words.
    async fn under(
        &self,
        stores: Stores,
        url: &str,
    ) -> Result<(Stores, Vec<(usize, ListedResponse, StoredObject)>), ObjectsError> {
        let parsed = Url::parse(url)?;
        let forms = self.forms(&parsed.authority, &parsed.target);
        let (proxy, rule) = (Arc::clone(&self.proxy), self.rule_of(&parsed));
        let (stores, mut found) = blocking(move || {
            let now = proxy.clock.now();
            let mut found = Vec::new();
            for form in &forms {
                let key = CacheKey::new(parsed.authority.as_str(), form.as_str());
                for (index, (name, store)) in stores.iter().enumerate() {
                    let entries = store.under(&key, now).into_iter();
                    let entries = entries.filter_map(|entry| of_scheme(entry, parsed.scheme));
                    found.extend(entries.map(|entry| {
                        let mut told = told::whole(&proxy, name, &entry, now);
                        if let Some(rule) = rule.as_ref().filter(|_| told.by_hand) {
                            let language = at_rest::language_of(&entry, &rule.policy);
                            told.language = language.map(|language| language.as_str().to_owned());
                        }
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
