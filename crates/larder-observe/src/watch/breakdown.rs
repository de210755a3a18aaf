//! Remembered samples by what they have in common: so many requests per second of each kind.
//!
//! In: samples, up to four dimensions, and a filter. Out: rates of requests, bytes and origin time for each combination, the highest first, and the
//! sum of those beyond a limit. Rates are sums of weights over the time that the samples span, so that they are right at any load.
//! A request counts at its end, as it does in the counters. There are at most as many groups as remembered samples.
//! Deliberately absent: figures of more than what is remembered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use larder_http::fields::cache_status::RequestResult;
use larder_http::time::WallTime;

use super::sample::Sample;
use crate::filter::{Facts, Filter, Scratch, TextField};

/// So many dimensions at once.
pub const BREAKDOWN_BY_MAX: usize = 4;
/// A rate is never told over a shorter time.
const SPAN_MIN: Duration = Duration::from_secs(1);

macro_rules! dimensions {
    ($($name:ident $token:literal $value:expr, $meaning:literal;)*) => {
        /// What requests may have in common.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Dimension {
            $(#[doc = $meaning] $name),*
        }

        impl Dimension {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The word in a question.
            pub const fn token(self) -> &'static str {
                match self {
                    $(Self::$name => $token),*
                }
            }

            fn value(self, sample: &Sample) -> Option<String> {
                let value: fn(&Sample) -> Option<String> = match self {
                    $(Self::$name => $value),*
                };
                value(sample)
            }
        }
    };
}

dimensions! {
    Result "result" |s| text(s, TextField::Result), "How larder came by the answer.";
    Reason "reason" |s| text(s, TextField::Reason), "Why the request was forwarded.";
    Before "before" |s| text(s, TextField::Before), "Why a URI that was missed had no stored response.";
    NotStored "not_stored" |s| text(s, TextField::NotStored), "Why the response was not stored.";
    Detail "detail" |s| text(s, TextField::Detail), "The token in the `detail` parameter of `Cache-Status`.";
    Status "status" |s| Some(s.head().status.as_str().to_owned()), "The status code, with all digits.";
    Site "site" |s| text(s, TextField::Site), "The site.";
    Rule "rule" |s| text(s, TextField::Rule), "The rule's name, without its site.";
    Store "store" |s| text(s, TextField::Store), "The store.";
    Origin "origin" |s| text(s, TextField::Origin), "The origin that was asked.";
    Server "server" |s| text(s, TextField::Server), "The server that answered.";
    Method "method" |s| text(s, TextField::Method), "The request method.";
    Host "host" |s| text(s, TextField::Host), "The host that was asked for.";
    Path "path" |s| text(s, TextField::Path), "The path, without the query.";
    Type "type" |s| text(s, TextField::Type), "The media type of the response.";
    Folder "folder" folder, "The first segment of the path, as `/x/*`, and `/` for what lies in none.";
    Url "url" url, "Host, path and query.";
}

fn text(sample: &Sample, field: TextField) -> Option<String> {
    sample.text(field, &mut String::new()).map(str::to_owned)
}

fn folder(sample: &Sample) -> Option<String> {
    let mut none = String::new();
    let path = sample.text(TextField::Path, &mut none)?;
    let Some(below) = path.strip_prefix('/') else { return Some(path.to_owned()) };
    Some(below.split_once('/').map_or_else(|| "/".to_owned(), |(first, _)| format!("/{first}/*")))
}

fn url(sample: &Sample) -> Option<String> {
    let [host, path, query] =
        [TextField::Host, TextField::Path, TextField::Query].map(|field| text(sample, field));
    if host.is_none() && path.is_none() {
        return None;
    }
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    Some(format!("{}{}{query}", host.unwrap_or_default(), path.unwrap_or_default()))
}

/// What is asked of the samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakdownQuestion {
    /// What those of one row have in common.
    pub by: Vec<Dimension>,
    /// Only requests that ended within this time.
    pub from: Duration,
    /// Only requests that it takes.
    pub filter: Option<Filter>,
    /// The most rows.
    pub limit: usize,
}

/// Rates of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Breakdown {
    /// Where the time begins over which rates are told.
    pub from: WallTime,
    /// Where it ends.
    pub to: WallTime,
    /// From how many samples they are; `None` where they are from counters.
    pub samples: Option<usize>,
    /// Requests per second, of all rows and others.
    pub total: f64,
    /// By falling rate.
    pub rows: Vec<BreakdownRow>,
    /// Requests per second of what has no row.
    pub other: f64,
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakdownRow {
    /// A value for each dimension; `None` where requests have none.
    pub key: Vec<Option<String>>,
    /// Requests per second.
    pub rate: f64,
    /// Bytes of bodies per second that clients were sent.
    pub bytes: Option<f64>,
    /// Seconds per second that requests of this row waited for an origin which they had asked themselves.
    pub origin_seconds: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct RowSums {
    requests: f64,
    bytes: f64,
    origin_seconds: f64,
}

impl RowSums {
    fn add(&mut self, sample: &Sample) {
        let head = sample.head();
        let weight = head.weight.count() as f64;
        self.requests += weight;
        self.bytes += weight * head.body_bytes as f64;
        // Those that joined its fetch have the same one.
        if head.result == RequestResult::Asked
            && let Some(fetched) = &head.fetched
        {
            self.origin_seconds += weight * fetched.took.as_secs_f64();
        }
    }
}

/// The breakdown of samples that are complete since `since`.
pub(super) fn from_samples(
    samples: &[Arc<Sample>],
    question: &BreakdownQuestion,
    since: WallTime,
    now: WallTime,
) -> Breakdown {
    let span = now.since(since).min(question.from).max(SPAN_MIN);
    let from = WallTime(now.0.saturating_sub(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)));
    let mut scratch = Scratch::default();
    let mut groups = HashMap::<Vec<Option<String>>, RowSums>::new();
    let (mut count, mut all) = (0, RowSums::default());
    // What ended later than now did so before the clock was set back: it would count again and again.
    for sample in samples.iter().filter(|sample| (from..=now).contains(&sample.ended())) {
        let filter = question.filter.as_ref();
        if filter.is_none_or(|filter| filter.matches_in(&**sample, &mut scratch)) {
            let key = question.by.iter().map(|dimension| dimension.value(sample)).collect();
            groups.entry(key).or_default().add(sample);
            all.add(sample);
            count += 1;
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_unstable_by(|(one_key, one), (other_key, other)| {
        other.requests.total_cmp(&one.requests).then_with(|| one_key.cmp(other_key))
    });
    let beyond = groups.split_off(question.limit.min(groups.len()));
    let rate = |sum: f64| sum / span.as_secs_f64();
    let rows = groups.into_iter().map(|(key, sums)| BreakdownRow {
        key,
        rate: rate(sums.requests),
        bytes: Some(rate(sums.bytes)),
        origin_seconds: Some(rate(sums.origin_seconds)),
    });
    Breakdown {
        from,
        to: now,
        samples: Some(count),
        total: rate(all.requests),
        rows: rows.collect(),
        // A sum of nothing is -0.
        other: rate(beyond.iter().map(|(_, sums)| sums.requests).sum::<f64>() + 0.0),
    }
}
