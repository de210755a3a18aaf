//! A word with its meaning.
//!
//! In: a word, and what is said of it. Out: a value for JSON. What is not known is left out.

use std::borrow::Cow;

use serde::Serialize;

/// A fixed word and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Word {
    /// As it stands in the log, in samples and in metrics.
    pub word: &'static str,
    /// What it means, in one sentence.
    pub sentence: Cow<'static, str>,
    /// Where the rule stands, such as `RFC 9111 3.5`; `configuration` for a setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<&'static str>,
    /// What an operator or an application can do, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helps: Option<&'static str>,
    /// Whether the request or the origin's answer forbids to store or to use a stored response: no setting should change that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forbids: bool,
}

impl Word {
    pub(super) const fn new(word: &'static str, sentence: &'static str) -> Self {
        Self { word, sentence: Cow::Borrowed(sentence), section: None, helps: None, forbids: false }
    }

    pub(super) fn section(self, section: &'static str) -> Self {
        Self { section: Some(section), ..self }
    }

    pub(super) fn helps(self, helps: &'static str) -> Self {
        Self { helps: Some(helps), ..self }
    }
}

impl Word {
    pub(super) fn forbids(self, forbids: bool) -> Self {
        Self { forbids, ..self }
    }
}

/// A fragment as a sentence.
pub(super) fn whole(fragment: &str) -> String {
    let mut letters = fragment.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let end = if fragment.ends_with(['.', '?']) { "" } else { "." };
    format!("{}{}{end}", first.collect::<String>(), letters.as_str())
}
