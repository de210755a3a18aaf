//! An origin fetch: a task of its own, which outlives the client that caused it.
//!
//! In: a [`FetchTask`] and the guard of its flight. Out: a [`FlightOutcome`] for all who wait, and what
//! is stored. Once a response is known to be storable and its room is reserved, the fetch ends by itself; anything
//! else ends with its last reader. However this task ends, the guard tells the followers.
//!
//! What comes back is confirmed (304, and 200 to HEAD: [`mod@confirm`]) or received ([`mod@receive`]), and in the end kept
//! ([`mod@keep`]).

mod complete;
mod confirm;
mod gaps;
mod keep;
mod receive;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use larder_cache::part::Gap;
use larder_cache::{Confirmed, ExchangeTimes, Offered, StaleCause, StoredHead};
use larder_http::fields::content_type;
use larder_http::message::RequestHead;
use larder_origin::{Affinity, OriginRequest, OriginResponse, Progress};
use larder_store::{CacheKey, RefreshFailure, StoredResponse};
use smallvec::SmallVec;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::asked::Asker;
use crate::background::ORPHAN_TIMES;
use crate::collapse::{FlightGuard, FlightOutcome, Kept};
use crate::failure::Failure;
use crate::fetch::{self, ClientHop};
use crate::invalidation::Writing;
use crate::proxy::{Worker, WorkerPlan};
use crate::settings::RuleSettings;
use complete::is_same_whole;
use confirm::{confirm, update_by_head};
use gaps::Behind;
use receive::pass;
pub(crate) use receive::{judge, receive};

/// What a fetch needs.
pub(crate) struct FetchTask {
    pub(crate) worker: Arc<Worker>,
    pub(crate) worker_plan: Arc<WorkerPlan>,
    pub(crate) settings: Arc<RuleSettings>,
    pub(crate) origin: usize,
    /// For whom the origin is asked.
    pub(crate) asker: Asker,
    /// What the origin's server is chosen by, where the origin has it so.
    pub(crate) hash: Option<u64>,
    /// The content of a QUERY.
    pub(crate) content: Bytes,
    /// What the origin may confirm.
    pub(crate) offered: Candidates,
    /// What was stored for the request: what it brings takes its place, or ends it.
    pub(crate) before: Option<Arc<StoredResponse>>,
    /// The URL has not been asked for often enough for its response to be stored.
    pub(crate) seldom: bool,
    /// A stored part, and what of the whole is asked for: only the rest.
    pub(crate) completing: Option<(Arc<StoredResponse>, Gap)>,
    /// It follows a client's fetch, for what that could not keep.
    pub(crate) is_behind: bool,
}

impl FetchTask {
    /// Whether it is for gaps that nobody is waiting for: then the whole is not asked for in their place.
    fn is_unwanted(&self, guard: &FlightGuard) -> bool {
        self.is_behind && guard.audience().waiters() == 0
    }

    /// How long it goes on with nobody there: longer where nobody ever was.
    fn orphan_time(&self) -> Duration {
        let times = if self.asker.hop.is_waiting { 1 } else { ORPHAN_TIMES };
        self.worker_plan.plan.orphan_time.saturating_mul(times)
    }

    /// For whom the origin is asked, and which of its servers.
    fn to(&self) -> (ClientHop, Affinity) {
        (self.asker.hop, Affinity { hash: self.hash, server: self.asker.server })
    }
}

/// Stored responses that the origin may confirm.
#[derive(Clone, Default)]
pub(crate) struct Candidates {
    /// The one that the request selects.
    pub(crate) selected: Option<Arc<StoredResponse>>,
    /// Those of other requests to the same key, newest first.
    pub(crate) others: SmallVec<[Arc<StoredResponse>; 4]>,
}

impl Candidates {
    fn is_empty(&self) -> bool {
        self.selected.is_none() && self.others.is_empty()
    }

    /// Lets `look` see them as the rules do.
    fn offered<R>(&self, look: impl FnOnce(Offered<'_>) -> R) -> R {
        let others: SmallVec<[&StoredHead; 4]> = self.others.iter().map(|stored| &*stored.head).collect();
        let selected = self.selected.as_ref().map(|stored| &*stored.head);
        look(Offered { selected, others: &others })
    }

    /// The one that a 304 with these fields confirms.
    fn confirmed_by(&self, fields: &HeaderMap) -> Option<Arc<StoredResponse>> {
        match self.offered(|offered| larder_cache::matches_304(offered, fields))? {
            Confirmed::Selected => self.selected.clone(),
            Confirmed::Other(index) => self.others.get(index).cloned(),
        }
    }
}

/// Asks an origin, counting. The fields of the answer are completed.
pub(crate) async fn ask(
    worker: &Arc<Worker>,
    worker_plan: &WorkerPlan,
    origin: usize,
    request: OriginRequest,
) -> Result<(OriginResponse, ExchangeTimes), Failure> {
    // Sites name origins of their own plan.
    let Some((choice, origin)) = worker_plan.origin(origin) else {
        return Err(Failure::FETCH_LOST);
    };
    let (begun, wanted) = (Instant::now(), worker.proxy.clock.now());
    match origin.send(request).await {
        Ok(mut answer) => {
            // Queueing and connecting do not make an answer old (RFC 9111 4.2.3).
            let on_the_way = begun.elapsed().saturating_sub(answer.timing.first_byte);
            let response = worker.proxy.clock.now();
            let times = ExchangeTimes { request: wanted.later(on_the_way), response };
            worker.metrics.origin_answered(choice.id, times.delay());
            fetch::complete(&mut answer.fields, times.response);
            Ok((answer, times))
        }
        Err(error) => {
            worker.proxy.complain(&choice.settings.name, &error);
            Err(Failure {
                status: error.status(),
                detail: error.token(),
                dead: error.is_dead(),
                queued: error.retry_after().is_some(),
            })
        }
    }
}

/// What a request that was sent brought, and what was made of it at once.
pub(crate) type Acted<S> = Result<(OriginResponse, ExchangeTimes, S), Failure>;

/// An unsafe request: a task of its own once it is sent, because its answer says what has to go from the cache, whether
/// its client is still there to hear it or not. One that still queues ends with its client, a call of gRPC always does, and an upload that is cut
/// ends it, as everywhere. `settle` is called once with what the origin answered, or with nothing where it may have acted
/// and did not say. The client has its answer once what `settle` has invalidated is written down, or that took too long.
pub(crate) fn act<S: Send + 'static>(
    worker: &Arc<Worker>,
    worker_plan: &Arc<WorkerPlan>,
    origin: usize,
    request: OriginRequest,
    settle: impl FnOnce(Option<&OriginResponse>) -> (S, Writing) + Send + 'static,
) -> oneshot::Receiver<Acted<S>> {
    let (mut give, take) = oneshot::channel();
    let (worker, worker_plan) = (Arc::clone(worker), Arc::clone(worker_plan));
    // A call that its client gives up is to be given up by the server: the reset is a message of the protocol.
    let ends_with_client = content_type::is_grpc(&request.fields);
    let progress = Progress::new();
    let request = OriginRequest { progress: Some(Arc::clone(&progress)), ..request };
    tokio::spawn(async move {
        let left = async {
            tokio::select! {
                () = give.closed() => {}
                () = progress.seated(), if !ends_with_client => std::future::pending().await,
            }
        };
        let asked = tokio::select! {
            asked = ask(&worker, &worker_plan, origin, request) => asked,
            () = left => {
                // Where nothing of it was sent, nothing came of it; and perhaps its client asks again.
                if progress.is_written() {
                    settle(None);
                }
                return;
            }
        };
        let acted = match asked {
            Ok((answer, times)) => {
                let (settled, writing) = settle(Some(&answer));
                writing.wait().await;
                Ok((answer, times, settled))
            }
            Err(failure) => {
                // An upload that its client broke off never was a whole request.
                if progress.is_written() && !failure.status.is_client_error() {
                    settle(None).1.wait().await;
                }
                Err(failure)
            }
        };
        // Where the client has left, the answer is dropped, and with it the origin's connection.
        let _ = give.send(acted);
    });
    take
}

/// Flies: asks, judges, fills, stores.
pub(crate) async fn fly(mut task: FetchTask, mut guard: FlightGuard) {
    let orphan_time = task.orphan_time();
    // What may stand in for the origin, whatever it is offered in the end.
    let stood = task.offered.selected.clone();
    loop {
        let request = request(&task, &guard);
        let conditional = CONDITIONS.iter().any(|name| request.fields.contains_key(name));
        let asked = ask(&task.worker, &task.worker_plan, task.origin, request);
        let answered = tokio::select! {
            answered = asked => answered,
            () = abandoned(&guard, orphan_time) => {
                // Everybody has given up on an origin that said nothing all that time.
                if guard.is_shared() {
                    note_failure(&task, stood.as_ref(), RefreshFailure::Dead);
                }
                return;
            }
        };
        let (answer, times) = match answered {
            Ok(answered) => answered,
            Err(failure) => {
                // That there was no room for a refresh says nothing of the origin.
                if failure.dead && (!failure.queued || guard.has_leader()) {
                    note_failure(&task, stood.as_ref(), RefreshFailure::Dead);
                }
                return guard.conclude(FlightOutcome::Failed(failure));
            }
        };
        if let Some((part, gap)) = task.completing.take() {
            let lies_on_disks = !part.body.is_in_memory();
            match answer.status {
                status
                    if lies_on_disks
                        && (fills(&gap, &part, &answer) || is_same_whole(&part, &gap, &answer)) =>
                {
                    match complete::seed(&task, &guard, (&part, gap), answer, times) {
                        Some(seeded) => {
                            let behind = Behind::after(&task, &guard);
                            let left =
                                receive::receive_gaps(task, guard, &part, (status, seeded), times).await;
                            if let Some((behind, left)) = behind.zip(left) {
                                behind.begin(left);
                            }
                            return;
                        }
                        None if task.is_unwanted(&guard) => return,
                        // It went meanwhile, or the whole is not to be stored: once more, for all of it.
                        None => continue,
                    }
                }
                StatusCode::PARTIAL_CONTENT if !lies_on_disks && fills(&gap, &part, &answer) => {
                    return receive::receive_rest(task, guard, (&part, &gap), answer, times).await;
                }
                // Nothing that fits: once more, for the whole. What is there is of something else, or of nobody knows what.
                StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                    task.settings.remove(&guard.key().of_parts(), &part);
                    if task.is_unwanted(&guard) {
                        return;
                    }
                    continue;
                }
                status if task.is_unwanted(&guard) => {
                    // Of something else as well.
                    if status == StatusCode::OK {
                        task.settings.remove(&guard.key().of_parts(), &part);
                    }
                    return;
                }
                _ => {}
            }
        }
        if let Some(stored) = &stood {
            stored.refreshing.recovered();
        }
        if answer.status != StatusCode::NOT_MODIFIED {
            if let Some(stored) = stand_in(&task, (guard.key(), stood.as_ref()), answer.status) {
                note_failure(&task, stood.as_ref(), RefreshFailure::Error);
                return guard.conclude(FlightOutcome::StandIn { stored, status: answer.status });
            }
            if let Some(freshness) = update_by_head(&task, &guard, &answer, times) {
                let answer = (answer.status, answer);
                return pass(&task.settings, &guard, answer, times, Kept::Updated(freshness));
            }
            return receive(task, guard, answer, times).await;
        }
        if task.offered.is_empty() {
            // Under a mark the conditions are the client's own, and so is the answer to them.
            return match conditional {
                true => receive(task, guard, answer, times).await,
                false => guard.conclude(FlightOutcome::Failed(Failure::UNASKED_NOT_MODIFIED)),
            };
        }
        if let Some(stored) = task.offered.confirmed_by(&answer.fields)
            && !fetch::varies_on_ours(&answer.fields)
        {
            match confirm(task, guard, &stored, answer, times) {
                None => return,
                Some(again) => (task, guard) = again,
            }
        }
        // It confirms something that is not here, or cannot be used: once more, without conditions.
        task.offered = Candidates::default();
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
    let head = proxy.invalidations.head_of(key, stored).unwrap_or(Cow::Borrowed(&*stored.head));
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

/// Resolves when there is no client left to fetch for: at once where nobody but the leader could want the answer, else
/// when nobody has waited for `orphan_time`.
async fn abandoned(guard: &FlightGuard, orphan_time: Duration) {
    let audience = guard.audience();
    loop {
        audience.empty().await;
        let is_over = !guard.is_shared() || timeout(orphan_time, audience.present()).await.is_err();
        if is_over {
            return;
        }
    }
}
