//! What can go wrong: settings that cannot be used, and attempts that fail.
//!
//! In: causes. Out: [`AcmeError`], which an operator sees at a start or reload, and [`Failure`], which an attempt ends with. A failure has
//! a kind from a closed list, for metrics, and a text, which may quote the authority: control characters are dropped, and its length is
//! bounded.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use http::StatusCode;
use instant_acme::{Error as ProtocolError, Problem};

use crate::client::{ClientError, LastAnswer};
use crate::storage::StorageError;

/// Longest text of a failure, in characters.
const TEXT_MAX: usize = 400;

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// The directory is no URL that larder can ask.
    #[error("{0:?} is no https URL")]
    Directory(String),
    /// The name is no host name, or is there twice.
    #[error("no certificate can be asked for {0:?}")]
    Name(String),
    /// More names than `NAMES_MAX`.
    #[error("{0} names are too many")]
    TooManyNames(usize),
    /// The directory for certificates cannot be used.
    #[error("storage of certificates")]
    Storage(#[from] StorageError),
    /// The connection to the authority cannot be secured.
    #[error("trust in the authority's server")]
    Trust(#[from] larder_tls::SetupError),
    /// The thread could not be started.
    #[error("thread for certificates")]
    Thread(#[source] std::io::Error),
}

/// What kind of failure an attempt ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// The authority cannot be reached, or does not answer in time.
    Unreachable,
    /// What the authority answers is not ACME.
    Answer,
    /// The authority has an error of its own.
    Authority,
    /// Too many requests, orders or failed proofs.
    RateLimited,
    /// The authority could not verify that the host is larder's.
    Proof,
    /// The authority does not issue a certificate for the name, or not of this profile.
    Refused,
    /// The authority does not accept the account.
    Account,
    /// The certificate that came is not the one that was asked for.
    Certificate,
    /// A file cannot be read or written.
    Storage,
    /// An error of larder's own.
    Internal,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Unreachable,
        Self::Answer,
        Self::Authority,
        Self::RateLimited,
        Self::Proof,
        Self::Refused,
        Self::Account,
        Self::Certificate,
        Self::Storage,
        Self::Internal,
    ];

    /// The word for metrics and files.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Answer => "answer",
            Self::Authority => "authority",
            Self::RateLimited => "rate-limited",
            Self::Proof => "proof",
            Self::Refused => "refused",
            Self::Account => "account",
            Self::Certificate => "certificate",
            Self::Storage => "storage",
            Self::Internal => "internal",
        }
    }

    /// The kind that a word stands for.
    pub fn of_token(token: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.token() == token)
    }

    /// Whether other names would fail in the same way now.
    pub(crate) fn concerns_all_names(self) -> bool {
        matches!(
            self,
            Self::Unreachable
                | Self::Answer
                | Self::Authority
                | Self::RateLimited
                | Self::Account
                | Self::Storage
        )
    }
}

/// Why an attempt ended without a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For metrics.
    pub kind: FailureKind,
    /// For people.
    pub text: String,
    /// The authority's `Retry-After`, where it came with the refusal.
    pub retry_after: Option<Duration>,
    /// The authority does not know the account, so that another one may help.
    pub(crate) account_gone: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.token(), self.text)
    }
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, text: impl AsRef<str>) -> Self {
        Self { kind, text: plain(text.as_ref()), retry_after: None, account_gone: false }
    }

    /// What a call of the protocol failed with, `while_doing` in front of it. `last` is the answer that it failed at.
    pub(crate) fn of(while_doing: &str, error: &ProtocolError, last: LastAnswer) -> Self {
        let (kind, text) = match error {
            ProtocolError::Api(problem) => (of_problem(problem), sentence(problem)),
            ProtocolError::Other(inner) => match inner.downcast_ref::<ClientError>() {
                Some(error) => (error.kind(), chain(error)),
                None => (FailureKind::Answer, inner.to_string()),
            },
            ProtocolError::Timeout(_) => (FailureKind::Unreachable, error.to_string()),
            ProtocolError::Unsupported(_) => (FailureKind::Refused, error.to_string()),
            ProtocolError::Crypto | ProtocolError::KeyRejected => (FailureKind::Account, error.to_string()),
            // A refusal without a problem document, as what stands in front of an authority sends it.
            _ => match last.status.filter(|status| status.is_client_error() || status.is_server_error()) {
                Some(status) => (of_status(status), format!("the authority answers with status {status}")),
                None => (FailureKind::Answer, error.to_string()),
            },
        };
        let account_gone = problem_type(error) == Some("accountDoesNotExist");
        Self {
            kind,
            text: plain(&format!("{while_doing}: {text}")),
            retry_after: last.retry_after,
            account_gone,
        }
    }

    /// The proof failed; `problem` is what the authority says of it.
    pub(crate) fn of_proof(kind: impl fmt::Display, problem: Option<&Problem>) -> Self {
        let reason = problem.map_or_else(|| "the authority gives no reason".to_owned(), sentence);
        let rated = problem.map(of_problem).filter(|kind| *kind == FailureKind::RateLimited);
        Self::new(rated.unwrap_or(FailureKind::Proof), format!("proof by {kind}: {reason}"))
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Self::new(FailureKind::Storage, chain(&error))
    }
}

/// The last part of a problem's type (RFC 8555 6.7).
pub(crate) fn problem_type(error: &ProtocolError) -> Option<&str> {
    match error {
        ProtocolError::Api(problem) => short_type(problem),
        _ => None,
    }
}

fn short_type(problem: &Problem) -> Option<&str> {
    problem.r#type.as_deref()?.strip_prefix("urn:ietf:params:acme:error:")
}

fn of_problem(problem: &Problem) -> FailureKind {
    match short_type(problem).unwrap_or_default() {
        "rateLimited" => FailureKind::RateLimited,
        "serverInternal" | "badNonce" => FailureKind::Authority,
        "accountDoesNotExist"
        | "externalAccountRequired"
        | "badPublicKey"
        | "badSignatureAlgorithm"
        | "invalidContact"
        | "unsupportedContact"
        | "userActionRequired" => FailureKind::Account,
        "connection" | "dns" | "tls" | "incorrectResponse" | "caa" => FailureKind::Proof,
        "rejectedIdentifier"
        | "unsupportedIdentifier"
        | "invalidProfile"
        | "unauthorized"
        | "badCSR"
        | "alreadyReplaced"
        | "orderNotReady"
        | "malformed"
        | "compound" => FailureKind::Refused,
        _ if problem.status.is_some_and(|status| status >= 500) => FailureKind::Authority,
        _ => FailureKind::Refused,
    }
}

fn of_status(status: StatusCode) -> FailureKind {
    match status {
        StatusCode::TOO_MANY_REQUESTS => FailureKind::RateLimited,
        status if status.is_server_error() => FailureKind::Authority,
        _ => FailureKind::Answer,
    }
}

fn sentence(problem: &Problem) -> String {
    let of = |detail: &Option<String>, kind: &Option<String>| {
        let detail = detail.as_deref().unwrap_or("no details");
        match kind {
            Some(kind) => format!("{detail} ({})", kind.rsplit(':').next().unwrap_or_default()),
            None => detail.to_owned(),
        }
    };
    let mut text = of(&problem.detail, &problem.r#type);
    for sub in problem.subproblems.iter().take(3) {
        text.push_str("; ");
        text.push_str(&of(&sub.detail, &sub.r#type));
    }
    text
}

/// An error with its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause.take_if(|_| text.len() < 4 * TEXT_MAX) {
        let inner = error.to_string();
        if !text.contains(&inner) {
            text.push_str(": ");
            text.push_str(&inner);
        }
        cause = error.source();
    }
    text
}

/// Text on one line, of bounded length.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT_MAX).collect()
}

impl ClientError {
    /// Of what kind it is.
    pub(crate) fn kind(&self) -> FailureKind {
        let is_unfit = matches!(self, Self::Url(_) | Self::TooLarge(_) | Self::Head);
        if is_unfit || self.source().is_some_and(|source| source.is::<hyper::Error>() && is_parse(source)) {
            return FailureKind::Answer;
        }
        FailureKind::Unreachable
    }
}

fn is_parse(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: FailureKind) {
        let problem: Problem = serde_json::from_str(json).expect("a problem");
        let failure = Failure::of("new order", &ProtocolError::Api(problem), LastAnswer::default());
        assert_eq!(failure.kind, expected, "{failure}");
    }

    #[test]
    fn each_type_of_problem_has_its_kind() {
        let of = |kind: &str| format!(r#"{{"type":"urn:ietf:params:acme:error:{kind}","detail":"x"}}"#);
        check(&of("rateLimited"), FailureKind::RateLimited);
        check(&of("serverInternal"), FailureKind::Authority);
        check(&of("accountDoesNotExist"), FailureKind::Account);
        check(&of("caa"), FailureKind::Proof);
        check(&of("rejectedIdentifier"), FailureKind::Refused);
        check(&of("something new"), FailureKind::Refused);
        check(r#"{"status":503}"#, FailureKind::Authority);
        check("{}", FailureKind::Refused);
    }

    #[test]
    fn the_text_of_an_authority_is_one_short_line() {
        let problem = Problem {
            r#type: None,
            detail: Some(format!("a\n\u{1b}[2Jb{}", "c".repeat(10_000))),
            status: None,
            subproblems: Vec::new(),
        };
        let failure = Failure::of("x", &ProtocolError::Api(problem), LastAnswer::default());
        assert!(failure.text.chars().count() <= TEXT_MAX);
        assert!(!failure.text.chars().any(char::is_control), "{}", failure.text);
    }

    #[test]
    fn words_stand_for_their_kinds() {
        for kind in FailureKind::ALL {
            assert_eq!(FailureKind::of_token(kind.token()), Some(kind));
        }
        assert_eq!(FailureKind::of_token("x"), None);
    }
}
