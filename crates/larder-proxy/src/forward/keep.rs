//! Into the index: a whole response in place of what its request selected before, a part beside or together with the parts
//! that are there.
//!
//! In: a head and a body that has come to its end. Out: what the index has for the request from now on, unless an
//! invalidation came meanwhile. Parts join where a strong validator says that they are of one representation (RFC 9111
//! 3.4); parts that together are everything become the whole.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use larder_cache::completion::{different_states, keep_names, same_representation, whole_fields};
use larder_cache::part::Part;
use larder_cache::{StoredHead, Verdict};
use larder_http::fields::content_range::ContentRange;
use larder_observe::RuleId;
use larder_store::{CacheKey, Reservation, Store, StoredBody, StoredResponse};

use crate::collapse::FlightGuard;
use crate::not_stored::NotStored;
use crate::settings::RuleSettings;
use crate::worker::Worker;

/// Where a response that a flight brought is kept.
pub(super) struct Keeper<'a> {
    pub(super) worker: &'a Worker,
    pub(super) settings: &'a RuleSettings,
    pub(super) guard: &'a FlightGuard,
    /// The store that this response is for.
    pub(super) store: &'a Arc<Store>,
    /// By what it is counted.
    pub(super) rule_id: RuleId,
}

/// What is put into the index: head, body, and the room for the head.
type Entry = (Arc<StoredHead>, Arc<StoredBody>, Reservation);

impl Keeper<'_> {
    /// Keeps a response whose body is whole.
    pub(super) fn keep(
        &self,
        head: Arc<StoredHead>,
        body: Arc<StoredBody>,
        room: Reservation,
    ) -> Result<(), NotStored> {
        let kept = match &head.part {
            None => self.keep_whole(head, body, room),
            Some(part) if body.length() > part.range.end - part.range.start => Err(NotStored::Incomplete),
            Some(_) => self.keep_part((head, body, room)),
        };
        match kept {
            Ok(()) => self.worker.metrics.stored(self.rule_id),
            Err(reason) => self.worker.metrics.not_stored(self.rule_id, &reason),
        }
        kept
    }

    fn is_selected(&self, response: &StoredResponse) -> bool {
        response.head.vary.selects(&self.guard.request().fields)
    }

    /// Whether `newer` takes the place of what is stored.
    fn is_replaced(&self, response: &StoredResponse, newer: &StoredHead) -> bool {
        newer.vary.replaces(&response.head.vary, &self.guard.request().fields)
    }

    fn keep_whole(
        &self,
        head: Arc<StoredHead>,
        body: Arc<StoredBody>,
        room: Reservation,
    ) -> Result<(), NotStored> {
        let whole = Arc::clone(&head);
        self.insert(self.guard.key(), (head, body, room), |_| true)?;
        // Parts of what is there whole are of no more use.
        for (store, _) in self.settings.stores() {
            store.discard(&self.guard.key().of_parts(), |part| self.is_replaced(part, &whole));
        }
        Ok(())
    }

    fn keep_part(&self, part: Entry) -> Result<(), NotStored> {
        if !self.guard.is_valid() {
            return Err(NotStored::Invalidated);
        }
        let key = self.guard.key().of_parts();
        let (received, invalidations) =
            (part.0.freshness.received.monotonic, &self.worker.proxy.invalidations);
        let since = invalidations.forgotten();
        let (there, _) = self.store.responses(&key, received);
        let is_good =
            |other: &StoredResponse| invalidations.verdict(&key, other, since) == Some(Verdict::Good);
        let mut joined = part;
        for other in there.iter().filter(|other| self.is_selected(other) && is_good(other)) {
            if let Some(both) = self.join(&joined, other) {
                joined = both;
            }
        }
        if let Some((head, body, room)) = self.whole_of(&joined) {
            return self.keep_whole(head, body, room);
        }
        let head = Arc::clone(&joined.0);
        // What is surely of something else goes, and what is contained in what is kept now.
        self.insert(&key, joined, |other| {
            different_states(&other.head, &head) || contains(head.part.as_ref(), other.head.part.as_ref())
        })?;
        self.end_different(&head);
        Ok(())
    }

    /// A whole response of another representation is outdated by what is known now.
    fn end_different(&self, head: &StoredHead) {
        let received = head.freshness.received.monotonic;
        for (store, _) in self.settings.stores() {
            store.discard(self.guard.key(), |whole| {
                self.is_selected(whole)
                    && different_states(&whole.head, head)
                    && whole.head.freshness.received.monotonic <= received
            });
        }
    }

    /// Keeps what disks kept up with of a response: a part, with a gap for each time that they did not. `body` has these runs of
    /// it, one behind the other. Gives back what is in the index then.
    pub(super) fn keep_runs(
        &self,
        head: &StoredHead,
        body: &Arc<StoredBody>,
        (runs, complete): (&[Range<u64>], u64),
    ) -> Option<Arc<StoredResponse>> {
        let part = Part::of_runs(runs, complete)?;
        let mut fields = head.all_fields();
        let said = ContentRange::Bytes { range: part.range, complete: part.complete };
        fields.insert(http::header::CONTENT_RANGE, said.format());
        // It was judged as the whole, which the request asked for; a part lives as long.
        let (request, policy) = (self.guard.request(), &self.settings.policy);
        let freshness = head.freshness;
        let head = StoredHead::new(request, StatusCode::PARTIAL_CONTENT, fields, freshness, policy);
        let head = Arc::new(head.with_holes(part.holes));
        let key = self.guard.key().of_parts();
        let room = self.store.reserve(StoredResponse::overhead_bytes(&head, &key))?;
        let outdates = |other: &StoredResponse| {
            different_states(&other.head, &head) || contains(head.part.as_ref(), other.head.part.as_ref())
        };
        let kept = self.insert(&key, (Arc::clone(&head), Arc::clone(body), room), outdates).ok()?;
        self.end_different(&head);
        Some(kept)
    }

    /// What a part is that lacks nothing: the whole.
    fn whole_of(&self, (head, body, _): &Entry) -> Option<Entry> {
        let part = head.part.as_ref()?;
        let is_whole = part.complete.is_some_and(|complete| part.range == (0..complete));
        if !is_whole || !part.is_sound(body.length()) {
            return None;
        }
        let fields = head.all_fields();
        let (head, room) = self.as_kept(StatusCode::OK, whole_fields(&fields, &fields), head)?;
        Some((head, Arc::clone(body), room))
    }

    /// A new head in place of `before`, judged anew by its fields, with room for it. `None` where it may not be kept.
    fn as_kept(
        &self,
        status: StatusCode,
        fields: HeaderMap,
        before: &StoredHead,
    ) -> Option<(Arc<StoredHead>, Reservation)> {
        let (request, policy) = (self.guard.request(), &self.settings.policy);
        let freshness = larder_cache::rejudge(request, status, &fields, &before.freshness, policy)?;
        let head = StoredHead::new(request, status, fields, freshness, policy);
        let relieved = before.relieved.clone().and(&head.relieved);
        let head = StoredHead { relieved, ..head };
        let overhead = StoredResponse::overhead_bytes(&head, &self.guard.place_of(&head));
        let room = self.store.reserve(overhead)?;
        Some((Arc::new(head), room))
    }

    /// One part of two that touch, under the newer one's fields.
    fn join(&self, newer: &Entry, other: &StoredResponse) -> Option<Entry> {
        let (head, body, _) = newer;
        let (part, other_part) = (head.part.as_ref()?, other.head.part.as_ref()?);
        let sound = part.is_sound(body.length()) && other_part.is_sound(other.body.length());
        if !sound || !same_representation(head, &other.head) {
            return None;
        }
        let union = part.joins(other_part)?;
        let bytes =
            |range: std::ops::Range<u64>, of: &Part| range.start - of.range.start..range.end - of.range.start;
        // The newer one whole; of the other what lies before and behind it.
        let before = other_part.range.start..part.range.start.max(other_part.range.start);
        let behind = part.range.end.min(other_part.range.end)..other_part.range.end;
        let pieces = [
            (&*other.body, bytes(before, other_part)),
            (&**body, 0..body.length()),
            (&*other.body, bytes(behind, other_part)),
        ];
        let body = self.store.join(&pieces)?;
        // What only the older one said stays said (RFC 9111 3.4).
        let mut fields = whole_fields(&other.head.all_fields(), &head.all_fields());
        keep_names(&other.head, &mut fields);
        let said = ContentRange::Bytes { range: union.range, complete: union.complete };
        fields.insert(http::header::CONTENT_RANGE, said.format());
        let (head, room) = self.as_kept(StatusCode::PARTIAL_CONTENT, fields, head)?;
        Some((head, Arc::new(body), room))
    }

    /// Puts a response into the index in place of those that its request selected before and that `outdates` names.
    fn insert(
        &self,
        key: &CacheKey,
        (head, body, room): Entry,
        outdates: impl Fn(&StoredResponse) -> bool,
    ) -> Result<Arc<StoredResponse>, NotStored> {
        let guard = self.guard;
        let response = StoredResponse {
            took: self.worker.proxy.clock.now().since(&guard.begun()),
            ..StoredResponse::new(head, body, guard.number(), room)
        };
        // What was fetched after something was invalidated is newer, whenever this one came.
        let is_overtaken = Cell::new(false);
        let response = Arc::new(response);
        let replaces = |old: &StoredResponse| {
            let goes = self.is_replaced(old, &response.head) && outdates(old);
            if goes && guard.outdated().is_some_and(|number| old.number >= number) {
                is_overtaken.set(true);
            }
            goes
        };
        let valid = || guard.is_valid() && !is_overtaken.get();
        match self.store.insert(key, Arc::clone(&response), replaces, valid) {
            true => {
                // What the rule's other stores have in its place went there before it was what it is now; unless it was
                // received later, as within one store.
                let received = response.head.freshness.received.monotonic;
                let is_later =
                    |old: &StoredResponse| replaces(old) && old.head.freshness.received.monotonic > received;
                let others = || {
                    let stores = self.settings.stores().map(|(store, _)| store);
                    stores.filter(|other| !Arc::ptr_eq(other, self.store))
                };
                // Looked at after it went in: whoever puts a later one in at this moment discards it.
                if others().any(|other| other.responses(key, received).0.iter().any(|old| is_later(old))) {
                    self.store.remove(key, &response);
                    return Err(NotStored::Superseded);
                }
                for other in others() {
                    other.discard(key, |old| replaces(old) && !is_later(old));
                    other.forget(key, &response);
                }
                Ok(response)
            }
            false if guard.is_valid() => Err(NotStored::Superseded),
            false => Err(NotStored::Invalidated),
        }
    }
}

fn contains(outer: Option<&Part>, inner: Option<&Part>) -> bool {
    outer.zip(inner).is_some_and(|(outer, inner)| outer.contains(inner))
}
