//! One reader of what happens now, and what waits for it.
//!
//! In: samples that its filter takes, and events. Out: the same in their order, and how many samples were left out, when the reader asks for
//! them. It may wait for them in any runtime, for a waker is all that is needed.
//! A reader gets at most 100 samples per second, unless it has asked for all. What waits is bounded by number and by bytes, for each reader
//! and for all together. One that leaves something unread for ten seconds is dropped, and told so. Nothing is remembered for a reader that
//! is gone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;

use super::event::Event;
use super::sample::Sample;
use super::tick::Tick;
use crate::filter::Filter;
use crate::tap::TakeAll;

/// Samples per second for a reader that has not asked for all.
pub(super) const SAMPLES_PER_SECOND: u32 = 100;
/// So much waits for one reader, as a number.
const WAITING_MAX: usize = 4096;
/// The same in bytes.
pub(super) const WAITING_BYTES_MAX: usize = 1024 * 1024;
/// The same for all readers together. What waits for several of them counts several times.
const ALL_WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Within this time a reader takes something of what waits.
const SLOW: Duration = Duration::from_secs(10);
/// No more of it passes between two drains. A process that was stopped could not wake its readers, and would find all of them slow.
const SECOND: Duration = Duration::from_secs(1);
/// Between two times that a reader is woken for samples. Drains come more often, and to wake it costs more than what they bring.
const WAKE_PAUSE: Duration = Duration::from_millis(50);
/// Unless so many of the samples wait.
const WAKE_WAITING: usize = 512;

/// What a subscription brings.
#[derive(Clone, Debug)]
pub enum Live {
    /// An exchange.
    Sample(Arc<Sample>),
    /// Something that happened to larder itself.
    Event(Arc<Event>),
    /// The figures of a second.
    Tick(Arc<Tick>),
    /// So many samples and events of the last second were left out.
    Skipped(u64),
    /// The reader was too slow, and gets nothing more.
    TooSlow,
}

impl Live {
    fn bytes(&self) -> usize {
        match self {
            Self::Sample(sample) => sample.bytes(),
            Self::Event(event) => event.bytes(),
            Self::Tick(tick) => tick.bytes(),
            Self::Skipped(_) | Self::TooSlow => 0,
        }
    }
}

/// What a subscription is for, beside events.
#[derive(Clone, Debug)]
pub struct Interest {
    /// Whether samples are wanted. Default true.
    pub samples: bool,
    /// Only samples that it takes.
    pub filter: Option<Filter>,
    /// Whether no sample is left out.
    pub all: bool,
    /// Whether the figures of each second are wanted. Default false.
    pub ticks: bool,
}

impl Default for Interest {
    fn default() -> Self {
        Self { samples: true, filter: None, all: false, ticks: false }
    }
}

/// How a subscription has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The reader is still to be told.
    Slow,
    Over,
}

/// Where samples for one subscription go.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) interest: Interest,
    /// Bytes that wait for all readers.
    all_waiting: Arc<AtomicUsize>,
    state: Mutex<Waits>,
}

#[derive(Debug, Default)]
struct Waits {
    queue: VecDeque<Live>,
    bytes: usize,
    /// When the second began in which samples are counted.
    second: Duration,
    passed: u32,
    skipped: u64,
    has_read: bool,
    /// When samples were handed over, if only none.
    delivered: Duration,
    /// For how long something has waited of which nothing was read.
    unread: Duration,
    end: Option<End>,
    waker: Option<Waker>,
    /// When it was woken for samples.
    woken: Option<Duration>,
    take_all: Option<TakeAll>,
}

impl Waits {
    /// Who is to be woken now.
    fn due(&mut self, now: Duration) -> Option<Waker> {
        let is_early = self.woken.is_some_and(|woken| now.saturating_sub(woken) < WAKE_PAUSE);
        if self.queue.is_empty() || is_early && self.queue.len() < WAKE_WAITING {
            return None;
        }
        let waker = self.waker.take()?;
        self.woken = Some(now);
        Some(waker)
    }
}

/// What became of samples that were handed to a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) skipped: u64,
    pub(super) is_slow: bool,
}

impl Reader {
    pub(super) fn new(
        interest: Interest,
        take_all: Option<TakeAll>,
        all_waiting: Arc<AtomicUsize>,
    ) -> Arc<Self> {
        let state = Mutex::new(Waits { take_all, ..Waits::default() });
        Arc::new(Self { interest, all_waiting, state })
    }

    pub(super) fn is_open(&self) -> bool {
        self.state.lock().end.is_none()
    }

    /// Hands over samples that the filter takes; to be called at each drain, also without any.
    pub(super) fn deliver(&self, now: Duration, samples: &[Arc<Sample>]) -> Delivery {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return Delivery::default();
        }
        if now.saturating_sub(state.second) >= SECOND {
            (state.second, state.passed) = (now, 0);
            let skipped = std::mem::take(&mut state.skipped);
            if skipped > 0 {
                state.queue.push_back(Live::Skipped(skipped));
            }
        }
        let gap = now.saturating_sub(std::mem::replace(&mut state.delivered, now));
        if std::mem::take(&mut state.has_read) || state.queue.is_empty() {
            state.unread = Duration::ZERO;
        } else {
            state.unread += gap.min(SECOND);
        }
        if state.unread >= SLOW {
            self.end(state, End::Slow);
            return Delivery { skipped: 0, is_slow: true };
        }
        let mut skipped = 0;
        for sample in samples {
            let has_right = self.interest.all || state.passed < SAMPLES_PER_SECOND;
            if has_right && self.push(&mut state, Live::Sample(Arc::clone(sample))) {
                state.passed = state.passed.saturating_add(1);
            } else {
                skipped += 1;
            }
        }
        state.skipped += skipped;
        let waker = state.due(now);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Delivery { skipped, is_slow: false }
    }

    /// Hands over an event, or the figures of a second. False where there is no room for it.
    pub(super) fn tell(&self, live: Live) -> bool {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return true;
        }
        let is_told = self.push(&mut state, live);
        state.skipped += u64::from(!is_told);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        is_told
    }

    fn push(&self, state: &mut Waits, live: Live) -> bool {
        let bytes = live.bytes();
        let all = self.all_waiting.load(Ordering::Relaxed);
        let has_room = state.queue.len() < WAITING_MAX
            && state.bytes + bytes <= WAITING_BYTES_MAX
            && all + bytes <= ALL_WAITING_BYTES_MAX;
        if has_room {
            self.all_waiting.fetch_add(bytes, Ordering::Relaxed);
            state.bytes += bytes;
            state.queue.push_back(live);
        }
        has_room
    }

    fn pop(&self, state: &mut Waits) -> Option<Live> {
        let live = state.queue.pop_front()?;
        let bytes = live.bytes();
        self.all_waiting.fetch_sub(bytes, Ordering::Relaxed);
        state.bytes -= bytes;
        Some(live)
    }

    /// Nothing more is coming.
    pub(super) fn close(&self) {
        self.end(self.state.lock(), End::Over);
    }

    fn end(&self, mut state: parking_lot::MutexGuard<'_, Waits>, end: End) {
        self.all_waiting.fetch_sub(std::mem::take(&mut state.bytes), Ordering::Relaxed);
        let queue = std::mem::take(&mut state.queue);
        let (take_all, waker) = (state.take_all.take(), state.waker.take());
        state.end = Some(end);
        drop(state);
        drop((queue, take_all));
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// What happens from now on, as far as its filter takes it. To drop it is to end it.
#[derive(Debug)]
pub struct Subscription(pub(super) Arc<Reader>);

impl Subscription {
    /// What has come, or `Pending` until something comes; `None` where nothing more is coming.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Live>> {
        let Self(reader) = self;
        let mut state = reader.state.lock();
        state.has_read = true;
        if let Some(live) = reader.pop(&mut state) {
            return Poll::Ready(Some(live));
        }
        match state.end {
            Some(End::Slow) => {
                state.end = Some(End::Over);
                Poll::Ready(Some(Live::TooSlow))
            }
            Some(End::Over) => Poll::Ready(None),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Waits for what comes; `None` where nothing more is coming. Nothing is lost where the wait is given up.
    pub async fn next(&mut self) -> Option<Live> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.close();
    }
}
