//! One request to an origin and its answer: counted, timed, and complained of where there is none.
//!
//! In: a request that is ready to be sent. Out: the answer with its times, or why there is none. A fetch asks as often as it
//! must ([`ask`]); an unsafe request is sent once, by a task of its own ([`act`]).

use std::sync::Arc;
use std::time::Duration;

use larder_cache::ExchangeTimes;
use larder_http::fields::content_type;
use larder_observe::{Fetched, RuleId};
use larder_origin::{OriginFailure, OriginRequest, OriginResponse, Progress};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::fetch;
use crate::invalidation::Writing;
use crate::settings::OriginChoice;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;

/// What an origin was asked, and what came of it.
pub(crate) struct OriginReply {
    /// How it went; `None` where the site names no origin.
    pub(crate) fetched: Option<Arc<Fetched>>,
    pub(crate) answer: Result<(Box<OriginResponse>, ExchangeTimes), Failure>,
}

/// Asks an origin for a request of a rule, counting. The fields of the answer are completed.
// Not an `async fn`, which would keep the request a second time while it waits.
pub(crate) fn ask(
    worker: &Arc<Worker>,
    worker_plan: &WorkerPlan,
    (origin, rule): (usize, RuleId),
    request: OriginRequest,
) -> impl Future<Output = OriginReply> + Send {
    // Sites name origins of their own plan.
    let request = OriginRequest { received: worker.metrics.received_by(rule), ..request };
    let asked = worker_plan.origin(origin).map(|(choice, origin)| (choice, origin.send(request)));
    async move {
        let Some((choice, sent)) = asked else {
            return OriginReply { fetched: None, answer: Err(Failure::FETCH_LOST) };
        };
        let (begun, wanted) = (Instant::now(), worker.proxy.clock.now());
        let (fetched, answer) = match sent.await {
            Ok(mut answer) => {
                // Queueing and connecting do not make an answer old (RFC 9111 4.2.3).
                let on_the_way = begun.elapsed().saturating_sub(answer.timing.first_byte);
                let response = worker.proxy.clock.now();
                let times = ExchangeTimes { request: wanted.later(on_the_way), response };
                worker.metrics.origin_answered(choice.id, rule, times.delay());
                fetch::complete(&mut answer.fields, times.response);
                (told(choice, &answer, begun.elapsed()), Ok((answer, times)))
            }
            Err(error) => {
                worker.proxy.complain(&choice.settings.name, &error);
                let failure = Failure {
                    status: error.status(),
                    detail: error.token(),
                    dead: error.is_dead(),
                    queued: error.retry_after().is_some(),
                };
                (failed(choice, error, begun.elapsed()), Err(failure))
            }
        };
        OriginReply { fetched: Some(Arc::new(fetched)), answer }
    }
}

/// How it went where an answer came.
fn told(choice: &OriginChoice, answer: &OriginResponse, took: Duration) -> Fetched {
    Fetched {
        origin: Arc::clone(&choice.name),
        server: Some(Arc::clone(&answer.server)),
        attempts: answer.attempts,
        is_reused: answer.reused,
        took,
        queue: answer.timing.queue,
        connect: answer.timing.connect,
        first_byte: Some(answer.timing.first_byte),
        status: Some(answer.status),
        error: None,
    }
}

/// How it went where none came.
fn failed(choice: &OriginChoice, failure: OriginFailure, took: Duration) -> Fetched {
    Fetched {
        origin: Arc::clone(&choice.name),
        error: Some(failure.token()),
        server: failure.server,
        attempts: failure.attempts,
        is_reused: false,
        took,
        queue: failure.queue,
        connect: None,
        first_byte: None,
        status: None,
    }
}

/// What a request that was sent brought, and what was made of it at once.
pub(crate) struct Acted<S> {
    /// How it went, as far as that is known.
    pub(crate) fetched: Option<Arc<Fetched>>,
    pub(crate) answer: Result<(Box<OriginResponse>, ExchangeTimes, S), Failure>,
}

/// An unsafe request: a task of its own once it is sent, because its answer says what has to go from the cache, whether
/// its client is still there to hear it or not. One that still queues ends with its client, a call of gRPC always does, and an upload that is cut
/// ends it, as everywhere. `settle` is called once with what the origin answered, or with nothing where it may have acted
/// and did not say. The client has its answer once what `settle` has invalidated is written down, or that took too long.
pub(crate) fn act<S: Send + 'static>(
    worker: &Arc<Worker>,
    worker_plan: &Arc<WorkerPlan>,
    asked: (usize, RuleId),
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
        let OriginReply { fetched, answer } = tokio::select! {
            answered = ask(&worker, &worker_plan, asked, request) => answered,
            () = left => {
                // Where nothing of it was sent, nothing came of it; and perhaps its client asks again.
                if progress.is_written() {
                    settle(None);
                }
                return;
            }
        };
        let answer = match answer {
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
        let _ = give.send(Acted { fetched, answer });
    });
    take
}
