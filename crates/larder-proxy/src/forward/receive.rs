//! A whole answer: is it for everybody, for the store, or for its client alone?
//!
//! In: the origin's answer to a flight. Out: everybody who waits is told, the body flows, and what may be kept is kept at
//! its end. A 206 is judged and shared like a 200; it is what it says, a part, and lies apart from whole responses.

use std::sync::Arc;

use http::header::{AGE, AUTHORIZATION};
use http::{Method, StatusCode};
use larder_cache::part::{Gap, Part, whole_fields};
use larder_cache::{CachePolicy, ExchangeTimes, NotStorable, Storability, StoredHead, directives};
use larder_http::body::BodyError;
use larder_http::message::RequestHead;
use larder_origin::OriginResponse;
use larder_store::{Growing, StoredBody, StoredResponse};
use tokio::sync::oneshot;

use super::keep::Keeper;
use super::{Flown, Job, Kept, Share};
use crate::collapse::{FlightGuard, Landing, Phase};
use crate::exchange::{NotStored, NotStoredLabel};
use crate::fetch;
use crate::fill::{Around, Filled, completed, fill};
use crate::proxy::{Furnished, Worker};
use crate::settings::RuleSettings;

/// The answer is for the leader alone. Followers go alone as well, or, where only the leader's request is why, the next
/// of them leads.
pub(super) fn pass(
    (leader, settings): (oneshot::Sender<Share>, &RuleSettings),
    guard: &FlightGuard,
    (forward_status, mut answer): (StatusCode, OriginResponse),
    times: ExchangeTimes,
    kept: Kept,
) {
    directives::strip(&mut answer.fields, &settings.policy.controls);
    let answer = Box::new(answer);
    let _ = leader.send(Share::Passed(Flown { answer, forward_status, delay: times.delay(), kept }));
    guard.tell(if is_leaders_own(kept) { Phase::NotForOthers } else { Phase::Unshared });
}

/// Whether the answer is not for others because of the request that the leader made, so that the next of them may lead.
/// A 206 or 304 that nobody asked for is the origin's habit instead, and a 206 to a range is as useless to the next
/// one with the same range.
fn is_leaders_own(kept: Kept) -> bool {
    use NotStorable::{NotModified, PartialContent};
    matches!(kept, Kept::Nothing(reason) if reason.lies_in_request() && !matches!(reason, NotModified | PartialContent))
}

/// Judges an answer and lets it land.
pub(crate) async fn receive(job: Job, guard: FlightGuard, answer: OriginResponse, times: ExchangeTimes) {
    let forward_status = answer.status;
    let _ = land(job, guard, forward_status, answer, times).await;
}

/// The rest of what is stored in part: with that part it is the whole, as if the origin had sent it (RFC 9111 3.4).
pub(super) async fn receive_rest(
    job: Job,
    guard: FlightGuard,
    (part, gap): (&StoredResponse, &Gap),
    answer: OriginResponse,
    times: ExchangeTimes,
) {
    let OriginResponse { status: forward_status, fields, body, .. } = answer;
    let answer = OriginResponse {
        status: StatusCode::OK,
        fields: whole_fields(&part.head.all_fields(), &fields),
        body: completed(Arc::clone(&part.body), &gap.missing, gap.complete, body),
        content_length: Some(gap.complete),
        ..answer
    };
    let (settings, key) = (Arc::clone(&job.settings), guard.key().of_parts());
    if let Some(Filled::Broken(BodyError::Framing)) = land(job, guard, forward_status, answer, times).await {
        // It was not what it said: the next request shall not be completed from it again.
        for (store, _) in settings.stores() {
            store.discard(&key, |other| Arc::ptr_eq(&other.body, &part.body));
        }
    }
}

/// Whether an answer may be kept, and for how long it is fresh.
pub(crate) fn judge(
    request: &RequestHead,
    answer: &OriginResponse,
    times: ExchangeTimes,
    policy: &CachePolicy,
) -> Storability {
    if fetch::varies_on_ours(&answer.fields) {
        return Storability::NotStorable(NotStorable::VaryAny);
    }
    let judged = larder_cache::storable(request, answer.status, &answer.fields, times, policy);
    let announced = answer.body.length().or(answer.content_length);
    let is_longer = |part: Part| announced > Some(part.range.end - part.range.start);
    match answer.status == StatusCode::PARTIAL_CONTENT && Part::of(&answer.fields).is_some_and(is_longer) {
        true => Storability::NotStorable(NotStorable::PartialContent),
        false => judged,
    }
}

async fn land(
    job: Job,
    guard: FlightGuard,
    forward_status: StatusCode,
    answer: OriginResponse,
    times: ExchangeTimes,
) -> Option<Filled> {
    let freshness = match judge(guard.request(), &answer, times, &job.settings.policy) {
        Storability::Storable(freshness) => freshness,
        Storability::NotStorable(reason) => {
            job.worker.metrics.not_stored(&NotStoredLabel(NotStored::Rule(reason)));
            let kept = Kept::Nothing(reason);
            end_outdated(&job, &guard, answer.status, reason);
            if guard.is_shared() && !is_leaders_own(kept) {
                mark(&job.worker, &job.furnished, &job.settings, &guard);
            }
            pass((job.leader, &job.settings), &guard, (forward_status, answer), times, kept);
            return None;
        }
    };
    let Job { worker, furnished, settings, orphan_time, leader, seldom, .. } = job;
    let shareable = freshness.is_shareable();
    if !shareable && guard.is_shared() {
        mark(&worker, &furnished, &settings, &guard);
    }
    let OriginResponse { status, fields, body, content_length, .. } = answer;
    let mut own = larder_cache::withheld(&fields, &settings.policy);
    own.extend(fields.get(AGE).map(|age| (AGE, age.clone())));
    let declared = body.length().or(content_length);
    let (store, store_id) = settings.place_for(status, &fields, declared);
    let head = Arc::new(StoredHead::new(guard.request(), status, fields, freshness, &settings.policy));
    let key = guard.place_of(&head);
    let overhead = StoredResponse::overhead_bytes(&head, &key);
    let room = if seldom { None } else { store.reserve(overhead) };
    let growing = room.is_some().then(|| Growing::keep_as(store, &key, &head, declared)).flatten();
    let passing = if seldom { NotStored::MinUses } else { NotStored::NoRoom };
    let not_stored = growing.is_none().then_some(passing.token());
    let growing = growing.unwrap_or_else(|| Growing::pass(store, &key, declared));
    let landing = Arc::new(Landing {
        head: Arc::clone(&head),
        body: Arc::clone(&growing),
        not_stored,
        forward_status,
        number: guard.number(),
    });
    let seat = growing.reader(None);
    // A leader that has left leaves its place as well.
    let _ = leader.send(Share::Landing { landing: Arc::clone(&landing), own, seat });
    if shareable {
        if not_stored.is_some() {
            guard.close();
        }
        guard.tell(Phase::Landed(landing));
    } else {
        guard.tell(Phase::Unshared);
    }
    let _cut = AbortOnDrop(&growing);
    let around = Around { waiters: || guard.waiters(), passing: || guard.close(), orphan_time };
    let commit = |body: &Arc<StoredBody>| {
        if let Some(room) = room {
            let keeper = Keeper { worker: &worker, settings: &settings, guard: &guard, store, store_id };
            keeper.keep(head, Arc::clone(body), room);
        }
    };
    let filled = fill(&growing, body, around, commit).await;
    let lost = match filled {
        Filled::Kept => None,
        Filled::Passed => Some(passing),
        Filled::Broken(_) | Filled::Abandoned if seldom => Some(NotStored::MinUses),
        Filled::Broken(_) | Filled::Abandoned => Some(NotStored::Incomplete),
    };
    if let Some(reason) = lost {
        worker.metrics.not_stored(&NotStoredLabel(reason));
    }
    Some(filled)
}

/// What the origin says now is not to be stored, and what is stored is not what it says any more. What a visitor with a
/// session, or with credentials, is told is no news about what the others get.
fn end_outdated(job: &Job, guard: &FlightGuard, status: StatusCode, reason: NotStorable) {
    let (request, policy) = (guard.request(), &job.settings.policy);
    let is_own = request.fields.contains_key(AUTHORIZATION) || larder_cache::has_session(request, policy);
    let is_news = reason.outdates(status) && guard.is_valid() && !is_own;
    if let Some(stored) = job.offered.selected.as_ref().filter(|_| is_news) {
        job.settings.remove(&guard.place_of(&stored.head), stored);
    }
}

fn mark(worker: &Worker, furnished: &Furnished, settings: &RuleSettings, guard: &FlightGuard) {
    // What a range or HEAD brings says nothing about the whole.
    let request = guard.request();
    if request.method != Method::HEAD && !request.fields.contains_key(http::header::RANGE) {
        let until = worker.proxy.clock.now().monotonic + furnished.plan.hit_for_miss;
        settings.store.mark_hit_for_miss(guard.key(), until);
    }
}

/// Cuts the readers of a fill whose task is dropped before its end; after the end it changes nothing.
struct AbortOnDrop<'a>(&'a Growing);

impl Drop for AbortOnDrop<'_> {
    fn drop(&mut self) {
        self.0.abort(BodyError::Lost);
    }
}
