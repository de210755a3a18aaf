//! The state of one connection, which the files beside this one change.
//!
//! In: an accepted stream. Out: a connection on which nothing was done yet but larder's own SETTINGS.
//! Deliberately absent: what is done with it.

use std::collections::VecDeque;

use bytes::BytesMut;
use tokio::time::Instant;

use super::budget::Budget;
use super::flow::{CONNECTION_WINDOW, ReceiveWindow, WindowTurns};
use super::frame::ErrorCode;
use super::frame_queue::FrameQueue;
use super::hpack::decode::{Decoder, TABLE_BYTES_DEFAULT};
use super::priority::Priority;
use super::request_head::KnownHost;
use super::schedule::Schedule;
use super::stream::StreamList;
use super::wakers::StreamWakers;
use crate::byte_stream::ByteStream;
use crate::context::ConnectionContext;
use crate::delivery::Report;
use crate::detect::ReadAhead;
use crate::drain::Membership;
use crate::service::{Interims, Service};
use crate::timer::{Pace, Timer};

/// Requests, and bytes, that one turn takes before other connections of the worker have theirs.
const TURN_REQUESTS: usize = 64;
const TURN_BYTES: usize = 256 * 1024;

/// What the PING says that goes with the first GOAWAY.
pub(super) const LEAVING_PING: [u8; 8] = *b"larder\0\0";

/// What one turn has taken.
#[derive(Debug, Default)]
pub(super) struct TurnCount {
    pub(super) requests: usize,
    pub(super) bytes: usize,
}

impl TurnCount {
    pub(super) fn is_used_up(&self) -> bool {
        self.requests >= TURN_REQUESTS || self.bytes >= TURN_BYTES
    }
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reading {
    /// What a client says first.
    Preface,
    /// A frame's head.
    Frame,
    /// Content, and padding behind it.
    Content(OpenData),
}

/// A DATA frame that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenData {
    pub(super) stream: u32,
    pub(super) left: usize,
    pub(super) padding: usize,
    pub(super) ends: bool,
}

/// A field block whose last frame is still to come.
#[derive(Debug)]
pub(super) struct OpenBlock {
    pub(super) stream: u32,
    pub(super) ends: bool,
    pub(super) dependency: Option<u32>,
    pub(super) octets: Vec<u8>,
    pub(super) continuations: usize,
}

/// How far a connection is with leaving.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leaving {
    No,
    /// The first GOAWAY is queued, since then.
    Warned(Instant),
    /// The second is, with this last stream.
    Final(u32),
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum ConnectionEnd {
    /// The client is gone, or takes nothing.
    Gone,
    /// Everything is done and said.
    Done,
    /// The client is told why.
    Error(ErrorCode),
}

/// Content in the outbox that is to be counted.
pub(super) struct Portion<'a, S: Service> {
    /// Where it ends, in bytes of the connection.
    pub(super) end: u64,
    pub(super) bytes: u64,
    pub(super) whose: Whose<'a, S>,
}

pub(super) enum Whose<'a, S: Service> {
    /// All of an answer.
    Report(Report<'a, S>),
    /// A part of a stream's, by its place.
    Stream(usize),
    /// The last part.
    LastOf(usize),
}

/// A connection, and everything in it.
pub(super) struct Http2Connection<'a, T, S: Service> {
    pub(super) io: T,
    pub(super) context: &'a ConnectionContext<S>,
    pub(super) drain: &'a mut Membership,
    pub(super) timer: Timer,

    pub(super) read: BytesMut,
    /// The client has closed its direction.
    pub(super) is_at_end: bool,
    /// The last read has filled its room.
    pub(super) may_have_more: bool,
    pub(super) reading: Reading,
    pub(super) block: Option<OpenBlock>,
    /// Since when the rest of a frame or of a block is waited for.
    pub(super) partial_since: Option<Instant>,
    pub(super) decoder: Decoder,
    pub(super) known_host: KnownHost,
    pub(super) has_settings: bool,
    /// The client has acknowledged ours.
    pub(super) is_acknowledged: bool,
    pub(super) budget: Budget,

    pub(super) streams: StreamList<'a, S>,
    pub(super) wakers: StreamWakers,
    pub(super) due: Vec<usize>,
    /// Streams that were answered whole before their client had sent everything.
    pub(super) unended: Vec<u32>,
    /// What PRIORITY_UPDATE has said of streams that are still to come.
    pub(super) priorities: VecDeque<(u32, Priority)>,
    /// Kept for the next request.
    pub(super) interims: Option<Interims>,

    pub(super) queue: FrameQueue,
    pub(super) schedule: Schedule,
    pub(super) receive_window: ReceiveWindow,
    pub(super) window_turns: WindowTurns,
    /// Queued content that is to be counted when it is written.
    pub(super) portions: VecDeque<Portion<'a, S>>,
    /// The limit on a client that keeps the window of the connection closed.
    pub(super) window_pace: Option<Box<Pace>>,
    /// The limit on a client that takes nothing.
    pub(super) pace: Option<Pace>,

    pub(super) leaving: Leaving,
    /// The client has said that it leaves.
    pub(super) is_client_leaving: bool,
    pub(super) idle_since: Option<Instant>,
    /// Something was queued behind the last write.
    pub(super) has_news: bool,
}

impl<'a, T: ByteStream, S: Service> Http2Connection<'a, T, S> {
    pub(super) fn new(
        stream: ReadAhead<T>,
        context: &'a ConnectionContext<S>,
        drain: &'a mut Membership,
    ) -> Self {
        let ReadAhead { io, read, may_have_more, head_since, timer } = stream;
        let limits = &context.settings.limits;
        Self {
            io,
            context,
            drain,
            timer,
            read,
            is_at_end: false,
            may_have_more,
            reading: Reading::Preface,
            block: None,
            partial_since: head_since,
            decoder: Decoder::new(TABLE_BYTES_DEFAULT),
            known_host: None,
            has_settings: false,
            is_acknowledged: false,
            budget: Budget::new(limits.resets_max),
            streams: StreamList::new(limits.streams_max as usize),
            wakers: StreamWakers::default(),
            due: Vec::new(),
            unended: Vec::new(),
            priorities: VecDeque::new(),
            interims: None,
            queue: FrameQueue::new(limits),
            schedule: Schedule::default(),
            receive_window: ReceiveWindow::new(CONNECTION_WINDOW),
            window_turns: WindowTurns::default(),
            portions: VecDeque::new(),
            window_pace: None,
            pace: None,
            leaving: Leaving::No,
            is_client_leaving: false,
            idle_since: None,
            has_news: false,
        }
    }
}
