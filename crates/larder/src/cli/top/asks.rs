//! What is asked of the admin address beside the stream, and what it says.
//!
//! In: a question. Out: its answer as a value, or why there is none: the larder is older and has no such part, or something is in the way.
//! Each question is one request with the limits of all commands. Nothing is kept here.

use http::{Method, StatusCode};
use larder_proxy::explain::Explanation;
use larder_proxy::objects::{Object, Purged};
use serde_json::Value;

use super::history::{HELD, TopWindow};
use super::request::TopUrl;
use crate::cli::admin::{AdminClientError, RunningLarder, encoded};
use crate::cli::explain::explained;
use crate::cli::output::chain;

const WHAT: &str = "tells its figures";
/// So many URLs of a list.
const URLS_MAX: usize = 200;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TopAsk {
    /// Everything of this moment.
    Stats,
    /// Version and words.
    About,
    /// The past of what is drawn.
    Series(TopWindow),
    /// Figures of an hour ago, by their names.
    Before(&'static str),
    Events,
    Urls {
        of: &'static str,
        filter: String,
    },
    Explain {
        url: TopUrl,
        width: usize,
    },
    /// How many responses are stored under a URL.
    Count(String),
    Purge(String),
}

/// An answer.
#[derive(Debug)]
pub(super) enum TopAnswer {
    Stats(Value),
    About(Value),
    Series(TopWindow, Value),
    Before(Value),
    Events(Value),
    Urls(&'static str, String, Value),
    Explained(TopUrl, String),
    Counted(String, u64),
    Purged(Purged),
    /// This larder has no such part.
    Absent(TopAsk),
    Failed(TopAsk, String),
    /// The token is not this larder's any more.
    Refused(AdminClientError),
}

impl TopAsk {
    /// What is absent where the larder does not know the question.
    pub(super) const fn part(&self) -> &'static str {
        match self {
            Self::Stats => "/stats",
            Self::About => "/api/v1/about",
            Self::Series(_) | Self::Before(_) => "/api/v1/series",
            Self::Events => "/api/v1/events",
            Self::Urls { .. } => "/api/v1/top",
            Self::Explain { .. } => "/explain",
            Self::Count(_) | Self::Purge(_) => "/object",
        }
    }

    fn target(&self) -> String {
        match self {
            Self::Stats | Self::About | Self::Events => self.part().to_owned(),
            Self::Series(window) => format!(
                "/api/v1/series?names={}&from={}&step={}",
                HELD.join(","),
                window.seconds(),
                window.step()
            ),
            // The minute an hour before this one.
            Self::Before(names) => format!("/api/v1/series?names={names}&from=3660&to=3600&step=60"),
            Self::Urls { of, filter } => {
                let filter =
                    if filter.is_empty() { String::new() } else { format!("&where={}", encoded(filter)) };
                format!("/api/v1/top?of={of}&limit={URLS_MAX}{filter}")
            }
            Self::Explain { url, .. } => {
                format!("/explain?method={}&url={}&offline=true", encoded(&url.method), encoded(&url.url))
            }
            Self::Count(url) | Self::Purge(url) => format!("/object?url={}", encoded(url)),
        }
    }

    /// Asks it.
    pub(super) async fn ask(self, larder: RunningLarder) -> TopAnswer {
        match self.told(&larder).await {
            Ok(told) => told,
            Err(error @ (AdminClientError::TokenWanted(_) | AdminClientError::TokenWrong(_))) => {
                TopAnswer::Refused(error)
            }
            Err(AdminClientError::NoLarder(_, _, StatusCode::NOT_FOUND)) => TopAnswer::Absent(self),
            Err(error) => TopAnswer::Failed(self, chain(&error)),
        }
    }

    async fn told(&self, larder: &RunningLarder) -> Result<TopAnswer, AdminClientError> {
        let target = self.target();
        let value = || larder.ask_for::<Value>(Method::GET, &target, WHAT);
        Ok(match self {
            Self::Stats => TopAnswer::Stats(value().await?),
            Self::About => TopAnswer::About(value().await?),
            Self::Series(window) => TopAnswer::Series(*window, value().await?),
            Self::Before(_) => TopAnswer::Before(value().await?),
            Self::Events => TopAnswer::Events(value().await?),
            Self::Urls { of, filter } => TopAnswer::Urls(of, filter.clone(), value().await?),
            Self::Explain { url, width } => {
                let explanation: Explanation = larder.ask_for(Method::GET, &target, "explains").await?;
                TopAnswer::Explained(url.clone(), explained(&explanation, *width))
            }
            Self::Count(url) => {
                let object = larder.ask_for::<Object>(Method::GET, &target, "shows what it has stored").await;
                TopAnswer::Counted(url.clone(), counted(object)?)
            }
            Self::Purge(_) => TopAnswer::Purged(
                larder.ask_for(Method::DELETE, &target, "takes out what it has stored").await?,
            ),
        })
    }
}

/// How many responses there are; nothing stored is an answer, too.
fn counted(object: Result<Object, AdminClientError>) -> Result<u64, AdminClientError> {
    match object {
        Ok(object) => Ok(object.responses.len() as u64),
        Err(AdminClientError::Refused(StatusCode::NOT_FOUND, _)) => Ok(0),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_is_a_request_with_escaped_texts() {
        let check = |ask: TopAsk, expected: &str| assert_eq!(ask.target(), expected);
        let url = "http://a/b?c&url=x".to_owned();
        check(TopAsk::Stats, "/stats");
        check(
            TopAsk::Series(TopWindow::Day),
            "/api/v1/series?names=requests,result.asked,bytes_out,latency:all:p50,latency:all:p99&from=86400&step=720",
        );
        check(TopAsk::Before("requests"), "/api/v1/series?names=requests&from=3660&to=3600&step=60");
        check(TopAsk::Urls { of: "urls", filter: String::new() }, "/api/v1/top?of=urls&limit=200");
        check(
            TopAsk::Urls { of: "bytes", filter: "*a&b*".to_owned() },
            "/api/v1/top?of=bytes&limit=200&where=%2Aa%26b%2A",
        );
        check(
            TopAsk::Explain { url: TopUrl::told("GET", &url), width: 80 },
            "/explain?method=GET&url=http%3A%2F%2Fa%2Fb%3Fc%26url%3Dx&offline=true",
        );
        check(TopAsk::Count(url.clone()), "/object?url=http%3A%2F%2Fa%2Fb%3Fc%26url%3Dx");
        check(TopAsk::Purge(url), "/object?url=http%3A%2F%2Fa%2Fb%3Fc%26url%3Dx");
    }
}
