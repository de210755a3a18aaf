//! What stands between the handle and the thread.
//!
//! In: what the handle asks for. Out: the board, which the thread writes. Each request replaces the one before, so that nothing can pile up.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::setup::Setup;
use crate::status::Board;

/// See the head of the file.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) board: Board,
    pub(crate) requests: Mutex<Requests>,
    pub(crate) wake: Notify,
    /// This process orders.
    pub(crate) leads: AtomicBool,
}

/// What the thread is asked for. The last settings win; names are those of the board, so that there is no other bound.
#[derive(Default)]
pub(crate) struct Requests {
    pub(crate) stop: bool,
    pub(crate) setup: Option<Setup>,
    pub(crate) renew: BTreeSet<String>,
}
