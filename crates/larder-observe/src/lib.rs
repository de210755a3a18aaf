//! What larder tells about itself: numbers, the access log, samples of exchanges, its own messages; and the language that selects from them.
//!
//! In: events from the workers (a request answered, a look-up, a fetch), records of finished exchanges, and samples of them. Out: the
//! text of `/metrics`, a [`Snapshot`] for `/stats`, log lines on a file or stdout, the newest samples and those to come, messages on stderr.
//! Everything a worker calls here costs a few nanoseconds and never waits. Counters are in the worker's own cache
//! lines, and a reader sums them. Log records are moved into a bounded queue that a thread of its own drains, and samples
//! into a buffer of the worker that the [`watch`] takes.
//! Declared once: every metric family in [`family`], every log field in [`access_log`], every field of a [`filter`]; the
//! reference pages under docs/reference are generated from those tables.
//! Deliberately absent: traces, and any meaning of reasons. Which reasons exist is said by the crates that decide,
//! through the [`Label`] trait.

pub mod access_log;
mod assembly;
mod cells;
pub mod diagnostics;
mod error;
pub mod exposition;
pub mod family;
mod fetched;
pub mod filter;
pub mod histogram;
mod label;
mod metrics;
mod names;
mod printable;
mod process;
mod reference;
mod rules;
mod snapshot;
mod sums;
pub mod tap;
pub mod watch;
mod worker;

pub use access_log::{
    AccessLog, AccessLogOptions, Ending, Format, LogLine, LogRecord, LogTarget, LoggedRule, PageEnding, Text,
};
pub use assembly::{AssemblySnapshot, PageHow};
pub use diagnostics::{Diagnostics, Level, Said};
pub use error::ObserveError;
pub use exposition::{Exposition, Samples, Value};
pub use family::{Family, Kind};
pub use fetched::Fetched;
pub use histogram::{Histogram, HistogramSnapshot, OCTAVES, octave_percentile};
pub use label::{BytesFrom, CodeClass, Label, MethodLabel, Served, Vocabulary};
pub use metrics::Metrics;
pub use names::{CacheId, OriginId, RouteId, RuleId};
pub use printable::{is_invisible, printable};
pub use reference::{CountedElsewhere, access_log_markdown, metrics_markdown};
pub use rules::RuleSnapshot;
pub use snapshot::{CacheSnapshot, OriginSnapshot, RouteSnapshot, Snapshot};
pub use sums::Count;
pub use tap::{SampleHead, SampleTexts, Tap, Weight};
pub use watch::{Event, Sample, Subscription, Watch, WatchSettings, WatchThread};
pub use worker::WorkerMetrics;
