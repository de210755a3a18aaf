//! Whom to ask: a running larder at its admin address, or a config alone.
//!
//! In: a question. Out: the same [`Explanation`] either way, or one sentence about what is in the way.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use larder_http::time::Clock;
use larder_observe::{Diagnostics, Metrics};
use larder_proxy::explain::{ExplainError, Explanation, Question};
use larder_proxy::{Plan, Proxy};
use tokio::net::TcpStream;

use crate::wire::{WireError, Wiring};

/// How long the admin address may take to accept.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long an explanation may take: an origin's own limits for a head, and some more.
const ANSWER_TIME: Duration = Duration::from_secs(90);
/// The largest explanation that is read.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What is in the way.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error("no larder answers at {0}: --admin names another address, -c FILE explains without one")]
    NotRunning(String, #[source] std::io::Error),
    #[error("no answer from {0} within {limit} s", limit = ANSWER_TIME.as_secs())]
    Time(String),
    #[error("the exchange with {0} broke")]
    Exchange(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the larder at {0} wants its admin_token: put it into LARDER_ADMIN_TOKEN")]
    TokenWanted(String),
    #[error("the larder at {0} has another admin_token")]
    TokenWrong(String),
    #[error("the token cannot stand in a field")]
    Token,
    #[error("{0}")]
    Refused(String),
    #[error("what answers at {0} is no larder that explains (status {1})")]
    NoLarder(String, StatusCode),
    #[error(transparent)]
    Explain(#[from] ExplainError),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("cannot start")]
    Start(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The question as the query of `/explain`.
pub(super) struct Asked<'a> {
    pub(super) method: &'a str,
    pub(super) url: &'a str,
    pub(super) fields: &'a [(String, String)],
    pub(super) content: &'a str,
    pub(super) offline: bool,
}

impl Asked<'_> {
    /// Checks it here, where the words are those that were typed.
    pub(super) fn question(&self) -> Result<Question, ExplainError> {
        let fields = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let content = Bytes::copy_from_slice(self.content.as_bytes());
        Question::parse(self.method, self.url, fields, content, self.offline)
    }

    fn target(&self) -> String {
        let mut target = format!("/explain?method={}&url={}", encoded(self.method), encoded(self.url));
        for (name, value) in self.fields {
            target.push_str(&format!("&field={}", encoded(&format!("{name}:{value}"))));
        }
        if !self.content.is_empty() {
            target.push_str(&format!("&content={}", encoded(self.content)));
        }
        if self.offline {
            target.push_str("&offline=true");
        }
        target
    }
}

/// Everything but unreserved characters escaped (RFC 3986 2.1).
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Asks the larder whose admin listens at `admin`.
pub(super) async fn running(
    asked: &Asked<'_>,
    admin: &str,
    token: Option<&str>,
) -> Result<Explanation, AskError> {
    match tokio::time::timeout(ANSWER_TIME, exchange(asked, admin, token)).await {
        Ok(answered) => answered,
        Err(_) => Err(AskError::Time(admin.to_owned())),
    }
}

async fn exchange(asked: &Asked<'_>, admin: &str, token: Option<&str>) -> Result<Explanation, AskError> {
    let not_running = |error| AskError::NotRunning(admin.to_owned(), error);
    let broke = |error: Box<dyn std::error::Error + Send + Sync>| AskError::Exchange(admin.to_owned(), error);
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
    let mut request = http::Request::get(asked.target()).header(HOST, host);
    if let Some(token) = token {
        let shown = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| AskError::Token)?;
        request = request.header(AUTHORIZATION, shown);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| broke(error.into()))?;
    let response = sender.send_request(request).await.map_err(|error| broke(error.into()))?;
    let status = response.status();
    let body =
        Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(broke)?.to_bytes();
    read(admin, token.is_some(), status, &body)
}

/// An answer of the admin address.
fn read(admin: &str, had_token: bool, status: StatusCode, body: &[u8]) -> Result<Explanation, AskError> {
    let no_larder = || AskError::NoLarder(admin.to_owned(), status);
    match status {
        StatusCode::OK => serde_json::from_slice(body).map_err(|_| no_larder()),
        StatusCode::UNAUTHORIZED if had_token => Err(AskError::TokenWrong(admin.to_owned())),
        StatusCode::UNAUTHORIZED => Err(AskError::TokenWanted(admin.to_owned())),
        _ => {
            let said: serde_json::Value = serde_json::from_slice(body).map_err(|_| no_larder())?;
            let message = said.get("message").and_then(serde_json::Value::as_str);
            match (said.get("error").and_then(serde_json::Value::as_str), message) {
                // An older larder knows no such path.
                (Some("not-found") | None, _) | (_, None) => Err(no_larder()),
                (Some(_), Some(message)) => Err(AskError::Refused(message.to_owned())),
            }
        }
    }
}

/// Explains by a config alone: its sites and rules, and stores with nothing in them. Needs a runtime.
pub(super) async fn from_config(
    question: Question,
    config: &larder_config::Config,
) -> Result<Explanation, AskError> {
    let clock = Clock::default();
    let diagnostics = Diagnostics::stderr(clock.clone()).map_err(|error| AskError::Start(error.into()))?;
    let version = env!("CARGO_PKG_VERSION");
    let metrics = Arc::new(Metrics::new(1, larder_proxy::vocabulary(), clock.now().wall, version));
    // What lies on disks and in directories is a running larder's alone.
    let mut config = config.clone();
    for (_, store) in &mut config.stores {
        (store.disks, store.files) = (Vec::new(), None);
    }
    let wiring = Wiring::new(Arc::clone(&metrics), clock.clone(), diagnostics.clone());
    let (settings, _) = wiring.draft(&config)?;
    let plan = Plan::new(settings).map_err(WireError::from)?;
    let worker = Proxy::new(clock, metrics, diagnostics).worker(0, plan).map_err(WireError::from)?;
    Ok(Arc::new(worker).explain(question, false).await?)
}

/// Reads and checks the config.
pub(super) fn load(path: &Path) -> Result<larder_config::Checked, larder_config::Errors> {
    larder_config::load(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_a_query_of_unreserved_characters() {
        let fields = [("X-A".to_owned(), "1 2&3".to_owned())];
        let asked =
            Asked { method: "GET", url: "http://a/?b=c", fields: &fields, content: "", offline: true };
        let expected = "/explain?method=GET&url=http%3A%2F%2Fa%2F%3Fb%3Dc&field=X-A%3A1%202%263&offline=true";
        assert_eq!(asked.target(), expected);
        let asked = Asked { method: "QUERY", fields: &[], content: "é", offline: false, ..asked };
        assert_eq!(asked.target(), "/explain?method=QUERY&url=http%3A%2F%2Fa%2F%3Fb%3Dc&content=%C3%A9");
    }

    fn check(status: u16, had_token: bool, body: &str, expected: &str) {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        let found = read("127.0.0.1:1", had_token, status, body.as_bytes());
        let said = found.map_or_else(|error| error.to_string(), |_| "explained".to_owned());
        assert!(said.contains(expected), "{said:?} does not say {expected:?}");
    }

    #[test]
    fn each_refusal_is_told_in_its_own_words() {
        check(401, false, "", "wants its admin_token");
        check(401, true, "", "another admin_token");
        check(422, false, r#"{"error":"unknown-host","message":"no site takes it"}"#, "no site takes it");
        check(421, false, r#"{"error":"host","message":"ask by address"}"#, "ask by address");
        check(404, false, r#"{"error":"not-found","message":"/ lists"}"#, "no larder that explains");
        check(404, false, "<h1>Not Found</h1>", "no larder that explains (status 404");
        check(200, false, "<h1>Hello</h1>", "no larder that explains (status 200");
        check(200, false, "{}", "no larder that explains");
    }
}
