//! Which tables there are, and over what time.
//!
//! In: nothing. Out: the names that a question may have, and the room of each table.

use std::time::Duration;

/// What a table counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// URLs, by requests.
    Urls,
    /// URLs, by bytes of bodies that were sent.
    Bytes,
    /// Reasons and URLs, by requests that were forwarded.
    Misses,
    /// What a URL was before, and the URL, by requests that missed it.
    Before,
    /// Words and servers, by requests that no server of an origin answered.
    Errors,
    /// Hosts that no site has, by requests.
    Hosts,
    /// Names of parameters in queries, by requests that were forwarded.
    Parameters,
}

/// Counters of a table.
pub(super) const COUNTERS_MAX: u16 = 2048;
/// A table with URLs has room for some 200 bytes in each key.
const LONG_BYTES_MAX: usize = 576 * 1024;
/// Other keys are short.
const SHORT_BYTES_MAX: usize = 256 * 1024;
/// Of all tables together.
#[cfg(test)]
pub(super) const ALL_BYTES_MAX: usize = 6 * 1024 * 1024;

impl TableKind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Urls, Self::Bytes, Self::Misses, Self::Before, Self::Errors, Self::Hosts, Self::Parameters];

    /// The word in questions and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Urls => "urls",
            Self::Bytes => "bytes",
            Self::Misses => "misses",
            Self::Before => "before",
            Self::Errors => "errors",
            Self::Hosts => "hosts",
            Self::Parameters => "parameters",
        }
    }

    /// Whether a key is a word and what it is about.
    pub(super) const fn has_word(self) -> bool {
        matches!(self, Self::Misses | Self::Before | Self::Errors)
    }

    pub(super) const fn bytes_max(self) -> usize {
        match self {
            Self::Urls | Self::Bytes | Self::Misses | Self::Before => LONG_BYTES_MAX,
            Self::Errors | Self::Hosts | Self::Parameters => SHORT_BYTES_MAX,
        }
    }
}

/// Over what time a table counts. What lies back one half-life counts half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableWindow {
    /// Some ten minutes.
    TenMinutes,
    /// Some day.
    Day,
}

impl TableWindow {
    /// Both.
    pub const ALL: [Self; 2] = [Self::TenMinutes, Self::Day];

    /// Seconds, as they stand in questions and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::TenMinutes => "600",
            Self::Day => "86400",
        }
    }

    /// The time in which a count is halved.
    pub(super) const fn half_life(self) -> Duration {
        match self {
            Self::TenMinutes => Duration::from_secs(300),
            Self::Day => Duration::from_secs(43_200),
        }
    }
}
