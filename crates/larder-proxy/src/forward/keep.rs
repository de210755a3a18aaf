//! Into the index: a whole response in place of what its request selected before, a part beside or together with the parts
//! that are there.
//!
//! In: a head and a body that has come to its end. Out: what the index has for the request from now on, unless an
//! invalidation came meanwhile. Parts join where a strong validator says that they are of one representation (RFC 9111
//! 3.4); parts that together are everything become the whole.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use larder_cache::StoredHead;
use larder_cache::part::{Part, same_representation, whole_fields};
use larder_http::fields::content_range::ContentRange;
use larder_store::{CacheKey, Reservation, StoredBody, StoredResponse};

use crate::collapse::FlightGuard;
use crate::exchange::{NotStored, NotStoredLabel};
use crate::proxy::Worker;
use crate::settings::RuleSettings;

/// Keeps a response whose body is whole.
pub(super) fn keep(
    worker: &Worker,
    settings: &RuleSettings,
    guard: &FlightGuard,
    head: Arc<StoredHead>,
    body: Arc<StoredBody>,
    room: Reservation,
) {
    let kept = match &head.part {
        None => keep_whole(settings, guard, head, body, room),
        Some(part) if body.length() > part.range.end - part.range.start => Err(NotStored::Incomplete),
        Some(_) => keep_part(worker, settings, guard, (head, body, room)),
    };
    match kept {
        Ok(()) => worker.metrics.stored(settings.store_id),
        Err(reason) => worker.metrics.not_stored(&NotStoredLabel(reason)),
    }
}

fn keep_whole(
    settings: &RuleSettings,
    guard: &FlightGuard,
    head: Arc<StoredHead>,
    body: Arc<StoredBody>,
    room: Reservation,
) -> Result<(), NotStored> {
    insert(settings, guard, guard.key(), (head, body, room), |_| true)?;
    // Parts of what is there whole are of no more use.
    let is_selected = |part: &StoredResponse| part.head.vary.selects(&guard.request().fields);
    settings.store.discard(&guard.key().of_parts(), is_selected);
    Ok(())
}

fn keep_part(
    worker: &Worker,
    settings: &RuleSettings,
    guard: &FlightGuard,
    part: Entry,
) -> Result<(), NotStored> {
    if !guard.is_valid() {
        return Err(NotStored::Invalidated);
    }
    let key = guard.key().of_parts();
    let (received, groups) = (part.0.freshness.received.monotonic, worker.proxy.numbering.groups());
    let is_selected = |other: &StoredResponse| other.head.vary.selects(&guard.request().fields);
    let (there, _) = settings.store.responses(&key, received);
    let mut joined = part;
    for other in
        there.iter().filter(|other| is_selected(other) && groups.hold(&other.head.groups, other.number))
    {
        if let Some(both) = join(settings, guard, &joined, other) {
            joined = both;
        }
    }
    if let Some((head, body, room)) = whole_of(settings, guard, &joined) {
        return keep_whole(settings, guard, head, body, room);
    }
    let head = Arc::clone(&joined.0);
    // What is surely of something else goes, and what is contained in what is kept now.
    insert(settings, guard, &key, joined, |other| {
        are_different(&other.head, &head) || contains(head.part.as_ref(), other.head.part.as_ref())
    })?;
    // A whole response of another representation is outdated by what is known now.
    settings.store.discard(guard.key(), |whole| {
        is_selected(whole)
            && are_different(&whole.head, &head)
            && whole.head.freshness.received.monotonic <= received
    });
    Ok(())
}

/// Whether two strong tags say that they are not of one representation. Without such tags nobody knows, and each part
/// lives as long as it is fresh.
fn are_different(a: &StoredHead, b: &StoredHead) -> bool {
    same_representation(a, a) && same_representation(b, b) && !same_representation(a, b)
}

fn contains(outer: Option<&Part>, inner: Option<&Part>) -> bool {
    match (outer, inner) {
        (Some(outer), Some(inner)) => {
            outer.range.start <= inner.range.start && inner.range.end <= outer.range.end
        }
        _ => false,
    }
}

/// What is put into the index: head, body, and the room for the head.
type Entry = (Arc<StoredHead>, Arc<StoredBody>, Reservation);

/// What a part is that lacks nothing: the whole.
fn whole_of(settings: &RuleSettings, guard: &FlightGuard, (head, body, _): &Entry) -> Option<Entry> {
    let part = head.part.as_ref()?;
    let is_whole = part.complete.is_some_and(|complete| part.range == (0..complete));
    if !is_whole || !part.is_sound(body.length()) {
        return None;
    }
    let fields = head.all_fields();
    let head = as_kept(settings, guard, StatusCode::OK, whole_fields(&fields, &fields), head)?;
    Some((head.0, Arc::clone(body), head.1))
}

/// A new head in place of `before`, judged anew by its fields, with room for it. `None` where it may not be kept.
fn as_kept(
    settings: &RuleSettings,
    guard: &FlightGuard,
    status: StatusCode,
    fields: HeaderMap,
    before: &StoredHead,
) -> Option<(Arc<StoredHead>, Reservation)> {
    let (request, policy) = (guard.request(), &settings.policy);
    let freshness = larder_cache::rejudge(request, status, &fields, &before.freshness, policy)?;
    let head = StoredHead::new(request, status, fields, freshness, policy);
    let room = settings.store.reserve(StoredResponse::overhead_bytes(&head, &guard.place_of(&head)))?;
    Some((Arc::new(head), room))
}

/// One part of two that touch, under the newer one's fields.
fn join(
    settings: &RuleSettings,
    guard: &FlightGuard,
    newer: &Entry,
    other: &StoredResponse,
) -> Option<Entry> {
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
    let body = StoredBody::joined(&settings.store, &pieces)?;
    // What only the older one said stays said (RFC 9111 3.4).
    let mut fields = whole_fields(&other.head.all_fields(), &head.all_fields());
    let said = ContentRange::Bytes { range: union.range, complete: union.complete };
    fields.insert(http::header::CONTENT_RANGE, said.format());
    let (head, room) = as_kept(settings, guard, StatusCode::PARTIAL_CONTENT, fields, head)?;
    Some((head, Arc::new(body), room))
}

/// Puts a response into the index in place of those that its request selected before and that `outdates` names.
fn insert(
    settings: &RuleSettings,
    guard: &FlightGuard,
    key: &CacheKey,
    (head, body, room): Entry,
    outdates: impl Fn(&StoredResponse) -> bool,
) -> Result<(), NotStored> {
    let response = StoredResponse::new(head, body, guard.number(), room);
    let replaces = |old: &StoredResponse| old.head.vary.selects(&guard.request().fields) && outdates(old);
    match settings.store.insert(key, Arc::new(response), replaces, || guard.is_valid()) {
        true => Ok(()),
        false if guard.is_valid() => Err(NotStored::Superseded),
        false => Err(NotStored::Invalidated),
    }
}
