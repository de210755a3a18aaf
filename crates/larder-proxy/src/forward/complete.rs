//! A stored part that lies on disks, and the rest of it, which is arriving: the whole, as if the origin had sent it
//! (RFC 9111 3.4).
//!
//! In: the part, what it lacks, and the origin's answer for the first gap, or for everything. Out: a growing body that has the
//! part's pieces already, and the answer that fills it. Nothing of the part is read or written again.
//! Everything is made sure of before anybody is told: what cannot be completed is fetched as a whole.

use std::sync::Arc;

use http::StatusCode;
use larder_cache::completion::{is_of, keep_names, whole_fields};
use larder_cache::part::Gap;
use larder_cache::{ExchangeTimes, Storability};
use larder_http::body::{Body, BodyError, Stream};
use larder_origin::OriginResponse;
use larder_store::{StoredResponse, StreamingBody};

use super::ask::ask;
use super::receive::judge;
use super::task::FetchTask;
use crate::collapse::FlightGuard;
use crate::fetch;
use crate::fill::{AskAgain, Rest, without};

/// Whether an answer with everything is as good as one with the gaps.
pub(super) fn is_same_whole(part: &StoredResponse, gap: &Gap, answer: &OriginResponse) -> bool {
    let announced = answer.body.length().or(answer.content_length);
    answer.status == StatusCode::OK && announced == Some(gap.complete) && is_of(&part.head, &answer.fields)
}

/// The part's body as one that grows, and the answer as that of the whole. `None` where it may not be stored, or the part is not
/// there any more.
pub(super) fn seed(
    task: &FetchTask,
    guard: &FlightGuard,
    (part, gap): (&Arc<StoredResponse>, Gap),
    answer: Box<OriginResponse>,
    times: ExchangeTimes,
) -> Option<(Arc<StreamingBody>, Box<OriginResponse>)> {
    let complete = gap.complete;
    let is_whole = answer.status == StatusCode::OK;
    let mut fields = whole_fields(&part.head.all_fields(), &answer.fields);
    keep_names(&part.head, &mut fields);
    let whole = OriginResponse {
        status: StatusCode::OK,
        fields,
        content_length: Some(complete),
        body: Body::Empty,
        ..*answer
    };
    let Storability::Storable(_) = judge(guard.request(), &whole, times, &task.settings.policy) else {
        return None;
    };
    let store = task.settings.place_for(whole.status, &whole.fields, Some(complete)).store;
    let runs = part.head.part.as_ref()?.runs();
    let streaming =
        StreamingBody::complete(store, guard.key(), &part.body, runs, complete, guard.audience())?;
    let stream: Stream = match is_whole {
        true => Box::pin(without(gap, answer.body)),
        false => {
            let again = asking(task, guard, part, &gap);
            Box::pin(Rest::new(gap, answer.body, again))
        }
    };
    let body = Body::Stream { length: Some(complete), stream };
    Some((streaming, Box::new(OriginResponse { body, ..whole })))
}

/// How the further gaps are asked for: as the first was, by the same request.
fn asking(task: &FetchTask, guard: &FlightGuard, part: &Arc<StoredResponse>, gap: &Gap) -> AskAgain {
    let (worker, worker_plan, part) =
        (Arc::clone(&task.worker), Arc::clone(&task.worker_plan), Arc::clone(part));
    let (head, content, gap) = (Arc::clone(guard.request()), task.content.clone(), gap.clone());
    let (origin, to) = (task.asks(), task.to());
    Box::new(move |number| {
        let mut request = fetch::outgoing(&head, content.clone().into(), false, to.clone(), None);
        gap.request_fields(number, &part.head, &mut request.fields);
        let (worker, worker_plan) = (Arc::clone(&worker), Arc::clone(&worker_plan));
        let (part, gap) = (Arc::clone(&part), gap.clone());
        Box::pin(async move {
            let (answer, _) =
                ask(&worker, &worker_plan, origin, request).await.answer.map_err(|_| BodyError::Lost)?;
            let is_it = answer.status == StatusCode::PARTIAL_CONTENT
                && gap.filled_by(number, &part.head, &answer.fields);
            match is_it {
                true => Ok(answer.body),
                // A failure of the origin says nothing about the part; anything else says that it is outdated.
                false if answer.status.is_server_error() => Err(BodyError::Lost),
                false => Err(BodyError::Framing),
            }
        })
    })
}
