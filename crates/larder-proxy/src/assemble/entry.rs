//! What a page has asked for: one entry for each URL, however often it stands in the page.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use larder_assemble::{Ask, IncludeFailure};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::ask::{AskedFragment, Fragment, FragmentResult};

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
        call: FetchCall,
    },
}

/// Lets a fetch begin although there is no room.
pub(super) struct FetchCall {
    called: Arc<Notify>,
    was_called: bool,
}

impl FetchCall {
    pub(super) fn new(called: Arc<Notify>) -> Self {
        Self { called, was_called: false }
    }

    pub(super) fn call(&mut self) {
        self.was_called = true;
        self.called.notify_one();
    }

    pub(super) fn was_called(&self) -> bool {
        self.was_called
    }
}

/// What was asked for, as a future in either case.
pub(super) fn later(asked: AskedFragment) -> Bringing {
    match asked {
        AskedFragment::Now(answered) => Box::pin(std::future::ready(answered)),
        AskedFragment::Later(later) => later,
    }
}
