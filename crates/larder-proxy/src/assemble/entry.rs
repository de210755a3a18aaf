//! What a page has asked for: one entry for each URL, however often it stands in the page.

use std::future::Future;
use std::pin::Pin;

use larder_assemble::{Ask, IncludeFailure};
use larder_http::authority::Authority;
use larder_http::target::Target;
use tokio::task::AbortHandle;

use super::ask::{AskedFragment, Fragment, FragmentResult};

/// Which URL: scheme, site and target.
pub(super) type FragmentPlace = (&'static str, Authority, Target);
/// A fragment on its way.
pub(super) type Bringing = Pin<Box<dyn Future<Output = FragmentResult> + Send>>;

/// What became of it.
pub(super) enum FragmentEntry {
    /// It was had before, and is in memory.
    There(Box<Fragment>),
    Failed(IncludeFailure),
    /// These wait for it.
    UnderWay {
        waiting: Vec<Ask>,
        task: AbortHandle,
    },
}

/// What was asked for, as a future in either case.
pub(super) fn later(asked: AskedFragment) -> Bringing {
    match asked {
        AskedFragment::Now(answered) => Box::pin(std::future::ready(answered)),
        AskedFragment::Later(later) => later,
    }
}
