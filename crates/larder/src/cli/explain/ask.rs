//! Whom to ask: a running larder at its admin address, or a config alone.
//!
//! In: a question. Out: the same [`Explanation`] either way, or one sentence about what is in the way.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_proxy::explain::{ExplainError, Explanation, Question};

use crate::cli::admin::{AddressArguments, AdminClientError, encoded};
use crate::wire::WireError;

/// What is in the way.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error(transparent)]
    Admin(#[from] AdminClientError),
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

/// Asks a larder that runs.
pub(super) async fn running(asked: &Asked<'_>, admin: &AddressArguments) -> Result<Explanation, AskError> {
    Ok(admin.larder()?.ask_for(Method::GET, &asked.target(), "explains").await?)
}

/// Explains by a config alone: its sites and rules, and stores with nothing in them. Needs a runtime.
pub(super) async fn from_config(
    question: Question,
    config: &larder_config::Config,
) -> Result<Explanation, AskError> {
    let clock = Clock::default();
    let diagnostics = Diagnostics::stderr(clock.clone()).map_err(|error| AskError::Start(error.into()))?;
    // What lies on disks and in directories is a running larder's alone.
    let worker = crate::server::build(config, clock, diagnostics)?;
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
}
