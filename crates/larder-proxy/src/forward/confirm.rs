//! What the origin says about a response that is stored already: a 304, or the head of it (RFC 9111 4.3.4, 4.3.5).
//!
//! In: the answer and the stored response that it speaks of. Out: that response with new fields, in its old place; or its
//! end, where it may not be stored any more. The body is never touched.

use std::sync::Arc;

use http::header::SET_COOKIE;
use http::{HeaderMap, Method, StatusCode};
use larder_cache::completion::{PartAnswer, answer_part};
use larder_cache::{ExchangeTimes, Freshness, HeadUpdate, StoredHead, Updated};
use larder_http::message::RequestHead;
use larder_origin::OriginResponse;
use larder_store::{CacheKey, Store, StoredResponse};

use super::receive::pass;
use super::task::FetchTask;
use super::template;
use crate::collapse::{FlightGuard, FlightOutcome, Kept};
use crate::not_stored::NotStored;

/// A 304: the stored response is good again. False where it cannot be used, and the origin has to be asked once more.
pub(super) fn confirm(
    task: &FetchTask,
    guard: &FlightGuard,
    stored: &Arc<StoredResponse>,
    answer: Box<OriginResponse>,
    times: ExchangeTimes,
) -> bool {
    let worker = &task.worker;
    let request = guard.request();
    let selected = stored.head.vary.selects(&request.fields);
    let key = guard.place_of(&stored.head);
    let store = task.settings.store_of(&key, stored);
    match larder_cache::update(&stored.head, request, &answer.fields, times, &task.settings.policy) {
        Updated::TooLarge => return false,
        Updated::Stored(head) => {
            let Some(Renewed { response: renewed, kept }) = renew(task, guard, (store, &key), stored, *head)
            else {
                return true;
            };
            match (kept, selected) {
                (true, true) => {
                    store.replace(&key, stored, Arc::clone(&renewed), || guard.is_valid());
                }
                // The origin chose a variant that is there for other requests: it stays there for them.
                (true, false) => {
                    let own = Arc::clone(&renewed);
                    let replaces =
                        |old: &StoredResponse| own.head.vary.replaces(&old.head.vary, &request.fields);
                    store.insert(&key, Arc::clone(&renewed), replaces, || guard.is_valid());
                }
                (false, true) => task.settings.remove(&key, stored),
                (false, false) => {}
            }
            if !kept {
                worker.metrics.not_stored(task.settings.rule_id, &NotStored::NoRoom);
                worker.proxy.note_not_stored(&key, NotStored::NoRoom);
            }
            let shareable = renewed.head.freshness.is_shareable();
            let policy = &task.settings.policy;
            let own = larder_cache::withheld_by_update(&stored.head, &renewed.head, &answer.fields, policy);
            if own.contains_key(SET_COOKIE) {
                worker.metrics.cookies_withheld();
            }
            let for_leader = FlightOutcome::Confirmed { stored: renewed, own };
            match shareable {
                true => guard.conclude(for_leader),
                false => guard.conclude_apart(for_leader, FlightOutcome::Unshared),
            }
        }
        Updated::NoLongerStorable { fields, reason } => {
            worker.metrics.not_stored(task.settings.rule_id, &NotStored::Rule(reason));
            if !reason.lies_in_request() {
                worker.proxy.note_not_stored(&key, NotStored::Rule(reason));
            }
            if selected && !reason.lies_in_request() {
                task.settings.remove_all_for(&key, stored, request);
            }
            match once_more(stored, request, fields, answer) {
                Some(mut answer) => {
                    let program = template::of_stored(&task.settings, stored, request, &mut answer);
                    let answer = (StatusCode::NOT_MODIFIED, (answer, program));
                    pass(&task.settings, guard, answer, Kept::Nothing(reason));
                }
                // A part that is not what its client asked for any more: the leader looks again.
                None => guard.conclude_apart(FlightOutcome::Lost, FlightOutcome::Unshared),
            }
        }
    }
    true
}

/// What was stored until now, as the answer to one more request; `None` where that is a part and the request wants more.
fn once_more(
    stored: &StoredResponse,
    request: &RequestHead,
    mut fields: HeaderMap,
    answer: Box<OriginResponse>,
) -> Option<Box<OriginResponse>> {
    let mut range = 0..stored.body.length();
    if let Some(part) = &stored.head.part {
        let received = stored.head.freshness.received.wall;
        let held = stored.body.length();
        let Some(PartAnswer::Partial { body, content_range }) =
            answer_part(request, &stored.head, part, held, received)
        else {
            return None;
        };
        range = body;
        fields.insert(http::header::CONTENT_RANGE, content_range);
    }
    let content_length = Some(range.end - range.start);
    let body = stored.body.content(range)?;
    Some(Box::new(OriginResponse { status: stored.head.status, fields, body, content_length, ..*answer }))
}

struct Renewed {
    response: Arc<StoredResponse>,
    /// Whether there was room for its head; without, it still answers those who wait.
    kept: bool,
}

/// The stored response under a new head. `None` where not even an empty reservation can be had.
fn renew(
    task: &FetchTask,
    guard: &FlightGuard,
    (store, key): (&Store, &CacheKey),
    stored: &StoredResponse,
    head: StoredHead,
) -> Option<Renewed> {
    let (kept, room) = match store.reserve(StoredResponse::overhead_bytes(&head, key)) {
        Some(room) => (true, room),
        None => (false, store.reserve_free(0)?),
    };
    let body = Arc::clone(&stored.body);
    // Without content this was quick; the next refresh may bring some.
    let took = task.worker.proxy.clock.now().since(&guard.begun()).max(stored.took / 2);
    let response = StoredResponse { took, ..StoredResponse::new(Arc::new(head), body, guard.number(), room) };
    Some(Renewed { response: Arc::new(response), kept })
}

/// A 200 to HEAD says what a GET would have got: it updates the stored response that it describes, and ends one that it
/// does not (RFC 9111 4.3.5). Returns the freshness of what was updated.
pub(super) fn update_by_head(
    task: &FetchTask,
    guard: &FlightGuard,
    answer: &OriginResponse,
    times: ExchangeTimes,
) -> Option<Freshness> {
    let request = guard.request();
    let is_head = request.method == Method::HEAD && answer.status == StatusCode::OK;
    let stored = task.offered.selected.as_ref().filter(|stored| is_head && stored.head.part.is_none())?;
    let (store, policy) = (task.settings.store_of(guard.key(), stored), &task.settings.policy);
    let updated = larder_cache::update_by_head(&stored.head, request, &answer.fields, times, policy);
    // The length that HEAD announces is not among its fields here.
    let other_length = answer.content_length.is_some_and(|length| length != stored.body.length());
    match updated {
        // What one client's credentials bring says nothing about what is shared.
        HeadUpdate::Unchanged => None,
        HeadUpdate::Outdated => {
            task.settings.remove(guard.key(), stored);
            None
        }
        HeadUpdate::Updated(_) if other_length => {
            task.settings.remove(guard.key(), stored);
            None
        }
        HeadUpdate::Updated(head) => {
            let freshness = head.freshness;
            let renewed =
                renew(task, guard, (store, guard.key()), stored, *head).filter(|renewed| renewed.kept)?;
            let replaced = store.replace(guard.key(), stored, renewed.response, || guard.is_valid());
            replaced.then_some(freshness)
        }
    }
}
