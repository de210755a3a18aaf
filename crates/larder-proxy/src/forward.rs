//! An origin fetch: a task of its own, which outlives the client that caused it.
//!
//! In: a [`Job`] and the guard of its flight. Out: what the leader gets ([`Share`]), what the followers hear, and what
//! is stored. Once a response is known to be storable and its room is reserved, the fetch ends by itself; anything
//! else ends with its last reader. However this task ends, the guard tells the followers.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, StatusCode};
use larder_cache::{
    Confirmed, ExchangeTimes, Freshness, NotStorable, Offered, Storability, StoredHead, Updated,
};
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
    /// What the origin may confirm.
    pub(crate) offered: Candidates,
    pub(crate) leader: oneshot::Sender<Share>,
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
    /// What the origin said, where that was a 304 to larder's own conditions and so is not the answer's status.
    pub(crate) forward_status: StatusCode,
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
            let times = ExchangeTimes { request: sent, response: worker.proxy.clock.now() };
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

/// An unsafe request: a task of its own, because its answer says what has to go from the cache, whether its client is
/// still there to hear it or not. An upload that is cut ends it, as everywhere. `settle` is called once with what the
/// origin answered, or with nothing where it may have acted and did not say.
pub(crate) fn act(
    worker: &Arc<Worker>,
    furnished: &Arc<Furnished>,
    origin: usize,
    request: OriginRequest,
    settle: impl FnOnce(Option<&OriginResponse>) + Send + 'static,
) -> oneshot::Receiver<Result<(OriginResponse, ExchangeTimes), Failure>> {
    let (give, take) = oneshot::channel();
    let (worker, furnished) = (Arc::clone(worker), Arc::clone(furnished));
    tokio::spawn(async move {
        let answered = ask(&worker, &furnished, origin, request).await;
        match &answered {
            Ok((answer, _)) => settle(Some(answer)),
            Err(failure) if failure.acted => settle(None),
            Err(_) => {}
        }
        // Where the client has left, the answer is dropped, and with it the origin's connection.
        let _ = give.send(answered);
    });
    take
}

/// Flies: asks, judges, fills, stores.
pub(crate) async fn fly(mut job: Job, mut guard: FlightGuard) {
    let orphan_time = job.furnished.plan.orphan_time;
    loop {
        let request = request(&job, &guard);
        let conditional = CONDITIONS.iter().any(|name| request.fields.contains_key(name));
        let asked = ask(&job.worker, &job.furnished, job.origin, request);
        let answered = tokio::select! {
            answered = asked => answered,
            () = abandoned(&mut job.leader, &guard, orphan_time) => return,
        };
        let (answer, times) = match answered {
            Ok(answered) => answered,
            Err(failure) => return guard.tell(Phase::Failed(failure)),
        };
        if answer.status != StatusCode::NOT_MODIFIED {
            return receive(job, guard, answer, times).await;
        }
        if job.offered.is_empty() {
            // Under a mark the conditions are the client's own, and so is the answer to them.
            return match conditional {
                true => receive(job, guard, answer, times).await,
                false => guard.tell(Phase::Failed(Failure::UNASKED_NOT_MODIFIED)),
            };
        }
        if let Some(stored) = job.offered.confirmed_by(&answer.fields)
            && !fetch::varies_on_ours(&answer.fields)
        {
            match confirm(job, guard, &stored, answer, times) {
                None => return,
                Some(again) => (job, guard) = again,
            }
        }
        // It confirms something that is not here, or cannot be used: once more, without conditions.
        job.offered = Candidates::default();
    }
}

const CONDITIONS: [http::HeaderName; 4] = [
    http::header::IF_NONE_MATCH,
    http::header::IF_MODIFIED_SINCE,
    http::header::IF_MATCH,
    http::header::IF_UNMODIFIED_SINCE,
];

fn request(job: &Job, guard: &FlightGuard) -> OriginRequest {
    let head: &RequestHead = guard.request();
    let sink = Arc::new(guard.interim_sink());
    let mut request = fetch::outgoing(head, Body::Empty, false, job.hop, Some(sink));
    job.offered.offered(|offered| larder_cache::conditional_fields(offered, &mut request.fields));
    request
}

/// Resolves when there is nobody left to fetch for: at once where nobody but the leader could want it, else when nobody
/// has been waiting for `orphan_time`.
async fn abandoned(leader: &mut oneshot::Sender<Share>, guard: &FlightGuard, orphan_time: Duration) {
    if !guard.is_shared() {
        return leader.closed().await;
    }
    loop {
        tokio::time::sleep(orphan_time).await;
        if guard.waiters() == 0 {
            return;
        }
    }
}

/// A 304: the stored response is good again. Gives everything back where it cannot be used.
fn confirm(
    job: Job,
    guard: FlightGuard,
    stored: &Arc<StoredResponse>,
    answer: OriginResponse,
    times: ExchangeTimes,
) -> Option<(Job, FlightGuard)> {
    let (worker, store) = (&job.worker, &job.settings.store);
    let request = guard.request();
    let selected = stored.head.vary.selects(&request.fields);
    match larder_cache::update(&stored.head, request, &answer.fields, times, &job.settings.policy) {
        Updated::TooLarge => return Some((job, guard)),
        Updated::Stored(head) => {
            // Without room for its head the response still answers those who wait; it is not kept then.
            let wanted = StoredResponse::overhead_bytes(&head, guard.key());
            let (kept, room) = match store.reserve(wanted) {
                Some(room) => (true, Some(room)),
                None => (false, store.reserve_free(0)),
            };
            let renewed = Arc::new(StoredResponse {
                head: Arc::new(*head),
                body: Arc::clone(&stored.body),
                number: guard.number(),
                room: room?,
            });
            match (kept, selected) {
                (true, true) => {
                    store.replace(guard.key(), stored, Arc::clone(&renewed), || guard.is_valid());
                }
                // The origin chose a variant that is there for other requests: it stays there for them.
                (true, false) => {
                    let replaces = |old: &StoredResponse| old.head.vary.selects(&request.fields);
                    store.insert(guard.key(), Arc::clone(&renewed), replaces, || guard.is_valid());
                }
                (false, true) => store.remove(guard.key(), stored),
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
                store.remove(guard.key(), stored);
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
            pass(job.leader, &guard, (StatusCode::NOT_MODIFIED, answer), times, reason);
        }
    }
    None
}

/// The answer is for the leader alone. Followers go alone as well, or, where only the leader's request is why, the next
/// of them leads.
fn pass(
    leader: oneshot::Sender<Share>,
    guard: &FlightGuard,
    (forward_status, answer): (StatusCode, OriginResponse),
    times: ExchangeTimes,
    reason: NotStorable,
) {
    let answer = Box::new(answer);
    let _ = leader.send(Share::Passed(Flown {
        answer,
        forward_status,
        delay: times.delay(),
        detail: reason.token(),
    }));
    // What a range brings is no use to anybody else with the same one either.
    let its_own = reason.lies_in_request() && !guard.request().fields.contains_key(http::header::RANGE);
    guard.tell(if its_own { Phase::NotForOthers } else { Phase::Unshared });
}

/// A whole answer: is it for everybody, for the store, or for its client alone?
async fn receive(job: Job, guard: FlightGuard, answer: OriginResponse, times: ExchangeTimes) {
    let Job { worker, furnished, settings, leader, .. } = job;
    let request = guard.request();
    let judged = match fetch::varies_on_ours(&answer.fields) {
        true => Storability::NotStorable(NotStorable::VaryAny),
        false => larder_cache::storable(request, answer.status, &answer.fields, times, &settings.policy),
    };
    let freshness = match judged {
        Storability::Storable(freshness) => freshness,
        Storability::NotStorable(reason) => {
            worker.metrics.not_stored(&NotStoredLabel(NotStored::Rule(reason)));
            if guard.is_shared() && !reason.lies_in_request() {
                mark(&worker, &furnished, &settings, &guard);
            }
            return pass(leader, &guard, (answer.status, answer), times, reason);
        }
    };
    let shareable = freshness.is_shareable();
    if !shareable && guard.is_shared() {
        mark(&worker, &furnished, &settings, &guard);
    }
    let OriginResponse { status, fields, body, content_length, .. } = answer;
    let origin_age = fields.get(http::header::AGE).cloned();
    let (head, room) = prepare(&settings, &guard, status, fields, freshness);
    let declared = body.length().or(content_length);
    let growing = room.is_some().then(|| Growing::keep(&settings.store, declared)).flatten();
    let stored = growing.is_some();
    let growing = growing.unwrap_or_else(|| Growing::pass(&settings.store, declared));
    let landing = Arc::new(Landing { head: Arc::clone(&head), body: Arc::clone(&growing), stored });
    let seat = growing.reader(None);
    // A leader that has left leaves its place as well.
    let _ = leader.send(Share::Landing { landing: Arc::clone(&landing), origin_age, seat });
    if shareable {
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
    let room = settings.store.reserve(StoredResponse::overhead_bytes(&head, guard.key()));
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
    let response = StoredResponse { head: Arc::clone(&head), body, number: guard.number(), room };
    // What this request would have selected before, it selects no more.
    let replaces = |old: &StoredResponse| old.head.vary.selects(&guard.request().fields);
    let stored = settings.store.insert(guard.key(), Arc::new(response), replaces, || guard.is_valid());
    if stored {
        worker.metrics.stored(settings.store_id);
    } else {
        let reason = if guard.is_valid() { NotStored::Superseded } else { NotStored::Invalidated };
        worker.metrics.not_stored(&NotStoredLabel(reason));
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
