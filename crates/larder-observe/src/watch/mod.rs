//! The live view: figures over time, frequent keys, the newest samples and events, and those who look at them as they come.
//!
//! In: samples from the [`Tap`], counters once a second, and events from the whole program. Out: figures over time, the newest samples and
//! events, selected by a filter, and subscriptions that get the rest as it comes.
//! One place drains the tap, ten times a second, and more often while something asks for every exchange. There, names take the
//! place of numbers, secrets are hidden and addresses masked, before anything is kept; a worker has no part in it.
//! Frequent keys are counted there, too.
//! All that is kept is bounded, and all that goes beyond a bound is counted.
//! Deliberately absent: the address where all this is asked for.

mod breakdown;
mod clients;
mod event;
mod events;
mod history;
mod json;
mod message;
mod redact;
mod remembered;
mod ring;
mod sample;
mod subscription;
mod tables;
mod thread;
pub mod tick;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use larder_http::time::Now;
use parking_lot::Mutex;

use crate::exposition::Exposition;
use crate::family;
use crate::filter::{Filter, Scratch};
use crate::metrics::Metrics;
use crate::names::{CacheId, RuleId};
use crate::tap::{DropReason, Tap};
use events::Events;
use history::{CountedSince, History};
use ring::Ring;
use sample::{Making, Place};
use subscription::Reader;
use tables::Tables;

pub use breakdown::{BREAKDOWN_BY_MAX, Breakdown, BreakdownQuestion, BreakdownRow, Dimension};
pub use clients::Clients;
pub use event::Event;
pub use history::{
    DeclaredFigure, FIGURES, FigureSource, LatencyAnswer, NotASpan, Reading, SERIES_MAX, SeriesAnswer,
    SeriesName, Span, scope_name,
};
pub use json::{SAMPLE_KEYS, SampleKey};
pub use redact::Redact;
pub use remembered::Remembered;
pub use sample::{Sample, WatchSettings};
pub use subscription::{Interest, Live, Subscription};
pub use tables::{TableKind, TableWindow, Top, TopQuestion, TopRow};
pub use thread::WatchThread;
pub use tick::Tick;

/// So many samples are remembered.
const SAMPLES_MAX: usize = 4096;
/// The memory that they may take.
const SAMPLES_BYTES_MAX: usize = 3 * 1024 * 1024;
/// The most subscriptions at once.
pub const SUBSCRIBERS_MAX: usize = 32;
/// The most samples of one answer.
pub const REQUESTS_MAX: usize = 1000;

/// Between two drains.
const PAUSE: Duration = Duration::from_millis(100);
/// The same at most while every exchange is asked for. A worker whose buffer fills sooner ends the pause.
const SHORT_PAUSE: Duration = Duration::from_millis(25);

/// There are as many subscriptions as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are {SUBSCRIBERS_MAX} subscriptions already")]
pub struct TooManySubscribers;

/// What is remembered, and those who look on. One per process.
#[derive(Debug)]
pub struct Watch {
    metrics: Arc<Metrics>,
    tap: Arc<Tap>,
    drain: Mutex<Drain>,
    counted: Mutex<CountedSince>,
    history: Mutex<History>,
    newest: Mutex<Option<Arc<Tick>>>,
    recent: Mutex<Ring<Sample>>,
    events: Mutex<Events>,
    tables: Mutex<Tables>,
    readers: Mutex<Vec<Arc<Reader>>>,
    /// Bytes that wait for all readers.
    waiting: Arc<AtomicUsize>,
    samples: AtomicU64,
    skipped: AtomicU64,
    refused: AtomicU64,
    slow: AtomicU64,
}

/// What a drain needs, kept from one to the next.
#[derive(Debug, Default)]
struct Drain {
    settings: WatchSettings,
    making: Making,
    scratch: Scratch,
    batch: Vec<Arc<Sample>>,
    taken: Vec<Arc<Sample>>,
}

impl Watch {
    /// Remembers nothing yet.
    pub fn new(metrics: Arc<Metrics>, tap: Arc<Tap>, settings: WatchSettings) -> Self {
        let history = History::new(settings.history, settings.memory_bytes);
        Self {
            metrics,
            tap,
            drain: Mutex::new(Drain { settings, ..Drain::default() }),
            counted: Mutex::default(),
            history: Mutex::new(history),
            newest: Mutex::default(),
            recent: Mutex::new(Ring::new(SAMPLES_MAX, SAMPLES_BYTES_MAX)),
            events: Mutex::default(),
            tables: Mutex::default(),
            readers: Mutex::default(),
            waiting: Arc::default(),
            samples: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            slow: AtomicU64::new(0),
        }
    }

    /// Changes what may be kept. Where that is another thing of exchanges than before, those that are remembered go.
    pub fn configure(&self, settings: WatchSettings) {
        let mut drain = self.drain.lock();
        let WatchSettings { history, memory_bytes, .. } = settings;
        if (drain.settings.history, drain.settings.memory_bytes) != (history, memory_bytes) {
            self.history.lock().limit(history, memory_bytes);
        }
        if drain.settings.keeps_another(&settings) {
            self.recent.lock().clear();
            self.tables.lock().clear();
            self.events.lock().forget_clients();
        }
        drain.settings = settings;
    }

    /// How long to wait before the next drain.
    pub fn pause(&self) -> Duration {
        if self.tap.takes_all() { SHORT_PAUSE } else { PAUSE }
    }

    /// Takes what the workers have handed over, remembers it, and hands it to subscriptions.
    pub fn drain(&self, now: Now) {
        let mut drain = self.drain.lock();
        let Drain { settings, making, scratch, batch, taken } = &mut *drain;
        self.tap.drain(now.monotonic, |head, texts| {
            let place = self.place(head.rule);
            batch.push(making.sample(head, &texts, place, settings));
        });
        // Each worker's lie one behind the other.
        batch.sort_by_key(|sample| sample.head().time);
        self.samples.fetch_add(batch.len() as u64, Ordering::Relaxed);
        // First, so that what is remembered is counted, too.
        self.tables.lock().feed(now, batch);
        {
            let mut recent = self.recent.lock();
            batch.iter().for_each(|sample| recent.push(Arc::clone(sample), sample.bytes()));
        }
        for reader in self.open_readers() {
            let filter = reader.interest.filter.as_ref();
            let matches =
                |sample: &&Arc<Sample>| filter.is_none_or(|filter| filter.matches_in(&***sample, scratch));
            if reader.interest.samples {
                taken.extend(batch.iter().filter(matches).cloned());
            }
            let delivery = reader.deliver(now.monotonic, taken);
            taken.clear();
            self.skipped.fetch_add(delivery.skipped, Ordering::Relaxed);
            self.slow.fetch_add(delivery.is_slow.into(), Ordering::Relaxed);
        }
        batch.clear();
    }

    fn place(&self, rule: RuleId) -> Place {
        if rule == RuleId::default() {
            return Place::default();
        }
        let Some(name) = self.metrics.rules.find(rule) else { return Place::default() };
        let store = (name.store != CacheId::default()).then(|| self.metrics.cache_name(name.store));
        Place { site: Some(name.site), rule: Some(name.rule), store }
    }

    fn open_readers(&self) -> Vec<Arc<Reader>> {
        let mut readers = self.readers.lock();
        readers.retain(|reader| reader.is_open());
        readers.clone()
    }

    /// Reads all figures, if a second has begun since the last time, and hands them to those who want them.
    pub fn tick(&self, now: Now, figures: &dyn FigureSource) {
        let second = self.history.lock().tick(now, |reading| {
            self.counted.lock().read(&self.metrics, reading);
            figures.read(reading);
        });
        let Some(second) = second else { return };
        let tick = Arc::new(Tick::new(&second));
        *self.newest.lock() = Some(Arc::clone(&tick));
        let readers = self.open_readers();
        let readers = readers.iter().filter(|reader| reader.interest.ticks);
        let left_out = readers.filter(|reader| !reader.tell(Live::Tick(Arc::clone(&tick)))).count();
        self.skipped.fetch_add(left_out as u64, Ordering::Relaxed);
    }

    /// The figures of the last second; `None` in the first one.
    pub fn newest(&self) -> Option<Arc<Tick>> {
        self.newest.lock().clone()
    }

    /// What figures were over a span; a name that ends in `*` stands for all that begin so.
    ///
    /// # Errors
    /// The span or the names are beyond what an answer may have.
    pub fn series(&self, names: &[&str], span: Span) -> Result<SeriesAnswer, NotASpan> {
        self.history.lock().series(names, span)
    }

    /// How durations lay over a span: those of a scope such as `latency:hit` or `origin:app`, its names written as [`SeriesName`] does.
    ///
    /// # Errors
    /// The span is beyond what an answer may have.
    pub fn latency(&self, scope: &str, span: Span) -> Result<LatencyAnswer, NotASpan> {
        self.history.lock().latency(scope, span)
    }

    /// Means over the last so many seconds, by name; zeros are left out.
    pub fn means(&self, seconds: u64) -> Vec<(String, f64)> {
        let history = self.history.lock();
        history.means(seconds).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// From now on what is wanted, and events. Unless all are asked for, at most 100 samples per second; with it, the tap takes
    /// every exchange for as long as the subscription lives. Ticks begin with the last one that was made.
    ///
    /// # Errors
    /// There are 32 subscriptions already.
    pub fn subscribe(&self, interest: Interest) -> Result<Subscription, TooManySubscribers> {
        let mut readers = self.readers.lock();
        readers.retain(|reader| reader.is_open());
        if readers.len() >= SUBSCRIBERS_MAX {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(TooManySubscribers);
        }
        let take_all = (interest.all && interest.samples).then(|| self.tap.take_all());
        let newest = self.newest().filter(|_| interest.ticks);
        let reader = Reader::new(interest, take_all, Arc::clone(&self.waiting));
        if let Some(tick) = newest {
            reader.tell(Live::Tick(tick));
        }
        readers.push(Arc::clone(&reader));
        Ok(Subscription(reader))
    }

    /// Remembered samples that a filter takes, newest first; at most 1000.
    pub fn requests(&self, filter: Option<&Filter>, limit: usize) -> Vec<Arc<Sample>> {
        let all = self.recent.lock().newest_first();
        let mut scratch = Scratch::default();
        all.into_iter()
            .filter(|sample| filter.is_none_or(|filter| filter.matches_in(&**sample, &mut scratch)))
            .take(limit.min(REQUESTS_MAX))
            .collect()
    }

    /// The largest of a table.
    pub fn top(&self, question: &TopQuestion, now: Now) -> Top {
        let rates = self.tables.lock().rates(question.of, question.window, now);
        question.top(rates)
    }

    /// Requests by what they have in common: from counters where these can tell, and from remembered samples otherwise.
    pub fn breakdown(&self, question: &BreakdownQuestion, now: Now) -> Breakdown {
        if let Some(told) = self.history.lock().breakdown(question) {
            return told;
        }
        let began = self.tables.lock().began().map_or(now.wall, |began| began.wall);
        let (all, has_let_go) = {
            let recent = self.recent.lock();
            (recent.newest_first(), recent.has_let_go())
        };
        let oldest = all.last().filter(|_| has_let_go).map(|sample| sample.ended());
        breakdown::from_samples(&all, question, oldest.unwrap_or(began), now.wall)
    }

    /// Something happened to larder itself.
    pub fn tell(&self, event: Event) {
        let event = Arc::new(event.cut());
        self.events.lock().push(Arc::clone(&event));
        let readers = self.open_readers();
        let left_out = readers.iter().filter(|reader| !reader.tell(Live::Event(Arc::clone(&event)))).count();
        self.skipped.fetch_add(left_out as u64, Ordering::Relaxed);
    }

    /// Remembered events, newest first.
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.events.lock().newest_first()
    }

    /// Adds the families of samples.
    pub fn expose(&self, out: &mut Exposition) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        out.family(&family::LIVE_SAMPLES).value(&[], count(&self.samples));
        for reason in DropReason::ALL {
            out.family(&family::LIVE_DROPPED).value(&[("why", reason.token())], self.tap.dropped(reason));
        }
        out.family(&family::LIVE_SKIPPED).value(&[], count(&self.skipped));
        out.family(&family::LIVE_SUBSCRIBERS).value(&[], self.open_readers().len());
        for (why, counter) in [("full", &self.refused), ("slow", &self.slow)] {
            out.family(&family::LIVE_TURNED_AWAY).value(&[("why", why)], count(counter));
        }
        let events = self.events.lock().bytes();
        out.family(&family::LIVE_BYTES).value(&[], self.recent.lock().bytes() + events);
        let remembered = self.history.lock().remembered();
        out.family(&family::LIVE_SERIES).value(&[], remembered.series);
        out.family(&family::LIVE_SERIES_FOLDED).value(&[], remembered.folded);
        out.family(&family::LIVE_HISTORY_BYTES).value(&[], remembered.bytes);
        self.tables.lock().expose(out);
        out.family(&family::LIVE_WAITING_BYTES).value(&[], self.waiting.load(Ordering::Relaxed));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.open_readers().iter().for_each(|reader| reader.close());
    }
}

#[cfg(test)]
mod tests;
