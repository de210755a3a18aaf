//! What is counted of pages and their parts, and what the log says of them.
//!
//! In: the answer to a fragment, a failure, the end of a page. Out: counters, and lines of the log for failures, of which equal ones
//! are written once in a while.

use larder_assemble::IncludeFailure;
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::message::RequestHead;
use larder_http::target::reference::DocumentUri;

use crate::assemble::Tally;
use crate::exchange::Exchange;
use crate::labels::{FailureLabel, ForwardLabel};
use crate::worker::Worker;

impl Worker {
    /// A fragment was answered.
    pub(super) fn count_fragment(&self, exchange: &Exchange, said: &CacheStatus) {
        let rule = exchange.settings().rule_id;
        match said.outcome {
            Outcome::Hit => self.metrics.fragment_hits(rule, 1),
            Outcome::Forwarded(reason) => self.metrics.fragment_forwarded(rule, &ForwardLabel(reason)),
            Outcome::Own => {}
        }
    }

    /// An include of a page failed, or was not asked for.
    #[cold]
    pub(super) fn fragment_failed(
        &self,
        page: &RequestHead,
        uri: Option<&DocumentUri>,
        reason: IncludeFailure,
    ) {
        self.metrics.fragment_failed(&FailureLabel(reason));
        let (host, path) = (&page.authority, page.target.path());
        let word = reason.as_str();
        match uri {
            Some(uri) => self.proxy.diagnostics.warn(
                "fragment-failed",
                word,
                format_args!(
                    "page {host}{path}: fragment {}{} failed: {word}",
                    uri.authority,
                    uri.target.path()
                ),
            ),
            None => self.proxy.diagnostics.warn(
                "page-cut",
                word,
                format_args!("page {host}{path} was cut: {word}"),
            ),
        }
    }

    /// A page was put together, or given up.
    pub(super) fn page_ended(&self, tally: &Tally) {
        if tally.cookies > 0 {
            self.metrics.fragment_cookies_dropped(tally.cookies.into());
        }
        if tally.asked > 0 {
            self.metrics.page_waited(tally.waited);
        }
    }
}
