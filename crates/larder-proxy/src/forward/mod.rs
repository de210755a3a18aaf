//! An origin fetch: a task of its own, which outlives the client that caused it.
//!
//! In: a [`FetchTask`] and the guard of its flight. Out: a [`FlightOutcome`] for all who wait, and what
//! is stored. Once a response is known to be storable and its room is reserved, the fetch ends by itself; anything
//! else ends with its last reader. However this task ends, the guard tells the followers.
//!
//! What comes back is confirmed (304, and 200 to HEAD: [`mod@confirm`]) or received ([`mod@receive`]), and in the end kept
//! ([`mod@keep`]). A template is decoded and compiled on the way ([`mod@template`]).

mod ask;
mod complete;
mod confirm;
mod elsewhere;
mod gaps;
mod keep;
mod receive;
mod task;
mod template;

use std::sync::Arc;

use http::StatusCode;
use http::header::RANGE;
use larder_cache::part::Gap;
use larder_cache::{ExchangeTimes, StaleCause};
use larder_http::message::RequestHead;
use larder_origin::{OriginRequest, OriginResponse};
use larder_store::{CacheKey, RefreshFailure, StoredResponse, StreamingBody};

use crate::collapse::{FlightGuard, FlightOutcome, Kept};
use crate::failure::Failure;
use crate::fetch;
use crate::invalidation::Writing;
pub(crate) use ask::{Acted, OriginReply, act, ask};
use complete::is_same_whole;
use confirm::{confirm, update_by_head};
use elsewhere::Elsewhere;
use gaps::{Behind, KeptPart};
use receive::pass;
pub(crate) use receive::{judge, receive};
pub(crate) use task::{Candidates, FetchTask};
use template::is_template;
pub(crate) use template::{is_part_of_template, template_of};

/// Flies: asks, judges, fills, stores.
// Not an `async fn`, which would keep what it is given a second time. What a fetch is made of is copied when it begins.
pub(crate) fn fly(mut task: FetchTask, mut guard: FlightGuard) -> impl Future<Output = ()> + Send {
    let orphan_time = task.orphan_time();
    // What may stand in for the origin, whatever it is offered in the end.
    let stood = task.offered.selected.clone();
    async move {
        if elsewhere::may_wait(&task, &guard) {
            // Boxed: most stores share nothing.
            let waiting = Box::pin(elsewhere::wait(&task, &mut guard));
            if waiting.await == Elsewhere::Over {
                return;
            }
        }
        loop {
            let (asked, conditional) = asking(&task, &guard);
            let OriginReply { fetched, answer } = tokio::select! {
                answered = asked => answered,
                () = guard.abandoned(orphan_time) => {
                    // Everybody has given up on an origin that said nothing all that time.
                    if guard.is_shared() {
                        note_failure(&task, stood.as_ref(), RefreshFailure::Dead);
                    }
                    return;
                }
            };
            guard.note(fetched);
            let (answer, times) = match answer {
                Ok(answered) => answered,
                Err(failure) => {
                    // That there was no room for a refresh says nothing of the origin.
                    if failure.dead && (!failure.queued || guard.has_leader()) {
                        note_failure(&task, stood.as_ref(), RefreshFailure::Dead);
                    }
                    return guard.conclude(FlightOutcome::Failed(failure));
                }
            };
            let said = (answer.status, &answer.fields);
            if let Some(purging) =
                task.worker.purge_as_answered(guard.request(), said, &task.settings.policy.controls)
            {
                Writing::of_purge(purging).wait().await;
            }
            match take((&mut task, &mut guard), stood.as_ref(), conditional, (answer, times)) {
                Taken::Over => return,
                Taken::Again => {}
                Taken::Whole(answer) => return receive(&task, &guard, answer, times).await,
                // Boxed: it is rare, and larger than the rest.
                Taken::Completing(completing) => {
                    return Box::pin(completing.land(task, guard, times)).await;
                }
            }
        }
    }
}

/// Asks the origin, with conditions or without.
fn asking(task: &FetchTask, guard: &FlightGuard) -> (impl Future<Output = OriginReply> + Send, bool) {
    let request = request(task, guard);
    let conditional = CONDITIONS.iter().any(|name| request.fields.contains_key(name));
    (ask(&task.worker, &task.worker_plan, task.asks(), request), conditional)
}

/// What an answer comes to.
enum Taken {
    /// That was all. Who waits has been told, or is told that nothing came.
    Over,
    /// The origin has to be asked once more.
    Again,
    /// It is received as it is.
    Whole(Box<OriginResponse>),
    /// It completes what is stored in part.
    Completing(Completing),
}

/// Takes an answer to a request that had conditions or not; `stood` is what may stand in for the origin.
fn take(
    (task, guard): (&mut FetchTask, &mut FlightGuard),
    stood: Option<&Arc<StoredResponse>>,
    conditional: bool,
    (answer, times): (Box<OriginResponse>, ExchangeTimes),
) -> Taken {
    if is_part_of_template(&task.settings, &answer) {
        return ask_for_all(task, guard);
    }
    let mut answer = match task.completing.take() {
        None => answer,
        Some(completing) => match take_completing((task, guard), completing, (answer, times)) {
            Ok(answer) => answer,
            Err(taken) => return taken,
        },
    };
    if let Some(stored) = stood {
        stored.refreshing.recovered();
    }
    if answer.status != StatusCode::NOT_MODIFIED {
        if let Some(stored) = stand_in(task, (guard.key(), stood), answer.status) {
            note_failure(task, stood, RefreshFailure::Error);
            guard.conclude(FlightOutcome::StandIn { stored, since: task.since, status: answer.status });
            return Taken::Over;
        }
        let freshness = match is_overtaken(task, guard, stood) {
            true => None,
            false => update_by_head(task, guard, &answer, times),
        };
        if let Some(freshness) = freshness {
            let Ok(program) = template_of(&task.settings, guard.request(), &mut answer) else {
                guard.conclude(FlightOutcome::Failed(Failure::TEMPLATE_CODING));
                return Taken::Over;
            };
            let answer = (answer.status, (answer, program));
            pass(&task.settings, guard, answer, Kept::Updated(freshness));
            return Taken::Over;
        }
        return Taken::Whole(answer);
    }
    if task.offered.is_empty() {
        // Under a mark the conditions are the client's own, and so is the answer to them.
        if conditional {
            return Taken::Whole(answer);
        }
        guard.conclude(FlightOutcome::Failed(Failure::UNASKED_NOT_MODIFIED));
        return Taken::Over;
    }
    if let Some(stored) = task.offered.confirmed_by(&answer.fields)
        && !fetch::varies_on_ours(&answer.fields)
    {
        if is_overtaken(task, guard, Some(&stored)) {
            return ask_again(task, guard);
        }
        if confirm(task, guard, &stored, answer, times) {
            return Taken::Over;
        }
    }
    // It confirms something that is not here, or cannot be used: once more, without conditions.
    task.offered = Candidates::default();
    Taken::Again
}

/// Takes an answer to a request for what a stored part lacks. Gives it back where it is as good as any.
#[inline(never)]
fn take_completing(
    (task, guard): (&mut FetchTask, &mut FlightGuard),
    (part, gap): (Arc<StoredResponse>, Gap),
    (answer, times): (Box<OriginResponse>, ExchangeTimes),
) -> Result<Box<OriginResponse>, Taken> {
    // For gaps that nobody waits for, the whole is not asked for in their place.
    let again = |task: &FetchTask, guard: &FlightGuard| match task.is_unwanted(guard) {
        true => Taken::Over,
        false => Taken::Again,
    };
    if is_overtaken(task, guard, Some(&part)) {
        task.settings.remove(&guard.key().of_parts(), &part);
        if task.is_unwanted(guard) {
            return Err(Taken::Over);
        }
        return Err(ask_again(task, guard));
    }
    let lies_on_disks = !part.body.is_in_memory();
    // A template has no parts that it could be completed from.
    let may_complete = lies_on_disks && !is_template(&task.settings, &answer);
    match answer.status {
        status if may_complete && (fills(&gap, &part, &answer) || is_same_whole(&part, &gap, &answer)) => {
            let Some(whole) = complete::seed(task, guard, (&part, gap), answer, times) else {
                // It went meanwhile, or the whole is not to be stored: once more, for all of it.
                return Err(again(task, guard));
            };
            let behind = Behind::after(task, guard);
            Err(Taken::Completing(Completing::Gaps { part, status, whole, behind }))
        }
        StatusCode::PARTIAL_CONTENT if !lies_on_disks && fills(&gap, &part, &answer) => {
            Err(Taken::Completing(Completing::Rest { part, gap, answer }))
        }
        // Nothing that fits: once more, for the whole. What is there is of something else, or of nobody knows what.
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            task.settings.remove(&guard.key().of_parts(), &part);
            Err(again(task, guard))
        }
        status if task.is_unwanted(guard) => {
            // Of something else as well.
            if status == StatusCode::OK {
                task.settings.remove(&guard.key().of_parts(), &part);
            }
            Err(Taken::Over)
        }
        _ => Ok(answer),
    }
}

/// For everything, and by a request that comes after the purge.
fn ask_again(task: &mut FetchTask, guard: &mut FlightGuard) -> Taken {
    guard.is_newer_than(task.worker.proxy.invalidations.current());
    task.offered = Candidates::default();
    Taken::Again
}

/// A part of a template was answered. A template is received whole or not at all, so all of it is asked for, once.
#[inline(never)]
fn ask_for_all(task: &mut FetchTask, guard: &mut FlightGuard) -> Taken {
    if let Some((part, _)) = task.completing.take() {
        // It was stored as a part of something that is no template, and the rest of it will be of one.
        task.settings.remove(&guard.key().of_parts(), &part);
        return if task.is_unwanted(guard) { Taken::Over } else { Taken::Again };
    }
    if !guard.request().fields.contains_key(RANGE) {
        guard.conclude(FlightOutcome::Failed(Failure::TEMPLATE_PART));
        return Taken::Over;
    }
    guard.ask_instead(fetch::without_range(guard.request()));
    Taken::Again
}

/// What is stored in part, and the answer that completes it.
enum Completing {
    /// The part lies on disks, and is filled up there.
    Gaps {
        part: Arc<StoredResponse>,
        /// What the origin answered.
        status: StatusCode,
        /// The part's body as one that grows, and the answer as that of the whole.
        whole: (Arc<StreamingBody>, Box<OriginResponse>),
        /// What may follow.
        behind: Option<Box<Behind>>,
    },
    /// The part is in memory, and the answer is the rest of it.
    Rest { part: Arc<StoredResponse>, gap: Gap, answer: Box<OriginResponse> },
}

impl Completing {
    async fn land(self, task: FetchTask, guard: FlightGuard, times: ExchangeTimes) {
        match self {
            Self::Gaps { part, status, whole, behind } => {
                let left = receive::receive_gaps(&task, &guard, &part, (status, whole), times).await;
                // What follows is a flight of its own.
                drop(guard);
                if let Some((behind, left)) = behind.zip(left) {
                    follow(behind, left);
                }
            }
            Self::Rest { part, gap, answer } => {
                receive::receive_rest(&task, &guard, (&part, &gap), answer, times).await;
            }
        }
    }
}

/// Whether a purge that came after the request was sent names what it asked about. An answer may give it other names, and these would
/// hide it from that purge: so it confirms nothing, and completes nothing.
fn is_overtaken(task: &FetchTask, guard: &FlightGuard, stored: Option<&Arc<StoredResponse>>) -> bool {
    let invalidations = &task.worker.proxy.invalidations;
    let is_named = |stored: &Arc<StoredResponse>| {
        invalidations.is_named_since(&guard.place_of(&stored.head), &stored.head, guard.number())
    };
    stored.is_some_and(is_named)
}

/// Begins what follows a fetch, for what `part` lacks. It is a task of its own.
fn follow(behind: Box<Behind>, part: KeptPart) {
    if let Some((task, guard, slot)) = behind.board(part) {
        tokio::spawn(async move {
            let _slot = slot;
            Box::pin(fly(task, guard)).await;
        });
    }
}

const CONDITIONS: [http::HeaderName; 4] = [
    http::header::IF_NONE_MATCH,
    http::header::IF_MODIFIED_SINCE,
    http::header::IF_MATCH,
    http::header::IF_UNMODIFIED_SINCE,
];

fn request(task: &FetchTask, guard: &FlightGuard) -> OriginRequest {
    let head: &RequestHead = guard.request();
    let sink = Arc::new(guard.interim_sink());
    let mut request = fetch::outgoing(head, task.content.clone().into(), false, task.to(), Some(sink));
    match &task.completing {
        Some((part, gap)) => gap.request_fields(0, &part.head, &mut request.fields),
        None => {
            task.offered.offered(|offered| larder_cache::conditional_fields(offered, &mut request.fields))
        }
    }
    request
}

/// Whether an answer is the rest of a part, or the first of what is missing, as far as its head tells.
fn fills(gap: &Gap, part: &StoredResponse, answer: &OriginResponse) -> bool {
    let announced = answer.body.length().or(answer.content_length);
    let length = gap.missing.first().map(|missing| missing.end - missing.start);
    let fits = announced.is_none_or(|announced| Some(announced) == length);
    answer.status == StatusCode::PARTIAL_CONTENT && fits && gap.filled_by(0, &part.head, &answer.fields)
}

/// The stored response that may stand in for an error of the origin (RFC 5861 4).
fn stand_in(
    task: &FetchTask,
    (key, stored): (&CacheKey, Option<&Arc<StoredResponse>>),
    status: StatusCode,
) -> Option<Arc<StoredResponse>> {
    let (cause, stored) = (StaleCause::of_status(status)?, stored?);
    let proxy = &task.worker.proxy;
    // What was removed meanwhile is still for those who came before that.
    let head = proxy.invalidations.head_before_removal(key, stored, task.since)?;
    let now = proxy.clock.now();
    let allowed = larder_cache::may_serve_stale(&head, now, cause, &task.settings.policy);
    allowed.is_ok().then(|| Arc::clone(stored))
}

/// What was to be refreshed stands in for the origin for now, and is not tried again by every request.
fn note_failure(task: &FetchTask, stored: Option<&Arc<StoredResponse>>, failure: RefreshFailure) {
    if let Some(stored) = stored {
        stored.refreshing.failed(task.worker.proxy.clock.now().monotonic, failure);
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
