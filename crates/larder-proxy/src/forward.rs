//! An origin fetch: a task of its own, which outlives the client that caused it.
//!
//! In: a [`Job`] and the guard of its flight. Out: what the leader gets ([`Share`]), what the followers hear, and what
//! is stored. Once a response is known to be storable and its room is reserved, the fetch ends by itself; anything
//! else ends with its last reader. However this task ends, the guard tells the followers.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, StatusCode};
use larder_cache::{ExchangeTimes, Freshness, Storability, StoredHead, Updated};
use larder_http::body::{Body, BodyError};
use larder_http::message::RequestHead;
use larder_origin::{OriginError, OriginRequest, OriginResponse};
use larder_store::{Growing, Reader, StoredBody, StoredResponse};
use smallvec::SmallVec;
use tokio::sync::oneshot;

use crate::collapse::{FlightGuard, Landing, Phase};
use crate::exchange::{NotStored, NotStoredLabel};
use crate::failure::Failure;
use crate::fetch::{self, Hop};
use crate::fill::{Around, Filled, fill};
use crate::proxy::{Furnished, Worker};
use crate::settings::RuleSettings;

/// What a fetch needs.
pub(crate) struct Job {
    pub(crate) worker: Arc<Worker>,
    pub(crate) furnished: Arc<Furnished>,
    pub(crate) settings: Arc<RuleSettings>,
    pub(crate) origin: usize,
    pub(crate) hop: Hop,
    /// Stored responses that the origin may confirm.
    pub(crate) candidates: SmallVec<[Arc<StoredResponse>; 4]>,
    pub(crate) leader: oneshot::Sender<Share>,
}

/// What the client that caused the fetch gets.
pub(crate) enum Share {
    /// A response that is being stored, or at least shared; `seat` holds its place among the readers.
    Landing {
        landing: Arc<Landing>,
        /// Age as the origin sent it.
        origin_age: Option<HeaderValue>,
        seat: Option<Reader>,
    },
    /// A stored response that the origin has confirmed.
    Confirmed(Arc<StoredResponse>),
    /// The origin's answer as it is.
    Passed(Flown),
}

/// An answer on its way to one client.
pub(crate) struct Flown {
    pub(crate) answer: Box<OriginResponse>,
    pub(crate) delay: Duration,
    /// Why it is not stored.
    pub(crate) detail: &'static str,
}

/// Asks an origin, counting. The fields of the answer are completed.
pub(crate) async fn ask(
    worker: &Arc<Worker>,
    furnished: &Furnished,
    origin: usize,
    request: OriginRequest,
) -> Result<(OriginResponse, ExchangeTimes), Failure> {
    // Sites name origins of their own plan.
    let Some((choice, origin)) = furnished.origin(origin) else {
        return Err(Failure::FETCH_LOST);
    };
    let sent = worker.proxy.clock.now();
    match origin.send(request).await {
        Ok(mut answer) => {
            let times = ExchangeTimes {
                request: sent,
                response: worker.proxy.clock.now(),
            };
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
                acted: matches!(
                    error,
                    OriginError::Closed
                        | OriginError::FirstByteTimeout
                        | OriginError::BadResponse(_)
                        | OriginError::HeadTooLarge
                        | OriginError::UnexpectedUpgrade
                ),
            })
        }
    }
}

/// Flies: asks, judges, fills, stores.
pub(crate) async fn fly(job: Job, guard: FlightGuard) {
    let orphan_time = job.furnished.plan.orphan_time;
    let mut candidates = job.candidates.clone();
    let answered = loop {
        let request = request(&job, &guard, &candidates);
        let answered = tokio::select! {
            answered = ask(&job.worker, &job.furnished, job.origin, request) => answered,
            () = abandoned(&guard, orphan_time) => return,
        };
        match answered {
            Err(failure) => return guard.tell(Phase::Failed(failure)),
            Ok((answer, times)) if answer.status == StatusCode::NOT_MODIFIED && !candidates.is_empty() => {
                let confirmed = larder_cache::matches_304(&heads(&candidates), &answer.fields);
                if let Some(stored) = confirmed.and_then(|index| candidates.get(index)).map(Arc::clone) {
                    return confirm(job, guard, &stored, answer, times);
                }
                // It confirms something that is not here: once more, without conditions.
                candidates.clear();
            }
            Ok(answered) => break answered,
        }
    };
    receive(job, guard, answered.0, answered.1).await;
}

fn request(job: &Job, guard: &FlightGuard, candidates: &[Arc<StoredResponse>]) -> OriginRequest {
    let head: &RequestHead = guard.request();
    let sink = Arc::new(guard.interim_sink());
    let mut request = fetch::outgoing(head, Body::Empty, false, job.hop, Some(sink));
    larder_cache::conditional_fields(&heads(candidates), &mut request.fields);
    request
}

fn heads(candidates: &[Arc<StoredResponse>]) -> SmallVec<[&StoredHead; 4]> {
    candidates.iter().map(|stored| &*stored.head).collect()
}

/// Resolves when nobody has been waiting for `orphan_time`.
async fn abandoned(guard: &FlightGuard, orphan_time: Duration) {
    loop {
        tokio::time::sleep(orphan_time).await;
        if guard.waiters() == 0 {
            return;
        }
    }
}

/// A 304: the stored response is good again.
fn confirm(
    job: Job,
    guard: FlightGuard,
    stored: &Arc<StoredResponse>,
    answer: OriginResponse,
    times: ExchangeTimes,
) {
    let Job {
        worker,
        settings,
        leader,
        ..
    } = job;
    let store = &settings.store;
    let renewed = |head: StoredHead| {
        // Without room for its head the response still answers those who wait; it is not kept then.
        let bytes = StoredResponse::overhead_bytes(&head, guard.key());
        let room = store.reserve(bytes);
        let kept = room.is_some();
        let room = room.or_else(|| store.reserve_free(0))?;
        let renewed = StoredResponse {
            variant: stored.variant.clone(),
            head: Arc::new(head),
            body: Arc::clone(&stored.body),
            number: guard.number(),
            room,
        };
        Some((Arc::new(renewed), kept))
    };
    match larder_cache::update(
        &stored.head,
        guard.request(),
        &answer.fields,
        times,
        &settings.policy,
    ) {
        Updated::Stored(head) => {
            let Some((renewed, kept)) = renewed(*head) else {
                return;
            };
            if kept {
                store.replace(guard.key(), stored, Arc::clone(&renewed), || guard.is_valid());
            } else {
                store.remove(guard.key(), stored);
                worker.metrics.not_stored(&NotStoredLabel(NotStored::NoRoom));
            }
            if renewed.head.freshness.is_shareable() {
                let _ = leader.send(Share::Confirmed(Arc::clone(&renewed)));
                guard.tell(Phase::Confirmed(renewed));
            } else {
                let _ = leader.send(Share::Confirmed(renewed));
                guard.tell(Phase::Unshared);
            }
        }
        Updated::NoLongerStorable { fields, reason } => {
            worker
                .metrics
                .not_stored(&NotStoredLabel(NotStored::Rule(reason)));
            if !reason.lies_in_request() {
                store.remove(guard.key(), stored);
            }
            let owner = Arc::clone(&stored.body);
            let body = match owner.length() {
                0 => Body::Empty,
                length => Body::Pieces {
                    owner,
                    range: 0..length,
                },
            };
            let status = stored.head.status;
            let content_length = Some(stored.body.length());
            let answer = OriginResponse {
                status,
                fields,
                body,
                content_length,
                ..answer
            };
            let flown = Flown {
                answer: Box::new(answer),
                delay: times.delay(),
                detail: reason.token(),
            };
            let _ = leader.send(Share::Passed(flown));
            guard.tell(Phase::Unshared);
        }
    }
}

/// A whole answer: is it for everybody, for the store, or for its client alone?
async fn receive(job: Job, guard: FlightGuard, answer: OriginResponse, times: ExchangeTimes) {
    let Job {
        worker,
        furnished,
        settings,
        leader,
        ..
    } = job;
    let request = guard.request();
    let judged = larder_cache::storable(request, answer.status, &answer.fields, times, &settings.policy);
    let freshness = match judged {
        Storability::Storable(freshness) => freshness,
        Storability::NotStorable(reason) => {
            worker
                .metrics
                .not_stored(&NotStoredLabel(NotStored::Rule(reason)));
            if guard.is_shared() && !reason.lies_in_request() {
                mark(&worker, &furnished, &settings, &guard);
            }
            let flown = Flown {
                answer: Box::new(answer),
                delay: times.delay(),
                detail: reason.token(),
            };
            let _ = leader.send(Share::Passed(flown));
            return guard.tell(Phase::Unshared);
        }
    };
    let shareable = freshness.is_shareable();
    if !shareable && guard.is_shared() {
        mark(&worker, &furnished, &settings, &guard);
    }
    let OriginResponse {
        status,
        fields,
        body,
        content_length,
        ..
    } = answer;
    let origin_age = fields.get(http::header::AGE).cloned();
    let (head, room) = prepare(&settings, &guard, status, fields, freshness);
    let declared = body.length().or(content_length);
    let growing = room
        .is_some()
        .then(|| Growing::keep(&settings.store, declared))
        .flatten();
    let stored = growing.is_some();
    let growing = growing.unwrap_or_else(|| Growing::pass(&settings.store, declared));
    let landing = Arc::new(Landing {
        head: Arc::clone(&head),
        body: Arc::clone(&growing),
        stored,
    });
    let seat = growing.reader(None);
    // A leader that has left leaves its place as well.
    let _ = leader.send(Share::Landing {
        landing: Arc::clone(&landing),
        origin_age,
        seat,
    });
    if shareable {
        guard.varies(head.vary.clone());
        if !stored {
            guard.close();
        }
        guard.tell(Phase::Landed(landing));
    } else {
        guard.tell(Phase::Unshared);
    }
    let _cut = AbortOnDrop(&growing);
    let around = Around {
        waiters: || guard.waiters(),
        passing: || guard.close(),
        orphan_time: furnished.plan.orphan_time,
    };
    let commit = |body: &Arc<StoredBody>| {
        if let Some(room) = room {
            keep(&worker, &settings, &guard, head, Arc::clone(body), room);
        }
    };
    match fill(&growing, body, around, commit).await {
        Filled::Kept => {}
        Filled::Passed => worker.metrics.not_stored(&NotStoredLabel(NotStored::NoRoom)),
        Filled::Broken | Filled::Abandoned => {
            worker.metrics.not_stored(&NotStoredLabel(NotStored::Incomplete));
        }
    }
}

/// The head for store and clients, with room for it and its index entry where there is some.
fn prepare(
    settings: &RuleSettings,
    guard: &FlightGuard,
    status: StatusCode,
    fields: http::HeaderMap,
    freshness: Freshness,
) -> (Arc<StoredHead>, Option<larder_store::Reservation>) {
    let head = Arc::new(StoredHead::new(guard.request(), status, fields, freshness));
    let room = settings
        .store
        .reserve(StoredResponse::overhead_bytes(&head, guard.key()));
    (head, room)
}

fn keep(
    worker: &Worker,
    settings: &RuleSettings,
    guard: &FlightGuard,
    head: Arc<StoredHead>,
    body: Arc<StoredBody>,
    room: larder_store::Reservation,
) {
    let response = StoredResponse {
        variant: guard.key().variant().into(),
        head: Arc::clone(&head),
        body,
        number: guard.number(),
        room,
    };
    // What this request would have selected before, it selects no more.
    let replaces = |old: &StoredResponse| old.head.vary.selects(&guard.request().fields);
    let stored = settings
        .store
        .insert(guard.key(), Arc::new(response), replaces, || guard.is_valid());
    if stored {
        worker.metrics.stored(settings.store_id);
    } else {
        worker.metrics.not_stored(&NotStoredLabel(NotStored::Invalidated));
    }
}

fn mark(worker: &Worker, furnished: &Furnished, settings: &RuleSettings, guard: &FlightGuard) {
    // What a range or HEAD brings says nothing about the whole.
    let request = guard.request();
    if request.method == Method::GET && !request.fields.contains_key(http::header::RANGE) {
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
