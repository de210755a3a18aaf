//! Which store a response goes to by what it is.
//!
//! In: a rule's entries, in their order, and the head of a response that is to be stored. Out: the store of the first
//! entry of which everything matches; the rule's own where none does. Decided once, when the head is there, because room
//! is reserved then: what is not known by then, such as the length of a body without Content-Length, matches nothing
//! that asks for it. Deliberately absent: look-ups, which may find a response in any of the rule's stores.

use std::ops::RangeInclusive;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use larder_observe::CacheId;
use larder_store::Store;

use crate::settings::RuleSettings;

/// An entry of a rule's `place`.
#[derive(Clone)]
pub struct Place {
    /// Which responses it is for.
    pub what: PlaceMatch,
    /// Where they are kept.
    pub store: Arc<Store>,
    /// That store's number in the metrics.
    pub store_id: CacheId,
}

/// Which responses an entry is for. What is empty matches every one.
#[derive(Clone, Debug, Default)]
pub struct PlaceMatch {
    /// One of these types; a response without Content-Type has none.
    pub types: Vec<TypePattern>,
    /// A body that is announced to be at least so long; 0 is any.
    pub size_bytes_min: u64,
    /// One of these statuses.
    pub statuses: Vec<RangeInclusive<u16>>,
}

impl PlaceMatch {
    /// Whether it is for a response with this head. `announced_bytes` is the length of its body, where that is known.
    pub fn matches(&self, status: StatusCode, fields: &HeaderMap, announced_bytes: Option<u64>) -> bool {
        let has_status = self.statuses.is_empty()
            || self.statuses.iter().any(|statuses| statuses.contains(&status.as_u16()));
        let has_size = self.size_bytes_min == 0 || announced_bytes >= Some(self.size_bytes_min);
        let has_type = || {
            let media_type = fields.get(CONTENT_TYPE).map(|value| media_type(value.as_bytes()));
            media_type.is_some_and(|found| self.types.iter().any(|pattern| pattern.matches(&found)))
        };
        has_status && has_size && (self.types.is_empty() || has_type())
    }
}

/// A pattern for a type and subtype; `*` stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePattern {
    /// What stands between the stars, in lower case. Never empty.
    literals: Box<[Box<[u8]>]>,
}

impl TypePattern {
    /// A pattern as it is written in the config.
    pub fn new(pattern: &str) -> Self {
        let literals = pattern.split('*').map(|literal| literal.to_ascii_lowercase().into_bytes().into());
        Self { literals: literals.collect() }
    }

    /// Whether the whole of `media_type` matches, which is in lower case.
    fn matches(&self, media_type: &[u8]) -> bool {
        let Some((first, rest)) = self.literals.split_first() else {
            return false;
        };
        let Some((last, between)) = rest.split_last() else {
            return media_type == &**first;
        };
        let Some(mut media_type) = media_type.strip_prefix(&**first) else {
            return false;
        };
        // The first place where each literal fits leaves the most for those behind it.
        for literal in between.iter().filter(|literal| !literal.is_empty()) {
            let Some(at) = media_type.windows(literal.len()).position(|window| window == &**literal) else {
                return false;
            };
            media_type = media_type.get(at + literal.len()..).unwrap_or_default();
        }
        media_type.ends_with(last)
    }
}

/// Type and subtype of a Content-Type, in lower case, without parameters and the whitespace before them.
fn media_type(value: &[u8]) -> Vec<u8> {
    let without_parameters = value.split(|byte| *byte == b';').next().unwrap_or_default();
    without_parameters.trim_ascii().to_ascii_lowercase()
}

impl RuleSettings {
    /// The store for a response with this head, and its number in the metrics. `announced_bytes` is the length of its
    /// body, where that is known.
    pub fn place_for(
        &self,
        status: StatusCode,
        fields: &HeaderMap,
        announced_bytes: Option<u64>,
    ) -> (&Arc<Store>, CacheId) {
        let place = self.places.iter().find(|place| place.what.matches(status, fields, announced_bytes));
        place.map_or((&self.store, self.store_id), |place| (&place.store, place.store_id))
    }

    /// Every store that may hold a response for this rule, each once, with its number in the metrics; the rule's own
    /// comes first.
    pub fn stores(&self) -> impl Iterator<Item = (&Arc<Store>, CacheId)> {
        let store_at = |index: usize| match index.checked_sub(1) {
            None => Some((&self.store, self.store_id)),
            Some(index) => self.places.get(index).map(|place| (&place.store, place.store_id)),
        };
        (0..=self.places.len()).filter_map(move |index| {
            let found = store_at(index)?;
            let is_known = (0..index).filter_map(store_at).any(|(other, _)| Arc::ptr_eq(other, found.0));
            (!is_known).then_some(found)
        })
    }
}

#[cfg(test)]
mod tests;
