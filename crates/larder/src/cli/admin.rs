//! A running larder, asked at its admin address.
//!
//! In: where it is, its token, and a request. Out: its answer, or one sentence about what is in the way. Shared by all
//! commands that ask a running larder, so that each takes the same options and says the same about them.
//! Every wait has a limit. A stream of events may go on for good, but not without a word.

mod options;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub(super) use options::{AddressArguments, AdminArguments, reachable};

/// How long the admin address may take to accept.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long an answer may take to begin: an origin's own limits for a head, and some more.
const ANSWER_TIME: Duration = Duration::from_secs(90);
/// How long it may be silent within an answer.
const SILENCE_TIME: Duration = Duration::from_secs(60);
/// How long the head of a stream of events may take: it waits for no origin.
const STREAM_HEAD_TIME: Duration = Duration::from_secs(10);
/// How long such a stream may be silent: there is a comment in it every 15 s.
const STREAM_SILENCE_TIME: Duration = Duration::from_secs(45);
/// Its media type.
const EVENT_STREAM: &str = "text/event-stream";
/// The largest answer that is read as a whole.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What is in the way.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdminClientError {
    #[error("{0}")]
    Address(String),
    #[error("{0}")]
    Config(larder_config::Errors),
    #[error("{0} says admin = false: a larder without an admin address cannot be asked")]
    Off(String),
    #[error("no larder answers at {0}")]
    NotRunning(String, #[source] std::io::Error),
    #[error("no answer from {0} within {limit} s", limit = .1.as_secs())]
    Time(String, Duration),
    #[error("the exchange with {0} broke")]
    Exchange(String, #[source] Cause),
    #[error(
        "the larder at {0} wants its admin token: put it into LARDER_ADMIN_TOKEN, or read it with -c FILE"
    )]
    TokenWanted(String),
    #[error("the larder at {0} has another admin token")]
    TokenWrong(String),
    #[error("the token cannot stand in a field")]
    Token,
    #[error("{1}")]
    Refused(StatusCode, String),
    #[error("what answers at {0} is no larder that {1} (status {2})")]
    NoLarder(String, &'static str, StatusCode),
    #[error("cannot start")]
    Start(#[source] std::io::Error),
}

impl AdminClientError {
    /// Whether it was the question that was wrong.
    pub(super) fn is_of_the_question(&self) -> bool {
        matches!(self, Self::Refused(StatusCode::BAD_REQUEST, _) | Self::Address(_))
    }
}

/// A running larder, as far as it is known before it has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunningLarder {
    /// Host and port of its admin address.
    admin: String,
    token: Option<String>,
}

/// An answer that is good.
pub(super) struct Answer {
    admin: String,
    what: &'static str,
    status: StatusCode,
    body: Incoming,
    /// How long it may be silent.
    silence: Duration,
}

/// What a request has beside its target.
enum Wanted {
    Answer,
    AnswerTo(Bytes),
    Events,
}

impl RunningLarder {
    /// Host and port of its admin address.
    pub(super) fn address(&self) -> &str {
        &self.admin
    }

    /// Asks. `what` is what the answering larder has to be one that does: "explains".
    ///
    /// # Errors
    /// Nobody answers, or not with 200.
    pub(super) async fn ask(
        &self,
        method: Method,
        target: &str,
        what: &'static str,
    ) -> Result<Answer, AdminClientError> {
        let (answer, _) = self.answer(method, target, what, Wanted::Answer).await?;
        match answer.status {
            StatusCode::OK => Ok(answer),
            _ => Err(answer.refusal(self.token.is_some()).await),
        }
    }

    /// Asks for a stream of events, which may go on for as long as something comes.
    ///
    /// # Errors
    /// As [`Self::ask`], or the answer is no such stream.
    pub(super) async fn ask_for_events(
        &self,
        target: &str,
        what: &'static str,
    ) -> Result<Answer, AdminClientError> {
        let (answer, is_stream) = self.answer(Method::GET, target, what, Wanted::Events).await?;
        match answer.status {
            StatusCode::OK if is_stream => Ok(Answer { silence: STREAM_SILENCE_TIME, ..answer }),
            StatusCode::OK => Err(AdminClientError::NoLarder(answer.admin, what, answer.status)),
            _ => Err(answer.refusal(self.token.is_some()).await),
        }
    }

    /// The answer, and whether it is a stream of events.
    async fn answer(
        &self,
        method: Method,
        target: &str,
        what: &'static str,
        wanted: Wanted,
    ) -> Result<(Answer, bool), AdminClientError> {
        let Self { admin, token } = self;
        let limit = if let Wanted::Events = wanted { STREAM_HEAD_TIME } else { ANSWER_TIME };
        let exchange = exchange(method, target, admin, token.as_deref(), wanted);
        let Ok(answered) = tokio::time::timeout(limit, exchange).await else {
            return Err(AdminClientError::Time(admin.clone(), limit));
        };
        let (head, body) = answered?.into_parts();
        let media_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = media_type.is_some_and(|value| value.starts_with(EVENT_STREAM));
        let (admin, status, silence) = (admin.clone(), head.status, SILENCE_TIME);
        Ok((Answer { admin, what, status, body, silence }, is_stream))
    }

    /// Posts JSON, and reads the answer: what larder says where it does that, with a status that `is_said` takes for a word of
    /// its own, too.
    ///
    /// # Errors
    /// As [`Self::ask`], for every other status.
    pub(super) async fn post(
        &self,
        target: &str,
        what: &'static str,
        json: Bytes,
        is_said: impl Fn(StatusCode) -> bool,
    ) -> Result<(StatusCode, Bytes), AdminClientError> {
        let (answer, _) = self.answer(Method::POST, target, what, Wanted::AnswerTo(json)).await?;
        let status = answer.status;
        match status == StatusCode::OK || is_said(status) {
            true => Ok((status, answer.bytes().await?)),
            false => Err(answer.refusal(self.token.is_some()).await),
        }
    }

    /// The same, and reads the answer.
    ///
    /// # Errors
    /// As [`Self::ask`], or the answer is not what that larder would say.
    pub(super) async fn ask_for<T: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        target: &str,
        what: &'static str,
    ) -> Result<T, AdminClientError> {
        self.ask(method, target, what).await?.read().await
    }
}

impl Answer {
    /// All of it, as JSON.
    async fn read<T: serde::de::DeserializeOwned>(self) -> Result<T, AdminClientError> {
        let no_larder = AdminClientError::NoLarder(self.admin.clone(), self.what, self.status);
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes).map_err(|_| no_larder)
    }

    async fn bytes(self) -> Result<Bytes, AdminClientError> {
        let Self { admin, body, .. } = self;
        let read = Limited::new(body, ANSWER_BYTES_MAX).collect();
        match tokio::time::timeout(ANSWER_TIME, read).await {
            Ok(read) => {
                read.map(|read| read.to_bytes()).map_err(|error| AdminClientError::Exchange(admin, error))
            }
            Err(_) => Err(AdminClientError::Time(admin, ANSWER_TIME)),
        }
    }

    /// The next bytes of it; `None` at its end.
    ///
    /// # Errors
    /// It breaks off, or is silent for too long.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, AdminClientError> {
        loop {
            let broke = |error: Cause| AdminClientError::Exchange(self.admin.clone(), error);
            let Ok(frame) = tokio::time::timeout(self.silence, self.body.frame()).await else {
                return Err(broke(std::io::Error::from(std::io::ErrorKind::TimedOut).into()));
            };
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(broke(error.into())),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// That it cannot be read on.
    pub(super) fn broke(&self, error: impl std::error::Error + Send + Sync + 'static) -> AdminClientError {
        AdminClientError::Exchange(self.admin.clone(), error.into())
    }

    async fn refusal(self, had_token: bool) -> AdminClientError {
        let (admin, what, status) = (self.admin.clone(), self.what, self.status);
        match self.bytes().await {
            Ok(body) => refused(&admin, what, had_token, status, &body),
            Err(error) => error,
        }
    }
}

async fn exchange(
    method: Method,
    target: &str,
    admin: &str,
    token: Option<&str>,
    wanted: Wanted,
) -> Result<Response<Incoming>, AdminClientError> {
    let not_running = |error| AdminClientError::NotRunning(admin.to_owned(), error);
    let broke = |error: Cause| AdminClientError::Exchange(admin.to_owned(), error);
    let stream = match tokio::time::timeout(CONNECT_TIME, TcpStream::connect(admin)).await {
        Ok(connected) => connected.map_err(not_running)?,
        Err(_) => return Err(not_running(std::io::ErrorKind::TimedOut.into())),
    };
    // The admin address answers to addresses, whatever name they were found by.
    let host = stream.peer_addr().map_err(not_running)?.to_string();
    let (mut sender, connection) =
        handshake(TokioIo::new(stream)).await.map_err(|error| broke(error.into()))?;
    // Ends with the runtime at the latest.
    tokio::spawn(connection);
    let mut request = http::Request::builder().method(method).uri(target).header(HOST, host);
    if let Some(token) = token {
        let shown = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| AdminClientError::Token)?;
        request = request.header(AUTHORIZATION, shown);
    }
    let content = match wanted {
        Wanted::Answer => Bytes::new(),
        Wanted::AnswerTo(json) => {
            request = request.header(CONTENT_TYPE, "application/json");
            json
        }
        Wanted::Events => {
            request = request.header(ACCEPT, EVENT_STREAM);
            Bytes::new()
        }
    };
    let request = request.body(Full::new(content)).map_err(|error| broke(error.into()))?;
    sender.send_request(request).await.map_err(|error| broke(error.into()))
}

/// Why an answer is not good.
fn refused(
    admin: &str,
    what: &'static str,
    had_token: bool,
    status: StatusCode,
    body: &[u8],
) -> AdminClientError {
    let no_larder = || AdminClientError::NoLarder(admin.to_owned(), what, status);
    if status == StatusCode::UNAUTHORIZED {
        let told = if had_token { AdminClientError::TokenWrong } else { AdminClientError::TokenWanted };
        return told(admin.to_owned());
    }
    let Ok(said) = serde_json::from_slice::<serde_json::Value>(body) else { return no_larder() };
    let text = |name: &str| said.get(name).and_then(serde_json::Value::as_str);
    match (text("error"), text("message")) {
        // An older larder knows no such path.
        (Some("not-found") | None, _) | (_, None) => no_larder(),
        (Some(_), Some(message)) => AdminClientError::Refused(status, message.to_owned()),
    }
}

/// Runs what asks, to its end.
///
/// # Errors
/// There is no runtime to be had.
pub(super) fn run<T, E: From<AdminClientError>>(asking: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(AdminClientError::Start)?;
    let answered = runtime.block_on(asking);
    // A look-up of a name may be stuck in the system's resolver: the end does not wait for it.
    runtime.shutdown_background();
    answered
}

/// Everything but unreserved characters escaped (RFC 3986 2.1).
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, had_token: bool, body: &str, expected: &str) {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        let said = refused("127.0.0.1:1", "explains", had_token, status, body.as_bytes()).to_string();
        assert!(said.contains(expected), "{said:?} does not say {expected:?}");
    }

    #[test]
    fn each_refusal_is_told_in_its_own_words() {
        check(401, false, "", "wants its admin token");
        check(401, true, "", "another admin token");
        check(422, false, r#"{"error":"unknown-host","message":"no site takes it"}"#, "no site takes it");
        check(421, false, r#"{"error":"host","message":"ask by address"}"#, "ask by address");
        check(404, false, r#"{"error":"not-found","message":"/ lists"}"#, "no larder that explains");
        check(404, false, r#"{"error":"not-stored","message":"nothing is stored"}"#, "nothing is stored");
        check(404, false, "<h1>Not Found</h1>", "no larder that explains (status 404");
        check(500, false, "{}", "no larder that explains (status 500");
    }

    #[tokio::test]
    async fn a_stream_that_is_silent_for_too_long_is_given_up() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let admin = listener.local_addr().unwrap().to_string();
        let silent = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let begun = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\n";
            stream.write_all(begun).await.unwrap();
            std::future::pending::<()>().await;
        });
        let mut answer =
            RunningLarder { admin, token: None }.ask_for_events("/api/v1/live", "shows").await.unwrap();
        assert_eq!(answer.next().await.unwrap().unwrap(), ": hello\n\n");
        tokio::time::pause();
        let begun = tokio::time::Instant::now();
        assert!(matches!(answer.next().await, Err(AdminClientError::Exchange(..))));
        let waited = begun.elapsed();
        assert!((STREAM_SILENCE_TIME..STREAM_SILENCE_TIME * 2).contains(&waited), "{waited:?}");
        silent.abort();
    }

    #[test]
    fn what_is_not_unreserved_is_escaped() {
        assert_eq!(encoded("http://a/é?b=c~"), "http%3A%2F%2Fa%2F%C3%A9%3Fb%3Dc~");
    }
}
