//! Where things lie: which stores were looked through, where in them a response lies, and where one would go.
//!
//! In: the rule's stores and what was found in them. Out: names, directories, and reasons. A reason and its sentence are the
//! store's own; nothing is decided here.

use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use larder_cache::StoredHead;
use larder_observe::CacheId;
use larder_store::{CacheKey, HeldBack, Store};

use super::explanation::{Destination, LookedThrough, Reason};
use super::reason::CONFIGURATION;
use super::walk::Walk;
use crate::settings::StoreFrom;

/// In place of a directory.
const MEMORY: &str = "memory";

impl Walk<'_> {
    /// The rule's stores, in the order in which they are looked through.
    pub(super) fn looked_through(&self) -> Vec<LookedThrough> {
        let told = |(store, id): (&Arc<Store>, CacheId)| LookedThrough {
            store: self.store_name(id),
            places: self.places_of(store),
        };
        self.settings.stores().map(told).collect()
    }

    pub(super) fn store_name(&self, id: CacheId) -> String {
        self.worker.proxy.store_name(id).to_string()
    }

    fn places_of(&self, store: &Store) -> Vec<String> {
        match self.running {
            true => std::iter::once(MEMORY.to_owned())
                .chain(store.directories().iter().map(|directory| path(directory)))
                .chain(store.servers().iter().map(|server| super::visible(server.as_bytes())))
                .collect(),
            false => Vec::new(),
        }
    }

    /// Where a response lies that was found under `key` in the memory of `store`, and why only there.
    pub(super) fn lies_in(
        &self,
        store: &Store,
        key: &CacheKey,
        response: &larder_store::StoredResponse,
    ) -> (Vec<String>, Option<Reason>) {
        // A large body stays on its disks, whoever knows of it.
        let memory = response.body.is_in_memory().then(|| MEMORY.to_owned());
        let disks = store.disks_of(key, response);
        let disks = disks.iter().map(|disk| path(disk));
        // What it is a copy of may be there still.
        let server = response.is_copy.then(|| store.server_of(key, self.head())).flatten();
        let server = server.map(|server| super::visible(server.as_bytes()));
        let places = memory.into_iter().chain(disks).chain(server).collect();
        (places, store.holds_back(key, response).map(held_back))
    }

    /// Where a response with this head would go, of which the origin sent these fields and announced so many bytes.
    pub(super) fn destination(
        &self,
        (status, fields, announced_bytes): (StatusCode, &HeaderMap, Option<u64>),
        head: &StoredHead,
    ) -> (&Arc<Store>, Destination) {
        let entry = self.settings.place_entry(status, fields, announced_bytes);
        let place = entry.and_then(|entry| self.settings.places.get(entry));
        let (store, id) = match place {
            Some(place) => (&place.store, place.store_id),
            None => (&self.settings.store, self.settings.store_id),
        };
        let reason = match place {
            Some(_) => Reason::new("place", "An entry of place takes it by what it is.", CONFIGURATION),
            None => self.says_who(),
        };
        let holds_back = self.running.then(|| store.would_hold_back(&self.place_of(head), head)).flatten();
        let told = Destination {
            store: self.store_name(id),
            places: self.places_of(store),
            reason,
            entry: entry.map(|entry| entry + 1),
            conditions: place.map(|place| place.what.told()).unwrap_or_default(),
            held_back: holds_back.map(held_back),
        };
        (store, told)
    }

    /// The key that a response with this head would lie under: parts have one of their own.
    pub(super) fn place_of(&self, head: &StoredHead) -> CacheKey {
        match head.part {
            Some(_) => self.key().of_parts(),
            None => self.key(),
        }
    }

    fn says_who(&self) -> Reason {
        let (token, sentence) = match self.settings.store_from {
            StoreFrom::Rule => ("rule", "The rule names it."),
            StoreFrom::Site => ("site", "The site names it."),
            StoreFrom::Defaults => ("defaults", "[defaults] names it."),
            StoreFrom::BuiltIn => ("built-in", "No setting names a store, so it is the one called default."),
        };
        Reason::new(token, sentence, CONFIGURATION)
    }
}

fn path(path: &Path) -> String {
    super::visible(path.to_string_lossy().as_bytes())
}

/// What keeps a response from lying on a disk or in a file.
fn held_back(why: HeldBack) -> Reason {
    Reason::new(why.token, why.sentence, CONFIGURATION)
}

#[cfg(test)]
mod tests;
