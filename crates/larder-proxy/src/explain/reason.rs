//! Why something is as it is: a word for programs, a sentence for people, and where the rule stands.

use serde::{Deserialize, Serialize};

/// Where larder's own settings decide.
pub(super) const CONFIGURATION: &str = "configuration";

/// A rule that decided something: a fixed word, a sentence, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The fixed word.
    pub token: String,
    /// In plain words.
    pub sentence: String,
    /// Such as `RFC 9111 3.5`; empty where larder's own settings are the source.
    pub section: String,
}

impl Reason {
    pub(super) fn new(
        token: impl Into<String>,
        sentence: impl Into<String>,
        section: impl Into<String>,
    ) -> Self {
        Self { token: token.into(), sentence: sentence.into(), section: section.into() }
    }
}
