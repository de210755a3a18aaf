//! A whole answer: is it for everybody, for the store, or for its client alone?
//!
//! In: the origin's answer to a flight. Out: everybody who waits is told, the body flows, and what may be kept is kept at
//! its end. A 206 is judged and shared like a 200; it is what it says, a part, and lies apart from whole responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{AGE, SET_COOKIE};
use http::{Method, StatusCode};
use larder_assemble::Program;
use larder_cache::completion::{keep_names, same_representation, whole_fields};
use larder_cache::part::{Gap, Part};
use larder_cache::{CachePolicy, ExchangeTimes, NotStorable, Storability, StoredHead, directives};
use larder_http::body::{Body, BodyError};
use larder_http::fields::litespeed;
use larder_http::message::RequestHead;
use larder_origin::OriginResponse;
use larder_store::{Finished, Reservation, StoredResponse, StreamingBody};

use super::gaps::KeptPart;
use super::keep::Keeper;
use super::task::FetchTask;
use super::template::{self, template_of};
use crate::collapse::{FlightGuard, FlightOutcome, Kept, PassedAnswer, SharedResponse, Storing};
use crate::decision::{Counters, Facts, Next, Storable, next};
use crate::facts;
use crate::failure::Failure;
use crate::fetch;
use crate::fill::{Around, Filled, completed, fill};
use crate::not_stored::NotStored;
use crate::placement::StorePlace;
use crate::settings::RuleSettings;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;

/// So many bytes are fetched for a HEAD, if nobody asks for the content.
const UNREAD_BYTES_MAX: u64 = 16 << 20;

/// An answer of the origin, and its program where it is a template.
pub(super) type Compiled = (Box<OriginResponse>, Option<Arc<Program>>);

/// The answer is for the leader alone. Followers go alone as well, or, where only the leader's request is why, the next
/// of them leads.
pub(super) fn pass(
    settings: &RuleSettings,
    guard: &FlightGuard,
    (forward_status, (mut answer, program)): (StatusCode, Compiled),
    kept: Kept,
) {
    directives::strip(&mut answer.fields, &settings.policy.controls);
    let passed = PassedAnswer { answer, forward_status, kept, program };
    let for_followers = match is_leaders_own(kept) {
        true => FlightOutcome::NotForOthers,
        false => FlightOutcome::Unshared,
    };
    guard.conclude_apart(FlightOutcome::Passed(passed), for_followers);
}

/// Whether the answer is not for others because of the request that the leader made, so that the next of them may lead.
/// A 206 or 304 that nobody asked for is the origin's habit instead, and a 206 to a range is as useless to the next
/// one with the same range.
fn is_leaders_own(kept: Kept) -> bool {
    use NotStorable::{NotModified, PartialContent};
    matches!(kept, Kept::Nothing(reason) if reason.lies_in_request() && !matches!(reason, NotModified | PartialContent))
}

/// Judges an answer and lets it land. A template is decoded and compiled while it arrives.
pub(crate) async fn receive(
    task: &FetchTask,
    guard: &FlightGuard,
    mut answer: Box<OriginResponse>,
    times: ExchangeTimes,
) {
    let forward_status = answer.status;
    let Ok(program) = template_of(&task.settings, guard.request(), &mut answer) else {
        return guard.conclude(FlightOutcome::Failed(Failure::TEMPLATE_CODING));
    };
    if let Some(landing) = land((task, guard), forward_status, ((answer, program), None), times) {
        landing.fill().await;
    }
}

/// The rest of what is stored in part: with that part it is the whole, as if the origin had sent it (RFC 9111 3.4).
pub(super) async fn receive_rest(
    task: &FetchTask,
    guard: &FlightGuard,
    (part, gap): (&StoredResponse, &Gap),
    mut answer: Box<OriginResponse>,
    times: ExchangeTimes,
) {
    let Some(missing) = gap.at_one_end() else { return };
    let forward_status = answer.status;
    let mut fields = whole_fields(&part.head.all_fields(), &answer.fields);
    keep_names(&part.head, &mut fields);
    let body = std::mem::replace(&mut answer.body, Body::Empty);
    let body = completed(Arc::clone(&part.body), missing, gap.complete, body);
    let content_length = Some(gap.complete);
    *answer = OriginResponse { status: StatusCode::OK, fields, body, content_length, ..*answer };
    if let Some(landing) = land((task, guard), forward_status, ((answer, None), None), times) {
        let received = landing.fill().await;
        end_misfit((task, guard), part, &received);
    }
}

/// The gaps of what lies on disks, where it is filled up.
pub(super) async fn receive_gaps(
    task: &FetchTask,
    guard: &FlightGuard,
    part: &StoredResponse,
    (forward_status, (streaming, answer)): (StatusCode, (Arc<StreamingBody>, Box<OriginResponse>)),
    times: ExchangeTimes,
) -> Option<KeptPart> {
    let arrived = ((answer, None), Some(streaming));
    let received = land((task, guard), forward_status, arrived, times)?.fill().await;
    end_misfit((task, guard), part, &received);
    let Received { filled, part } = received;
    // An origin that knows no ranges would send everything once more.
    let is_left = matches!(filled, Filled::InPart) && forward_status == StatusCode::PARTIAL_CONTENT;
    part.filter(|_| is_left)
}

/// A part that was not what it said: the next request shall not be completed from it again.
fn end_misfit((task, guard): (&FetchTask, &FlightGuard), part: &StoredResponse, received: &Received) {
    if let Filled::Broken(BodyError::Framing) = received.filled {
        let key = guard.key().of_parts();
        for (store, _) in task.settings.stores() {
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
    if policy.controls.ending.contains(&litespeed::CACHE_CONTROL) && litespeed::is_for_one(&answer.fields) {
        return Storability::NotStorable(NotStorable::Private);
    }
    let judged = larder_cache::storable(request, answer.status, &answer.fields, times, policy);
    let announced = answer.body.length().or(answer.content_length);
    let is_longer = |part: Part| announced > Some(part.range.end - part.range.start);
    match answer.status == StatusCode::PARTIAL_CONTENT && Part::of(&answer.fields).is_some_and(is_longer) {
        true => Storability::NotStorable(NotStorable::PartialContent),
        false => judged,
    }
}

/// What became of a body that was to be kept.
struct Received {
    filled: Filled,
    /// What is stored of it, where that is not all.
    part: Option<KeptPart>,
}

/// A body on its way to those who wait for it, and into the store.
struct Landing<'a> {
    task: &'a FetchTask,
    guard: &'a FlightGuard,
    /// The store that it is for.
    place: StorePlace<'a>,
    head: Arc<StoredHead>,
    body: Body,
    /// Of a template.
    program: Option<Arc<Program>>,
    streaming: AbortOnDrop,
    /// For the head; `None` where nothing is stored.
    room: Option<Reservation>,
    storing: Arc<Storing>,
    /// Why it would not be kept whole, were it not.
    unkept: NotStored,
    /// It is kept as far as is known.
    is_kept: bool,
}

/// Judges an answer, and tells all who wait. `None` where nothing of it is left to be filled.
// Apart from the filling: what is known here only would be part of each fetch until its end.
fn land<'a>(
    (task, guard): (&'a FetchTask, &'a FlightGuard),
    forward_status: StatusCode,
    ((answer, program), seeded): (Compiled, Option<Arc<StreamingBody>>),
    times: ExchangeTimes,
) -> Option<Landing<'a>> {
    let FetchTask { worker, worker_plan, settings, seldom, before, .. } = task;
    let freshness = match judge(guard.request(), &answer, times, &settings.policy) {
        Storability::Storable(freshness) => freshness,
        Storability::NotStorable(reason) => {
            let why = NotStored::Rule(reason);
            worker.metrics.not_stored(settings.rule_id, &why);
            if !reason.lies_in_request() {
                worker.proxy.note_not_stored(guard.key(), why);
            }
            let kept = Kept::Nothing(reason);
            if reason.outdates(answer.status) {
                end_before((settings, before.as_ref()), guard, None);
            }
            if guard.is_shared() && !is_leaders_own(kept) {
                mark(worker, worker_plan, settings, guard);
            }
            pass(settings, guard, (forward_status, (answer, program)), kept);
            return None;
        }
    };
    if answer.body.length().or(answer.content_length) > Some(UNREAD_BYTES_MAX) && guard.gives_up_unread() {
        worker.metrics.not_stored(settings.rule_id, &NotStored::Unread);
        worker.proxy.note_not_stored(guard.key(), NotStored::Unread);
        pass(settings, guard, (forward_status, (answer, program)), Kept::Unread);
        return None;
    }
    let shareable = freshness.is_shareable();
    if !shareable && guard.is_shared() {
        mark(worker, worker_plan, settings, guard);
    }
    let OriginResponse { status, fields, body, content_length, .. } = *answer;
    let age = fields.get(AGE).cloned();
    let declared = body.length().or(content_length);
    let place = settings.place_for(status, &fields, declared);
    let store = place.store;
    let (head, mut own) =
        StoredHead::with_withheld(guard.request(), status, fields, freshness, &settings.policy);
    if own.contains_key(SET_COOKIE) {
        worker.metrics.cookies_withheld();
    }
    own.extend(age.map(|age| (AGE, age)));
    let head = Arc::new(head);
    let key = guard.place_of(&head);
    let overhead = StoredResponse::overhead_bytes(&head, &key);
    let storable = facts::storable(store, (&key, &head), declared, *seldom);
    // What goes on from a part was taken when that began.
    let storable = Storable { is_too_large: storable.is_too_large && seeded.is_none(), ..storable };
    let (unkept, room) = match next(&Facts::Storable(storable), Counters::default()).0 {
        Next::SendThrough(why) => (why, None),
        _ => (NotStored::NoRoom, store.reserve(overhead)),
    };
    let streaming =
        room.is_some().then(|| StreamingBody::keep_as(store, &key, &head, declared, guard.audience()));
    // What goes on from a part needs that for its readers, whether it is kept in the end or not.
    let streaming = seeded.or_else(|| streaming.flatten());
    let not_stored = (streaming.is_none() || room.is_none()).then_some(unkept.token());
    if not_stored.is_some() && !seldom {
        end_before((settings, before.as_ref()), guard, Some(&head));
    }
    let streaming = streaming.unwrap_or_else(|| StreamingBody::pass(store, &key, declared, guard.audience()));
    let storing = Arc::<Storing>::default();
    let shared = Arc::new(SharedResponse {
        storing: Arc::clone(&storing),
        head: Arc::clone(&head),
        body: Arc::clone(&streaming),
        not_stored,
        forward_status,
        number: guard.number(),
        program: program.clone(),
    });
    let reader = streaming.reader(None);
    let for_leader = FlightOutcome::Shared { response: shared, own, reader };
    if !shareable {
        guard.conclude_apart(for_leader, FlightOutcome::Unshared);
    } else {
        if not_stored.is_some() {
            guard.close();
        }
        guard.conclude(for_leader);
    }
    let (streaming, is_kept) = (AbortOnDrop(streaming), not_stored.is_none());
    Some(Landing { task, guard, place, head, body, program, streaming, room, storing, unkept, is_kept })
}

impl Landing<'_> {
    /// Fills the body, and keeps it where it may be kept.
    async fn fill(mut self) -> Received {
        let FetchTask { worker, settings, seldom, before, .. } = self.task;
        let (guard, head, streaming) = (self.guard, &self.head, &*self.streaming.0);
        let has_outgrown = AtomicBool::new(!self.is_kept);
        let outgrows = || {
            if !has_outgrown.swap(true, Ordering::Relaxed) {
                end_before((settings, before.as_ref()), guard, Some(head));
            }
        };
        let passing = || {
            guard.close();
            outgrows();
        };
        let gives_up = |arrived| arrived > UNREAD_BYTES_MAX && guard.gives_up_unread();
        let around = Around { passing, gives_up, orphan_time: self.task.orphan_time() };
        let (storing, StorePlace { store, store_id, rule_id }) = (&self.storing, self.place);
        let settled = |outcome: Result<(), NotStored>| {
            storing.settle(outcome.map_err(NotStored::token));
            worker.proxy.note_outcome(store_id, &guard.place_of(head), outcome);
        };
        let (body, room) = (std::mem::replace(&mut self.body, Body::Empty), self.room.take());
        let program = self.program.take();
        let mut part = None;
        let commit = |finished: &Finished| {
            let Some(room) = room else { return };
            let keeper = Keeper { worker, settings, guard, store, rule_id };
            match finished {
                Finished::Whole(body) => {
                    let head = match &program {
                        Some(program) => {
                            template::count(worker, guard.request(), program);
                            template::kept(program, head, body, store)
                        }
                        None => Arc::clone(head),
                    };
                    settled(keeper.keep(head, Arc::clone(body), room));
                }
                Finished::Part { body, runs, complete } => {
                    let kept = keeper.keep_runs(head, body, (runs, *complete));
                    part = kept.map(|kept| (kept, store_id));
                }
                Finished::Passed => {}
            }
        };
        let filled = fill(streaming, body, around, commit).await;
        // With its last bytes, perhaps, and with nobody there to read them.
        if !matches!(filled, Filled::Kept | Filled::Broken(_)) && !streaming.is_keeping() {
            outgrows();
        }
        let lost = match filled {
            Filled::Kept => None,
            Filled::Unread => Some(NotStored::Unread),
            Filled::InPart | Filled::Passed => Some(streaming.loss().map_or(self.unkept, NotStored::of)),
            Filled::Broken(_) | Filled::Abandoned if *seldom => Some(NotStored::MinUses),
            Filled::Broken(_) | Filled::Abandoned => Some(NotStored::Incomplete),
        };
        if let Some(reason) = lost {
            worker.metrics.not_stored(rule_id, &reason);
            settled(Err(reason));
        }
        Received { filled, part }
    }
}

/// What the origin says now cannot be kept, and what is stored is not what it says any more. What a visitor with a
/// session, or with credentials, is told is no news about what the others get; nor is a part of the same representation.
fn end_before(
    (settings, before): (&RuleSettings, Option<&Arc<StoredResponse>>),
    guard: &FlightGuard,
    now: Option<&StoredHead>,
) {
    let request = guard.request();
    let is_own = settings.policy.has_credentials(&request.fields)
        || larder_cache::has_personal_cookie(request, &settings.policy)
        || !guard.is_valid();
    let is_more_of = |stored: &StoredResponse| {
        now.is_some_and(|now| now.part.is_some() && same_representation(&stored.head, now))
    };
    if let Some(stored) = before.filter(|stored| !is_own && !is_more_of(stored)) {
        settings.remove_all_for(&guard.place_of(&stored.head), stored, request);
    }
}

fn mark(worker: &Worker, worker_plan: &WorkerPlan, settings: &RuleSettings, guard: &FlightGuard) {
    // What a range or HEAD brings says nothing about the whole.
    let request = guard.request();
    if request.method != Method::HEAD && !request.fields.contains_key(http::header::RANGE) {
        let until = worker.proxy.clock.now().monotonic + worker_plan.plan.hit_for_miss;
        settings.store.mark_hit_for_miss(guard.key(), until);
    }
}

/// Cuts the readers of a fill whose task is dropped before its end; after the end it changes nothing.
struct AbortOnDrop(Arc<StreamingBody>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort(BodyError::Lost);
    }
}
