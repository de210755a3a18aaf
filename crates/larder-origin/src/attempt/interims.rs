//! Interim (1xx) responses: handed on to the client, stripped, and bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderMap, StatusCode};
use larder_http::message::Interim;

use crate::answer::{self, InterimSink};

/// Interim responses handed on per exchange.
const INTERIMS_PASSED_MAX: usize = 16;

/// Interim responses after which an origin is taken to be broken.
const INTERIMS_MAX: usize = 64;

pub(crate) const TOO_MANY_INTERIMS: &str = "too many interim responses";

/// A sink for all attempts of an exchange together, which hands on only the first that come.
pub(crate) fn first_few(sink: InterimSink) -> InterimSink {
    let passed = AtomicUsize::new(0);
    Arc::new(move |interim| {
        if passed.fetch_add(1, Ordering::Relaxed) < INTERIMS_PASSED_MAX {
            sink(interim);
        }
    })
}

/// Interim responses of one attempt.
pub(crate) struct Interims {
    sink: Option<InterimSink>,
    seen: AtomicUsize,
}

impl Interims {
    pub(crate) fn new(sink: Option<InterimSink>) -> Self {
        Self { sink, seen: AtomicUsize::new(0) }
    }

    /// Hands one on, and counts it also where nobody wants it. False where it was one too many.
    pub(crate) fn pass(&self, status: StatusCode, fields: &HeaderMap) -> bool {
        if self.seen.fetch_add(1, Ordering::Relaxed) >= INTERIMS_MAX {
            return false;
        }
        // 100 belongs to this connection: the listener has answered the client's Expect itself.
        if let Some(sink) = self.sink.as_ref().filter(|_| status != StatusCode::CONTINUE) {
            let mut fields = fields.clone();
            answer::strip(&mut fields);
            sink(Interim { status, fields });
        }
        true
    }

    /// Whether there was one.
    pub(crate) fn is_any(&self) -> bool {
        self.seen.load(Ordering::Relaxed) > 0
    }
}
