//! What a request for a purge was read as: what it wants, where each name stood, and in which form the answer is expected.

use super::question::PurgeQuestion;

/// Things that one request may name.
pub(crate) const NAMES_MAX: usize = 10_000;

/// Something that is wrong with a request, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) path: String,
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

/// What was asked, with where each selector stood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) question: PurgeQuestion,
    /// For each selector, the path of what it was made from.
    pub(crate) paths: Vec<String>,
    pub(super) form: Form,
}

/// The form of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Own,
    FastlyOne,
    FastlyAll,
    /// Of these keys.
    FastlyKeys(Vec<String>),
    Cloudflare,
}

/// A site, as the paths of Fastly and Cloudflare name it: a host, or `all`.
pub(super) fn site_of(id: &str) -> Option<String> {
    (id != "all").then(|| id.to_owned())
}
