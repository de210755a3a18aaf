//! A sample from the moment that a response has its head to the end of its body.
//!
//! In: what is known at the head, with texts that the request still holds. Out: the whole sample, handed to the tap, when how it ended is
//! known. The texts are copied meanwhile, into a buffer that the thread keeps from one sample to the next: a hit that is sampled
//! allocates nothing, unless several are under way.

use std::cell::Cell;
use std::time::Duration;

use super::Tap;
use super::record::{SampleHead, SampleTexts};

thread_local! {
    /// The room of the last sample that ended here.
    static KEPT: Cell<Option<Box<Pending>>> = const { Cell::new(None) };
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleEnd {
    /// From the request's head to the end of the response.
    pub took: Duration,
    /// Response body bytes handed to the kernel.
    pub body_bytes: u64,
    /// Whether the response is stored.
    pub stored: bool,
    /// Why it is not, where its body might have been.
    pub not_stored: Option<&'static str>,
}

/// A sample that lacks its end.
#[derive(Debug)]
pub struct PendingSample(Box<Pending>);

#[derive(Debug, Default)]
struct Pending {
    /// `None` while it is kept for the next one.
    head: Option<SampleHead>,
    texts: Vec<u8>,
    lengths: [u16; SampleTexts::COUNT],
}

impl PendingSample {
    /// With what is known at the head; its end is not yet.
    pub fn new(head: SampleHead, texts: &SampleTexts<'_>) -> Self {
        let mut pending = KEPT.try_with(Cell::take).ok().flatten().unwrap_or_default();
        let texts = texts.cut();
        pending.texts.clear();
        texts.iter().for_each(|text| pending.texts.extend_from_slice(text));
        pending.lengths = texts.map(|text| text.len() as u16);
        pending.head = Some(head);
        Self(pending)
    }

    /// Hands it to the tap, as a sample of this worker.
    pub fn end(self, tap: &Tap, worker: usize, end: SampleEnd) {
        let Self(mut pending) = self;
        let SampleEnd { took, body_bytes, stored, not_stored } = end;
        if let Some(head) = pending.head.take() {
            // What the head told is why, unless the body has another reason.
            let not_stored = not_stored.or(head.not_stored);
            let head = SampleHead { took, body_bytes, stored, not_stored, ..head };
            tap.put(worker, head, &SampleTexts::of_lengths(&pending.texts, pending.lengths));
        }
        // A thread that ends has no next one.
        let _ = KEPT.try_with(|kept| kept.set(Some(pending)));
    }
}
