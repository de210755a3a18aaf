//! How a page asks for its fragments, without a word on how they are had.
//!
//! In: the URI of a fragment. Out: the fragment at once, or a future that brings it. The future does nothing before it is polled. Dropped, it
//! leaves no fetch that only this page could use.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use larder_assemble::{IncludeFailure, Program};
use larder_cache::page::PartSaid;
use larder_http::target::reference::DocumentUri;
use larder_http::time::WallTime;

use super::body::PartBody;
use super::tally::Tally;

/// Who knows how fragments are had.
pub(crate) trait Fragments: Send {
    /// Asks for one. With `takes_errors` the content of a 4xx or 5xx may go into the page, where the rule says so.
    fn ask(&self, uri: &DocumentUri, takes_errors: bool) -> AskedFragment;

    /// An include failed, or was not asked for: that of this URI, or one in the document of this URI.
    fn failed(&self, uri: Option<&DocumentUri>, reason: IncludeFailure);

    /// The page was cut in the middle.
    fn cut(&self, reason: IncludeFailure);

    /// The page is sent from now on while parts of it are on their way.
    fn opened(&self);

    /// The page is over, or was given up.
    fn ended(&self, tally: &Tally, was_open: bool);
}

/// What is known of a fragment when it is asked for.
pub(crate) enum AskedFragment {
    /// It is there, or is known to fail.
    Now(FragmentResult),
    /// It takes time.
    Later(Pin<Box<dyn Future<Output = FragmentResult> + Send>>),
}

/// What became of a fragment.
pub(crate) type FragmentResult = Result<Box<Fragment>, NoFragment>;

/// Why there is no fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoFragment {
    /// It failed: something else stands there.
    Failed(IncludeFailure),
    /// It is not stored, and the page's client takes nothing else: there is no page.
    NotStored,
}

impl From<IncludeFailure> for NoFragment {
    fn from(reason: IncludeFailure) -> Self {
        Self::Failed(reason)
    }
}

/// A fragment that may go into a page.
pub(crate) struct Fragment {
    /// What it says to caches behind larder.
    pub(crate) said: PartSaid,
    /// Its body.
    pub(crate) body: PartBody,
    /// Where it is a template itself.
    pub(crate) template: Option<FragmentTemplate>,
    /// Its body flows for whoever reads it alone, and holds a place at its origin.
    pub(crate) passes: bool,
    /// What a stale one says of itself.
    pub(crate) detail: Option<&'static str>,
    /// Fields with cookies that it came with, and that go nowhere.
    pub(crate) cookies: usize,
}

/// A fragment that is a template.
#[derive(Clone)]
pub(crate) struct FragmentTemplate {
    pub(crate) program: Arc<Program>,
    pub(crate) last_modified: Option<WallTime>,
    /// Its own rule takes no template with a problem.
    pub(crate) is_strict: bool,
}

impl FragmentTemplate {
    /// Whether it may not be run, as far as it is read. A long one goes in before its end is known.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_strict && self.program.problems().is_some_and(|problems| !problems.is_empty())
    }
}

impl Fragment {
    /// The same once more, where all of it is in memory.
    pub(crate) fn copy(&self) -> Option<Box<Self>> {
        let body = self.body.copy()?;
        let (said, template) = (self.said.clone(), self.template.clone());
        Some(Box::new(Self { said, body, template, passes: false, detail: None, cookies: 0 }))
    }
}
