//! Responses that larders share through Redis, in a listing: by choice, behind what lies here.
//!
//! In: where a page ended. Out: a page of what lies in the Redis of one store, marked `remote`, with how many names were looked at. Redis has to walk
//! through all names that it has, whatever the listing wants, so each page is bounded in names as well as in time.

use larder_store::listing::{NoSharedPage, SharedBounds};

use super::at_rest::of_scheme;
use super::error::ObjectsError;
use super::prefix::{Listing, PAGE_TIME, Prefix, Stores};
use super::told::{self, Objects};

use crate::proxy::Proxy;

/// Names that Redis looks at for a page.
const NAMES_PER_PAGE: u64 = 20_000;
/// What stands before a place of this kind in a cursor. No tier has such a letter.
const MARK: char = '@';

/// Where such a page is to begin: the number of a store, and a place there. `None`: it is another kind of page.
pub(super) fn place<'a>(stores: &Stores, cursor: Option<&'a str>) -> Option<(usize, &'a str)> {
    let (name, place) = cursor?.rsplit_once(':')?;
    let place = place.strip_prefix(MARK)?;
    Some((stores.iter().position(|(other, _)| other == name)?, place))
}

/// The cursor of the first store from this number on that shares.
pub(super) fn beginning(stores: &Stores, from: usize) -> Option<String> {
    let (name, _) = stores.iter().skip(from).find(|(_, store)| store.asks_for_records())?;
    Some(format!("{name}:{MARK}"))
}

/// A page, from a place of the store of this number on.
pub(super) async fn page(
    proxy: &Proxy,
    stores: &Stores,
    (index, from): (usize, &str),
    asked: &Listing,
) -> Result<Objects, ObjectsError> {
    let no_cursor = || ObjectsError::Cursor(asked.cursor.clone().unwrap_or_default());
    let (name, store) = stores.get(index).ok_or_else(no_cursor)?;
    let prefix = Prefix::parse(&asked.prefix);
    let names = asked.names.map_or(NAMES_PER_PAGE, |names| names.clamp(1, NAMES_PER_PAGE));
    let bounds = SharedBounds { responses: asked.limit.max(1), names, time: PAGE_TIME };
    let wanted = |base: &[u8]| prefix.is_of(base);
    let from = Some(from).filter(|from| !from.is_empty());
    let found = store.list_shared(from, bounds, &wanted).await.ok_or_else(no_cursor)?;
    let found = found.map_err(|why| match why {
        NoSharedPage::Cursor => no_cursor(),
        why => ObjectsError::Remote { store: name.clone(), why },
    })?;
    let now = proxy.clock.now();
    let entries = found.entries.into_iter().filter_map(|entry| match prefix.scheme {
        Some(scheme) => of_scheme(entry, scheme),
        None => Some(entry),
    });
    Ok(Objects {
        objects: entries.map(|entry| told::listed(proxy, name, &entry, now)).collect(),
        unreadable: found.unreadable,
        next: match found.next {
            Some(next) => Some(format!("{name}:{MARK}{next}")),
            None => beginning(stores, index + 1),
        },
        looked_at: found.looked_at,
        names: Some(found.names),
    })
}
