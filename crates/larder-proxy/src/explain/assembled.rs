//! What is told of a page that is put together, as values.
//!
//! In page order: includes are numbered from 1, and those of a fragment follow it. A fragment is told as any request for its URL
//! would be, in the words that the rest of the explanation has.

use serde::{Deserialize, Serialize};

use super::course::{Course, Field};
use super::reason::Reason;

/// A page that is put together from a stored template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedPage {
    /// `ssi` or `esi`.
    pub language: String,
    /// What made the response a template.
    pub said_by: Reason,
    /// What is wrong with the template, at most 64.
    pub problems: Vec<ExplainedProblem>,
    /// How many problems there are beside those.
    pub more_problems: u64,
    /// The includes that the page runs, at most 1000.
    pub includes: Vec<ExplainedInclude>,
    /// How many there are beside those.
    pub more_includes: usize,
    /// What of the request decides about the page: names of fields, `client`, `time`, `start-line`.
    pub depends_on: Vec<String>,
    /// `plain`, `whole`, `open`, or why there is no whole page.
    pub state: Reason,
    /// What it says to caches behind larder: Cache-Control, Date where it is a fragment's, and what is added to Vary.
    pub fields: Vec<Field>,
    /// Its Age.
    pub age_seconds: Option<u64>,
    /// The least of its parts' time left, as in Cache-Status.
    pub ttl_seconds: Option<i64>,
    /// What decides what it says; null where it says what the template says.
    pub ground: Option<Reason>,
    /// The part that decides: 0 for the template, else the number of an include; null where no part does.
    pub decided_by: Option<usize>,
}

/// Something that is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedProblem {
    /// From 1.
    pub line: u32,
    /// In bytes, from 1.
    pub column: u32,
    /// A fixed word, as in the metric.
    pub problem: String,
}

/// An include that the page runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedInclude {
    /// The number of the include whose fragment it stands in; null for the page's own template.
    pub inside: Option<usize>,
    /// 1 for those of the page's own template.
    pub depth: usize,
    /// The line in its template, from 1.
    pub line: usize,
    /// In bytes, from 1.
    pub column: usize,
    /// As it is written, at most 200 bytes.
    pub directive: String,
    /// The branches, attempts and blocks that it stands in, from the outermost.
    pub within: Vec<ExplainedLevel>,
    /// Whether it is asked for because the one before it, of the same directive, has failed.
    pub is_alternative: bool,
    /// What is asked for; null where nothing is.
    pub url: Option<String>,
    /// What the stores have for it; null where nothing is asked for.
    pub fragment: Option<ExplainedFragment>,
    /// Why nothing of it goes into the page; null where something does, or may.
    pub failed: Option<Reason>,
    /// Whether the attempt around it has failed, so that it is left out.
    pub discarded: bool,
    /// What is tried in its place where it fails, in this order.
    pub on_failure: Vec<Reason>,
}

/// Something around an include.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedLevel {
    /// `if`, `else-if`, `else`, `attempt`, `except` or `block`.
    pub kind: String,
    /// The line in its template, from 1.
    pub line: usize,
    /// As it is written, at most 200 bytes.
    pub directive: String,
}

/// What the stores have for a fragment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedFragment {
    /// The site that takes its URL.
    pub site: String,
    /// The number of the first rule that matches, from 1; null where none does.
    pub rule: Option<usize>,
    /// The cache key in one line; null where it is not looked up.
    pub key: Option<String>,
    /// The store that has it, or where it would be looked for first.
    pub store: String,
    /// What happens to a request for it.
    pub verdict: Course,
    /// Why.
    pub reason: Reason,
    /// Whether it can go into the page at once.
    pub in_memory: bool,
    /// Its status, where it is stored.
    pub status: Option<u16>,
    /// The length of its content, where it is stored.
    pub body_bytes: Option<u64>,
    /// Its current age, where it is stored.
    pub age_seconds: Option<f64>,
    /// What is left of its lifetime, in whole seconds; negative for how long it has been stale.
    pub ttl_seconds: Option<i64>,
    /// Where it is a template itself: `ssi` or `esi`.
    pub language: Option<String>,
}
