//! What the origin says about a response that is stored already: a 304, or the head of it (RFC 9111 4.3.4, 4.3.5).
//!
//! In: the answer and the stored response that it speaks of. Out: that response with new fields, in its old place; or its
//! end, where it may not be stored any more. The body is never touched.

use std::sync::Arc;

use http::{Method, StatusCode};
use larder_cache::{ExchangeTimes, Freshness, HeadUpdate, StoredHead, Updated};
use larder_http::body::Body;
use larder_origin::OriginResponse;
use larder_store::{CacheKey, StoredResponse};

use super::receive::pass;
use super::{Job, Kept, Share};
use crate::collapse::{FlightGuard, Phase};
use crate::exchange::{NotStored, NotStoredLabel};

/// The key that a stored response lies under: parts have one of their own.
fn place(guard: &FlightGuard, stored: &StoredResponse) -> CacheKey {
    match stored.head.part {
        Some(_) => guard.key().of_parts(),
        None => guard.key().clone(),
    }
}

/// A 304: the stored response is good again. Gives everything back where it cannot be used.
pub(super) fn confirm(
    job: Job,
    guard: FlightGuard,
    stored: &Arc<StoredResponse>,
    answer: OriginResponse,
    times: ExchangeTimes,
) -> Option<(Job, FlightGuard)> {
    let (worker, store) = (&job.worker, &job.settings.store);
    let request = guard.request();
    let selected = stored.head.vary.selects(&request.fields);
    let key = place(&guard, stored);
    match larder_cache::update(&stored.head, request, &answer.fields, times, &job.settings.policy) {
        Updated::TooLarge => return Some((job, guard)),
        Updated::Stored(head) => {
            let Renewed { response: renewed, kept } = renew(&job, &guard, &key, stored, *head)?;
            match (kept, selected) {
                (true, true) => {
                    store.replace(&key, stored, Arc::clone(&renewed), || guard.is_valid());
                }
                // The origin chose a variant that is there for other requests: it stays there for them.
                (true, false) => {
                    let replaces = |old: &StoredResponse| old.head.vary.selects(&request.fields);
                    store.insert(&key, Arc::clone(&renewed), replaces, || guard.is_valid());
                }
                (false, true) => store.remove(&key, stored),
                (false, false) => {}
            }
            if !kept {
                worker.metrics.not_stored(&NotStoredLabel(NotStored::NoRoom));
            }
            let phase = match renewed.head.freshness.is_shareable() {
                true => Phase::Confirmed(Arc::clone(&renewed)),
                false => Phase::Unshared,
            };
            let _ = job.leader.send(Share::Confirmed(renewed));
            guard.tell(phase);
        }
        Updated::NoLongerStorable { fields, reason } => {
            worker.metrics.not_stored(&NotStoredLabel(NotStored::Rule(reason)));
            if selected && !reason.lies_in_request() {
                store.remove(&key, stored);
            }
            let owner = Arc::clone(&stored.body);
            let body = match owner.length() {
                0 => Body::Empty,
                length => Body::Pieces { owner, range: 0..length },
            };
            let answer = OriginResponse {
                status: stored.head.status,
                fields,
                body,
                content_length: Some(stored.body.length()),
                ..answer
            };
            let answer = (StatusCode::NOT_MODIFIED, answer);
            pass((job.leader, &job.settings), &guard, answer, times, Kept::Nothing(reason));
        }
    }
    None
}

struct Renewed {
    response: Arc<StoredResponse>,
    /// Whether there was room for its head; without, it still answers those who wait.
    kept: bool,
}

/// The stored response under a new head. `None` where not even an empty reservation can be had.
fn renew(
    job: &Job,
    guard: &FlightGuard,
    key: &CacheKey,
    stored: &StoredResponse,
    head: StoredHead,
) -> Option<Renewed> {
    let store = &job.settings.store;
    let (kept, room) = match store.reserve(StoredResponse::overhead_bytes(&head, key)) {
        Some(room) => (true, room),
        None => (false, store.reserve_free(0)?),
    };
    let body = Arc::clone(&stored.body);
    let response = StoredResponse { head: Arc::new(head), body, number: guard.number(), room };
    Some(Renewed { response: Arc::new(response), kept })
}

/// A 200 to HEAD says what a GET would have got: it updates the stored response that it describes, and ends one that it
/// does not (RFC 9111 4.3.5). Returns the freshness of what was updated.
pub(super) fn update_by_head(
    job: &Job,
    guard: &FlightGuard,
    answer: &OriginResponse,
    times: ExchangeTimes,
) -> Option<Freshness> {
    let request = guard.request();
    let is_head = request.method == Method::HEAD && answer.status == StatusCode::OK;
    let stored = job.offered.selected.as_ref().filter(|stored| is_head && stored.head.part.is_none())?;
    let (store, policy) = (&job.settings.store, &job.settings.policy);
    // The length that HEAD announces is not among its fields here.
    if answer.content_length.is_some_and(|length| length != stored.body.length()) {
        store.remove(guard.key(), stored);
        return None;
    }
    match larder_cache::update_by_head(&stored.head, request, &answer.fields, times, policy) {
        HeadUpdate::Updated(head) => {
            let freshness = head.freshness;
            let renewed = renew(job, guard, guard.key(), stored, *head).filter(|renewed| renewed.kept)?;
            let replaced = store.replace(guard.key(), stored, renewed.response, || guard.is_valid());
            replaced.then_some(freshness)
        }
        HeadUpdate::Outdated => {
            store.remove(guard.key(), stored);
            None
        }
        HeadUpdate::Unchanged => None,
    }
}
