//! Steps that involve a client: what is sent, how, and who reads the answer.
//!
//! In: a step. Out: answers with the connections they came on. Clients in the background are tasks: they end when
//! the test finishes or aborts them, or when the scenario ends and its runtime with it. A request counts as sent
//! when its bytes have been handed to the kernel; only then does the next step begin.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::format::{After, Step};
use crate::client::{Connection, Content, Progress, Request, Response, exchange_http2};
use crate::template::{Context, expand};
use crate::{Error, seeded};

/// The host that clients ask for where a step names none.
pub(super) const HOST: &str = "example.test";

/// What one client received, and its connection where it has one.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) response: Result<Response, Error>,
    pub(super) connection: Option<Connection>,
}

/// Clients of one step that runs in the background.
#[derive(Debug)]
pub(super) struct Crowd {
    pub(super) progress: Vec<Progress>,
    leave: watch::Sender<bool>,
    tasks: Vec<JoinHandle<Answered>>,
}

/// The request that a step describes.
pub(super) fn request_of(
    step: &Step,
    context: &Context<'_>,
    remembered: &BTreeMap<String, String>,
) -> Request {
    if let Some(raw) = &step.raw {
        return Request::raw(crate::wire::to_bytes(&expand(raw, context)));
    }
    let (method, target) = match (&step.get, &step.head, &step.post, &step.request) {
        (Some(target), ..) => ("GET", target.as_str()),
        (_, Some(target), ..) => ("HEAD", target.as_str()),
        (_, _, Some(target), _) => ("POST", target.as_str()),
        (.., request) => {
            request.as_deref().and_then(|request| request.split_once(' ')).unwrap_or(("GET", "/"))
        }
    };
    let mut request = Request::new(method, target, step.host.as_deref().unwrap_or(HOST));
    if step.host.as_deref() == Some("") {
        request.host = None;
    }
    if let Some(version) = &step.version {
        request.version = version.clone();
    }
    for line in &step.fields {
        if let Some((name, value)) = line.split_once(": ") {
            let value = recall(expand(value, context), remembered);
            request = request.field(name, &value);
        }
    }
    let lines = step.trailers.iter().filter_map(|line| line.split_once(": "));
    request.trailers = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let body = match (&step.body, step.body_bytes) {
        (Some(body), _) => Some(Bytes::from(body.clone().into_bytes())),
        (None, Some(length)) => Some(seeded::bytes_of(target, 0, length)),
        (None, None) => None,
    };
    request.content = match (body, step.chunk_bytes) {
        (None, _) => Content::None,
        (Some(body), Some(most)) => Content::Chunks(body, most),
        (Some(body), None) if step.chunked => Content::Chunked(body),
        (Some(body), None) => Content::Length(body),
    };
    request
}

/// `text` with what was remembered in the place of its names.
pub(super) fn recall(text: String, remembered: &BTreeMap<String, String>) -> String {
    remembered.iter().fold(text, |text, (name, said)| text.replace(&format!("{{{name}}}"), said))
}

/// Sends each of the requests of a step from a client of its own.
///
/// # Errors
/// Where a client cannot connect or write.
pub(super) async fn start(
    step: &Step,
    requests: Vec<Request>,
    addr: SocketAddr,
    limit: Duration,
) -> Result<Crowd, Error> {
    let (leave, leaving) = watch::channel(false);
    let mut crowd = Crowd { progress: Vec::new(), leave, tasks: Vec::new() };
    for request in requests {
        let progress = match step.pause_at {
            Some(bytes) => Progress::default().pause_at(bytes),
            None => Progress::default(),
        };
        crowd.progress.push(progress.clone());
        let mut leaving = leaving.clone();
        if step.version.as_deref() == Some("h2") {
            crowd.tasks.push(tokio::spawn(async move {
                let response = tokio::select! {
                    response = exchange_http2(addr, &request, &progress, limit) => response,
                    _ = leaving.changed() => Err(Error::Aborted),
                };
                Answered { response, connection: None }
            }));
            continue;
        }
        let mut connection = Connection::open(addr, limit).await?;
        // A server may answer and close before it has read everything: what it said counts, so reading follows.
        let written = connection.write(&request.to_http1()).await;
        if step.after == Some(After::HalfClose) {
            connection.close_write().await?;
        }
        crowd.tasks.push(tokio::spawn(async move {
            let response = tokio::select! {
                response = connection.read_response(&request.method, &progress) => response,
                _ = leaving.changed() => {
                    connection.abort();
                    return Answered { response: Err(Error::Aborted), connection: None };
                }
            };
            let response = match (response, written) {
                (Err(_), Err(error)) => Err(error),
                (response, _) => response,
            };
            Answered { response, connection: Some(connection) }
        }));
    }
    Ok(crowd)
}

/// Sends and leaves without reading an answer.
///
/// # Errors
/// Where the client cannot connect or write.
pub(super) async fn send_and_leave(
    request: &Request,
    abort: bool,
    addr: SocketAddr,
    limit: Duration,
) -> Result<(), Error> {
    let mut connection = Connection::open(addr, limit).await?;
    connection.write(&request.to_http1()).await?;
    if abort {
        connection.abort();
    }
    Ok(())
}

/// Writes all requests at once and reads their answers in order.
///
/// # Errors
/// Where the client cannot connect or write.
pub(super) async fn pipeline(
    requests: &[Request],
    addr: SocketAddr,
    limit: Duration,
) -> Result<(Vec<Result<Response, Error>>, Connection), Error> {
    let mut connection = Connection::open(addr, limit).await?;
    let bytes: Vec<u8> = requests.iter().flat_map(Request::to_http1).collect();
    connection.write(&bytes).await?;
    let mut answers = Vec::new();
    for request in requests {
        answers.push(connection.read_response(&request.method, &Progress::default()).await);
    }
    Ok((answers, connection))
}

impl Crowd {
    /// Waits until every client has its answer.
    ///
    /// # Cancel safety
    /// Cancelled, the clients go on and their answers are lost.
    pub(super) async fn finish(self) -> Vec<Answered> {
        let mut answered = Vec::new();
        for task in self.tasks {
            let lost = |_| Answered { response: Err(Error::Aborted), connection: None };
            answered.push(task.await.unwrap_or_else(lost));
        }
        answered
    }

    /// Resets all connections.
    pub(super) async fn abort(self) {
        self.leave.send_replace(true);
        // Each task has reset its connection when it ends.
        drop(self.finish().await);
    }

    /// Lets paused readers go on.
    pub(super) fn resume(&self) {
        for progress in &self.progress {
            progress.resume();
        }
    }
}
