//! The streams of one connection (RFC 9113 5.1).
//!
//! In: streams as they are opened, answered and reset. Out: their state by number or by place, and how those ended that are gone. A stream
//! is open until its call has ended or was dropped, whatever its client has sent: so the bound on open streams bounds calls
//! (CVE-2023-44487, CVE-2025-8671).

use std::collections::VecDeque;

use slab::Slab;

use super::flow::{ReceiveWindow, SendWindow};
use super::incoming_content::IncomingContent;
use super::outgoing::OutgoingContent;
use super::priority::Priority;
use crate::delivery::Report;
use crate::service::{Interims, Service};
use crate::timer::{Pace, Timer};

/// Streams that their client has ended, and whose numbers are remembered for the code of its error.
const ENDED_BY_CLIENT_KEPT: usize = 32;
/// Streams that larder has ended, in those that may be open at once: frames that were on their way are passed over for a round trip.
const ENDED_BY_LARDER_KEPT: usize = 2;

/// What there is to know of a stream beside what it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamFacts {
    pub(super) id: u32,
    pub(super) is_head: bool,
    /// The client has sent all that it will.
    pub(super) has_ended: bool,
    /// What the stream may be sent.
    pub(super) window: SendWindow,
    pub(super) priority: Priority,
    /// The size of the request's head, as its bound counts it.
    pub(super) head_bytes: usize,
}

/// What a stream does.
#[expect(clippy::large_enum_variant, reason = "each stream is in a box of its own, and most of them send")]
pub(super) enum Stage<'a, S: Service> {
    /// The service works.
    Calling { call: S::Call, interims: Interims },
    /// The head is queued, and the content follows.
    Sending { content: OutgoingContent, report: Report<'a, S> },
    /// It is over, but for frames that are queued and not written.
    Over(Option<Report<'a, S>>),
}

/// One stream.
pub(super) struct ServedStream<'a, S: Service> {
    pub(super) facts: StreamFacts,
    pub(super) stage: Stage<'a, S>,
    /// The request's content, where it has any.
    pub(super) content: Option<IncomingContent>,
    pub(super) received: u64,
    pub(super) receive_window: ReceiveWindow,
    /// Its windows are closed, and it has content.
    pub(super) is_blocked: bool,
    /// It is in the schedule.
    pub(super) is_scheduled: bool,
    /// The limit on a client that keeps its windows closed.
    pub(super) stall: Option<Box<(Pace, Timer)>>,
    /// Queued frames whose content is to be counted.
    pub(super) unwritten: usize,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// The client has sent all of its request, or has reset it: nothing more may come.
    Client,
    /// Larder, before the client had sent everything. What was on its way is passed over.
    Larder,
}

/// All streams of a connection.
pub(super) struct StreamList<'a, S: Service> {
    slots: Slab<Box<ServedStream<'a, S>>>,
    /// Number and place of the open ones, by number.
    open: Vec<(u32, usize)>,
    ended_by_client: VecDeque<u32>,
    ended_by_larder: VecDeque<u32>,
    open_max: usize,
    /// The heads of the open ones together.
    pub(super) head_bytes: usize,
    /// The highest number so far.
    pub(super) last: u32,
}

impl<'a, S: Service> StreamList<'a, S> {
    /// A list of which at most `open_max` are to be open.
    pub(super) fn new(open_max: usize) -> Self {
        Self {
            slots: Slab::new(),
            open: Vec::new(),
            ended_by_client: VecDeque::new(),
            ended_by_larder: VecDeque::new(),
            open_max,
            head_bytes: 0,
            last: 0,
        }
    }

    /// How many are open.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// The places of the open ones.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        self.open.iter().map(|(_, place)| *place)
    }

    /// The place of an open one.
    pub(super) fn find(&self, id: u32) -> Option<usize> {
        let at = self.open.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.open.get(at).map(|(_, place)| *place)
    }

    /// The stream at a place.
    pub(super) fn at(&self, place: usize) -> Option<&ServedStream<'a, S>> {
        self.slots.get(place).map(|stream| &**stream)
    }

    /// The same, to be changed.
    pub(super) fn at_mut(&mut self, place: usize) -> Option<&mut ServedStream<'a, S>> {
        self.slots.get_mut(place).map(|stream| &mut **stream)
    }

    /// Adds an open one, whose number is the highest.
    pub(super) fn insert(&mut self, stream: ServedStream<'a, S>) -> usize {
        let id = stream.facts.id;
        self.head_bytes += stream.facts.head_bytes;
        let place = self.slots.insert(Box::new(stream));
        let at = self.open.partition_point(|(other, _)| *other < id);
        self.open.insert(at, (id, place));
        place
    }

    /// An open one ends. Its place stays taken while frames of it are to be counted; what it was doing is given back.
    pub(super) fn close(&mut self, place: usize) -> Option<(StreamFacts, Stage<'a, S>)> {
        let stream = self.slots.get_mut(place)?;
        let facts = stream.facts;
        let stage = std::mem::replace(&mut stream.stage, Stage::Over(None));
        if let Ok(at) = self.open.binary_search_by_key(&facts.id, |(id, _)| *id) {
            self.open.remove(at);
            self.head_bytes = self.head_bytes.saturating_sub(facts.head_bytes);
        }
        if stream.unwritten == 0 {
            self.slots.remove(place);
        }
        self.note_end(facts.id, if facts.has_ended { EndedBy::Client } else { EndedBy::Larder });
        Some((facts, stage))
    }

    /// Keeps the report of one that was closed until its frames are written.
    pub(super) fn leave_report(&mut self, place: usize, report: Report<'a, S>) {
        if let Some(stream) = self.slots.get_mut(place)
            && let Stage::Over(kept) = &mut stream.stage
        {
            *kept = Some(report);
        }
    }

    /// The content of a queued frame was written, the last of its stream or not.
    pub(super) fn written(&mut self, place: usize, bytes: u64) -> Option<Report<'a, S>> {
        let stream = self.slots.get_mut(place)?;
        stream.unwritten = stream.unwritten.saturating_sub(1);
        match &mut stream.stage {
            Stage::Sending { report, .. } => report.body_bytes += bytes,
            Stage::Over(report) => {
                if let Some(report) = report {
                    report.body_bytes += bytes;
                }
                if stream.unwritten == 0 {
                    return match self.slots.remove(place).stage {
                        Stage::Over(report) => report,
                        _ => None,
                    };
                }
            }
            Stage::Calling { .. } => {}
        }
        None
    }

    /// Remembers how a stream ended.
    pub(super) fn note_end(&mut self, id: u32, by: EndedBy) {
        let (ended, kept) = match by {
            EndedBy::Client => (&mut self.ended_by_client, ENDED_BY_CLIENT_KEPT),
            EndedBy::Larder => {
                (&mut self.ended_by_larder, self.open_max.saturating_mul(ENDED_BY_LARDER_KEPT))
            }
        };
        if ended.len() >= kept {
            ended.pop_front();
        }
        ended.push_back(id);
    }

    /// How one ended that is not open, as far as that is remembered.
    pub(super) fn ended_by(&self, id: u32) -> Option<EndedBy> {
        if self.ended_by_larder.contains(&id) {
            return Some(EndedBy::Larder);
        }
        self.ended_by_client.contains(&id).then_some(EndedBy::Client)
    }
}
